"""The ground that stores stand on: a file of SQLite, a Redis or Valkey server, what can be wrong.

    sqlite     a file: create, open, ask, write; its errors in words      files, boot
    client     a connection to a server                   address, sentinel, scripts
    ages       time between processes, without the clock of a server      runs: restarts of it
    ranges     numbers that were read, as far as they make sense

Nothing here knows what is kept: crawls (`mannerly.crawler.store`) or hosts (`mannerly.hosts`).
"""

from __future__ import annotations

_PRODUCTS = ("redis", "rediss", "valkey", "valkeys")
SERVERS = (*_PRODUCTS, *(f"{name}+sentinel" for name in _PRODUCTS))
"""The schemes of a server's URL."""
