"""The four agents, the graph that joins them, and the report they make."""
