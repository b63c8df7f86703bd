"""The Lua scripts, a file each. They are loaded once into a server and called by their digest.

`owner.lua` is put in front of those that an owner of a shard calls: it checks the fence. Those that
take URLs know the places of their values (`layout`).
"""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

from .layout import constants

_PARTS = {
    "commit": ("queue", "arrive", "links"),
    "admit": ("queue",),
    "bring_back": ("queue",),
}
_OWNED = ("commit", "admit", "take", "bring_back", "rest", "release", "forget")


class Script(NamedTuple):
    """A script and its digest."""

    name: str
    text: str
    digest: str


@cache
def script(name: str) -> Script:
    """Return a script by the name of its file."""
    folder = files(__package__) / "scripts"
    parts = [folder / "clock.lua"]
    if name in _OWNED:
        parts.append(folder / "owner.lua")
    parts += [folder / f"{each}.lua" for each in _PARTS.get(name, ())]
    parts.append(folder / f"{name}.lua")
    texts = [part.read_text("utf-8") for part in parts]
    text = "\n".join([constants(), *texts] if name in _PARTS else texts)
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())
