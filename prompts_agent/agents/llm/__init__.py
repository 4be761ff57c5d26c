"""The language model, where one is configured: it judges and explains, and can add no number.

Everything that it says goes through gates; whatever fails, the deterministic answer stands.
"""
