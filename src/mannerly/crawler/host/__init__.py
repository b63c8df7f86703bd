"""Everything that a shard knows of its hosts: one object each, in one registry."""
