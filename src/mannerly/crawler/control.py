"""Control records: small orders to a crawl, kept in its store.

Anybody who can reach the store may add one: a second terminal, the library's handle, later a live
page or another machine. The owner of each shard reads the new ones on its tick (a quarter of a
second) and acts on them. A crawl that is not running acts on them when it is resumed.

Two sorts:

    lasting    Pause, Unpause, SetOption, Exclude, HostPause, HostResume, HostSet
               the sum of all of them is in force, so all are read again at every start
    once       AddSeeds, HostForget, Stop
               each shard acts on each number once (`Batch.applied` keeps how far it has come);
               a Stop from before the present run is void

This file holds values only: what they do is in `shard` and `runtime`.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class _Control(msgspec.Struct, frozen=True, tag_field="order", tag=str.lower):
    """Base of all control records: stored as JSON, with the class name under "order"."""


class Pause(_Control, frozen=True):
    """Start no request until `Unpause`; requests under way come to their end."""


class Unpause(_Control, frozen=True):
    """Go on after `Pause`."""


class Stop(_Control, frozen=True):
    """End this run as SIGTERM does: drain, commit, exit 143. The crawl can be resumed."""


class AddSeeds(_Control, frozen=True):
    """Queue these URLs (canonical), and let the scope include them."""

    urls: tuple[str, ...]


class SetOption(_Control, frozen=True):
    """Change an option of the running crawl: max_rate, max_urls, duration or workers."""

    name: str
    value: float | None  # None: no limit


class Exclude(_Control, frozen=True):
    """Fetch no URL that matches this glob from now on; queued ones are dropped at their turn."""

    glob: str


class HostPause(_Control, frozen=True):
    """Send nothing to a host until `HostResume`."""

    host: str


class HostResume(_Control, frozen=True):
    """End a `HostPause`, and give a host that was given up another chance."""

    host: str


class HostSet(_Control, frozen=True):
    """Set the pace of one host; None leaves a value as it is."""

    host: str
    delay_s: float | None = None  # smallest gap between requests
    max_rate: float | None = None  # requests a second
    per_host: int | None = None  # requests under way at once


class HostForget(_Control, frozen=True):
    """Forget what was learned about a host; waits that it asked for stay."""

    host: str


Control: TypeAlias = (
    Pause
    | Unpause
    | Stop
    | AddSeeds
    | SetOption
    | Exclude
    | HostPause
    | HostResume
    | HostSet
    | HostForget
)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Control).decode
