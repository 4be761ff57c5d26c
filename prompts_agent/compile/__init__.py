"""What XLA's compilers can tell about a layout, with no chip attached.

`fit` compiles a reference transformer for the layout's topology, up to the point where memory is
assigned, and says how many bytes of HBM it needs and of what. The compiler runs in a child process;
nothing here imports jax in the caller's.
"""
