"""The program that the compiler made, in the order in which it runs, and how long that takes.

From a scheduled HloProto alone: no compiler and no jax. What each op and transfer takes is worked
out in one place each; `walk` puts them on a clock, as one device runs them.
"""
