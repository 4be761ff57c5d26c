"""Turns a Capture into a Profile: steps, breakdown, collectives, ops, memory, compiles, stragglers.

`profile.measure` is the way in; everything else is a pure function over columns.
"""
