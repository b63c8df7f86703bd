"""A small HTTP client of the standard library: the servers are judged by somebody else's code."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Fetched(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


@pytest.fixture
def fetch() -> Iterator[Callable[..., Fetched]]:
    """`fetch(url, method="GET", **headers)`; one kept-alive connection per host and test."""
    connections: dict[str, http.client.HTTPConnection] = {}

    def ask(url: str, method: str = "GET", **headers: str) -> Fetched:
        parts = urlsplit(url)
        connection = connections.get(parts.netloc)
        if connection is None:
            connection = http.client.HTTPConnection(parts.netloc, timeout=10)
            connections[parts.netloc] = connection
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        spelled = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, headers={"User-Agent": "test/1"} | spelled)
        response = connection.getresponse()
        return Fetched(response.status, response.headers, response.read())

    yield ask
    for connection in connections.values():
        connection.close()
