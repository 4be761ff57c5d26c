"""What a pull request needs besides a report: what changed, a gate, and one comment that stays."""
