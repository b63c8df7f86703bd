"""One shard: the conversation between frontier, politeness, fetch, page and store."""
