"""Reads XSpace files (`*.xplane.pb`) lazily: an index first, events where they are asked for.

file (index, salvage) ─► columns (events as numpy) ─► tpu · gpu · cpu · host ─► reader
"""
