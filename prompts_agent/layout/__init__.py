"""Mesh, layout, legality, enumeration, placement on the torus or NVLink domain, PartitionSpecs."""
