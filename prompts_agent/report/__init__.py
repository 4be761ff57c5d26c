"""Lays a Report out as text, JSON or Markdown, and publishes its schema; decides nothing.

Names that come from a trace were written by others: each renderer makes them harmless in its own
medium (control characters on a terminal, links and mentions in Markdown).
"""
