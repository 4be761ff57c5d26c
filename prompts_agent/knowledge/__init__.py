"""Recipes that a person edits, and the retrieval of those that apply to a job.

    knowledge_base/*.md ─► Recipe ─► filter ─► BM25 + Chroma ─► fusion ─► Evidence

The Markdown files are the truth. The Chroma index is built from them in memory for a run, with a
hashing embedder, so nothing is downloaded and no file is written.
"""
