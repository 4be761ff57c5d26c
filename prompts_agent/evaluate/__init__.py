"""Scores of the advisor on workloads whose answer experts or measurements gave."""
