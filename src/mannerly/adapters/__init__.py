"""Politeness for HTTP clients that you have already: one line for each.

    httpx.AsyncClient(transport=mannerly.adapters.httpx.AsyncPoliteTransport())
    httpx.Client(transport=mannerly.adapters.httpx.PoliteTransport())             httpx2 likewise
    aiohttp.ClientSession(middlewares=(mannerly.adapters.aiohttp.polite(),))
    session.mount("https://", mannerly.adapters.requests.PoliteAdapter())
    ADDONS = {"mannerly.adapters.scrapy.Polite": 0}                                Scrapy settings
    ADDONS = {"mannerly.adapters.scrapy.Durable": 0}                               with its queue

Every request that leaves the client, a redirect's next hop included, waits for a slot of its host,
and its answer is reported to the politeness core (`mannerly.politeness`). A slot ends when the
headers of the answer are there: the body may be read later, or never.

Each module imports its client; the client is not a dependency of mannerly. Adapters wrap the
client's own transport and know nothing of the crawler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from . import aiohttp as aiohttp
    from . import httpx as httpx
    from . import httpx2 as httpx2
    from . import requests as requests
    from . import scrapy as scrapy

_CLIENTS = frozenset({"aiohttp", "httpx", "httpx2", "requests", "scrapy"})


def __getattr__(name: str) -> ModuleType:
    if name not in _CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_CLIENTS])
