"""Processes, loops and limits: everything around the shards."""
