"""One file a framework, found by its name: each holds a `FRAMEWORK`.

See docs/emitters.md for how to add one.
"""
