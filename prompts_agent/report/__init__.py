"""Renders a Report as text, JSON or Markdown; decides nothing."""
