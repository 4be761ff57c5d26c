"""Chips, hosts, links and topologies: figures with their sources, and which shapes can exist.

One YAML file a chip under `data/`; `find_chip` reads only the one that is asked for. `Topology`
says how many devices a job has and which of its links wrap around.
"""
