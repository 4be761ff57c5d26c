"""The sharding planner: enumerates every legal layout, estimates, ranks, and drafts proposals."""
