"""The crawls of a server, by name."""

from __future__ import annotations

from mannerly.database.address import parse

from .client import ValkeyServer
from .keys import CRAWLS


def names_in(url: str) -> list[str]:
    """Return the names of the crawls in a server, in order."""
    server = ValkeyServer(parse(url, needs_name=False))
    try:
        return sorted(name.decode("utf-8", "replace") for name in server.ask("SMEMBERS", CRAWLS))
    finally:
        server.close()
