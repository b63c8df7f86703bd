"""The crawler: the way of a URL from seed to store, every request past the politeness core."""
