"""Tasks in processes of their own: forked from a warm one, with limits, ended with all they began.

A crash, a hang or a memory without bounds costs the task alone. Journals are here too: lines that
are on disk before anybody is told.
"""
