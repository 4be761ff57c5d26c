"""Traces of programs that never ran: a compiled schedule on the clock, written as an XSpace.

XProf opens them and `prompts diagnose` reads them; each says in itself that it is simulated.
"""
