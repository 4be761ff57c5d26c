"""Two profiles of one job, before and after a change: lined up, compared in seconds, and turned
into a case of the knowledge base.
"""
