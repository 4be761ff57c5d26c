"""Explain: the whole sum behind a proposal of a stored report, and why one beats another, term by
term. Assembled from the report and the table of formulas; nothing is estimated anew.
"""
