"""A sharding advisor: reads the profile of an LLM job and proposes better mesh layouts."""

__version__ = "0.1.0"
