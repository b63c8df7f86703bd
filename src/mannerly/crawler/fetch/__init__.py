"""The fetch stage: a URL goes in, an answer or a typed error comes out.

`base` is the contract, `curl` the network, `fake` the same in virtual time, `guard` the judge of
every address that is connected.
"""

from .base import DEFAULT_MAX_BYTES, Fetched, Fetcher, FetchError, LocalError, Request
from .guard import NetworkGuard, Verdict
from .settings import FetchSettings

__all__ = [
    "DEFAULT_MAX_BYTES",
    "FetchError",
    "FetchSettings",
    "Fetched",
    "Fetcher",
    "LocalError",
    "NetworkGuard",
    "Request",
    "Verdict",
]
