"""One file a framework, found by its name: how its config becomes a layout.

Each holds a `READER`; see docs/emitters.md for how to add one.
"""
