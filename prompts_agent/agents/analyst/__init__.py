"""The profiler analyst: one detector a family of causes; each reads a profile, none a clock."""
