"""Compiler flags in a user's list that today's compiler refuses or ignores."""
