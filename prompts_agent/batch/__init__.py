"""Many traces or workloads: a process each, a journal, resume."""
