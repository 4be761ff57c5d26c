"""Reads XSpace files (`*.xplane.pb`) lazily: planes and lines are indexed, events decoded on demand.

file (wire index, salvage) ─► columns (events as numpy) ─► tpu · gpu · cpu · host ─► reader (Capture)
"""
