"""What may be set about fetching, each number with its reason. Checked once, when made.

The limits are there for the hostile web: none of them should be met by an honest site.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADER_VALUE = re.compile(r"[\t -~]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How to fetch. Durations in seconds, sizes in bytes."""

    user_agent: str = "mannerly"
    connect_timeout_s: float = 10.0  # name lookup, connect and TLS together
    min_bytes_per_s: int = 1024  # slower than this for `min_speed_window_s` is a slow-loris
    min_speed_window_s: int = 30
    # What browsers take; interim answers and trailers count too. curl itself ends at 300 KB.
    max_header_bytes: int = 256 * 1024
    max_headers: int = 1000
    # Open at once, busy or kept alive. Above the 512 requests in flight that are the default,
    # below the 1,024 descriptors that most systems give a process.
    max_connections: int = 768
    dns_cache_s: int = 300  # a tenth longer at most: see `curl.py`
    proxy: str | None = None  # the proxy variables of the environment are ignored
    ca_file: str | None = None  # None: see `trust.py`
    unverified_hosts: frozenset[str] = frozenset()  # hosts whose certificate is not checked

    def __post_init__(self) -> None:
        check_header("User-Agent", self.user_agent)
        for name in (
            "connect_timeout_s",
            "min_bytes_per_s",
            "min_speed_window_s",
            "max_header_bytes",
            "max_headers",
            "max_connections",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")


def check_header(name: str, value: str) -> None:
    """Raise ValueError for a header that could smuggle a second one (line breaks, NUL)."""
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not _HEADER_VALUE.fullmatch(value):
        raise ValueError(f"not a valid header: {name!r}: {value!r}")
