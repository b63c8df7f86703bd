"""Where a crawl's state lives. The contract is in `base`, in prose; read that first.

    directory   the crawl's directory: manifest, lock, which files are ours
    sqlite      one shard's state on disk, for its owner; `reader` for everyone else
    memory      the same without a disk
    checkup     whether a file holds together

Nothing is imported here: a simulated crawl needs no SQLite.
"""
