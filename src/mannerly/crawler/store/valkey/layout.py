"""The layout of URLs in the payloads of scripts: this is the only place that defines it.

A payload has many URLs, and each has several values. They are written one after the other into one
list, because a list of lists takes several times the CPU on both sides. The classes here say which
values those are, in their order. Python writes and reads them by name; scripts get the same names
as constants (`constants`): the value `seq` of a `LeavingUrl` that begins at place `i` of a list is
`list[i + LEAVING_SEQ]`, and the next URL begins at `i + LEAVING_SIZE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class LeavingUrl(NamedTuple):
    """A URL that leaves the queue: in `pages` and `dropped` of `commit.lua`."""

    host: int  # its place in `hosts`, from 1
    priority: int
    seq: int
    entry: str  # as it is queued: number and packed entry
    # Of a page the kind of its record (`kind_of_record`). Of a dropped URL the reason and the
    # entry if it is given up, else "".
    how: str


class FoundUrl(NamedTuple):
    """A URL that may be new: in `found` and `links` of `commit.lua`.

    What it carries, if anything, is in a table beside it, by its place (`batches.offered`).
    """

    print: str
    address: int  # of its bucket
    host: int  # its place in `hosts`, from 1
    priority: int
    entry: str  # packed, without a number


class BackUrl(NamedTuple):
    """A URL that comes back into the queue: in `back` of `bring_back.lua`."""

    source: str  # the set that it is in: f failed, g given up, k skipped, r it keeps its record
    seq: int
    host: str
    priority: int
    entry: str  # packed, without a number
    kind: str  # of its record; "": it has none


_FIELDS = {
    "LEAVING": LeavingUrl._fields,
    "FOUND": FoundUrl._fields,
    "BACK": BackUrl._fields,
}


def leaving_urls(values: list[Any]) -> Iterator[LeavingUrl]:
    """Yield the URLs of a list."""
    size = len(LeavingUrl._fields)
    for at in range(0, len(values), size):
        yield LeavingUrl._make(values[at : at + size])


def constants() -> str:
    """Return the places of all values, as Lua."""
    lines = []
    for name, fields in _FIELDS.items():
        names = ", ".join(f"{name}_{field.upper()}" for field in (*fields, "size"))
        lines.append(f"local {names} = {', '.join(map(str, range(len(fields) + 1)))}")
    return "\n".join(lines)
