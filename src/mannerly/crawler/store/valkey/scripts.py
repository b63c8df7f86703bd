"""The Lua scripts of a crawl, a file each. Loaded into a server once, called by digest.

`owner.lua` is put in front of those that an owner of a shard calls: it checks the fence. Those that
take URLs know the places of their values (`layout`).
"""

from __future__ import annotations

from functools import cache

from mannerly.database.scripts import Script, assembled

from .layout import constants

_PARTS = {
    "commit": ("queue", "arrive", "links"),
    "admit": ("queue",),
    "bring_back": ("queue",),
}
_OWNED = ("commit", "admit", "take", "bring_back", "rest", "release", "forget", "sent")


@cache
def script(name: str) -> Script:
    """Return a script by the name of its file."""
    fence = ("owner",) if name in _OWNED else ()
    before = constants() if name in _PARTS else ""
    return assembled(__package__, name, (*fence, *_PARTS.get(name, ())), before)
