"""Serving load: traffic, and what it asks of a deployment."""
