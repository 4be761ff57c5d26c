"""Renders a comparison of two runs: for a terminal and as Markdown. Decides nothing."""
