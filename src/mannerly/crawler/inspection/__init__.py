"""Inspect a crawl's store, whether the crawl runs or not: status, hosts, one URL explained.

Everything is read beside the owners of the shards and is never in their way; it shows the last
commit. The command prints these values, and the library returns them.
"""
