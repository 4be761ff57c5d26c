"""The critic: checks drafts against rules, memory, evidence and their own words."""
