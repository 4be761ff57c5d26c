"""A reference transformer in JAX, built from a ModelSpec, a Layout and a Workload.

It exists to be compiled, not trained: what it holds, moves and recomputes is what a framework with
the same layout holds, moves and recomputes. Every argument is an abstract array with a sharding, so
that nothing is allocated and no device is needed. The small-dims tests run it for real on virtual
CPU devices. All of it imports jax; only the compile worker and its tests import it.
"""
