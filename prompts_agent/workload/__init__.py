"""The Workload model, its YAML form, and the inference of a workload from a program's shapes."""
