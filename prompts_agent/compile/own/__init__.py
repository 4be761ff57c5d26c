"""A user's own JAX function, compiled for chips that are not there.

`module:step` and `module:abstract_args` are imported in a process of their own, from the directory
that the command runs in; nothing of theirs runs in the caller's.
"""
