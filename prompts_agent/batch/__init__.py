"""Many traces or workloads: a process each, a journal, resume; tables of all that was found."""
