"""Lua scripts: put together from the files of a package, and called by their digest."""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple


class Script(NamedTuple):
    """A script and its digest."""

    name: str
    text: str
    digest: str


def assembled(package: str, name: str, parts: tuple[str, ...] = (), before: str = "") -> Script:
    """Return a script by the name of its file in the folder `scripts` of a package.

    The clock, other files of the folder (`parts`) and the text `before` are put in front of it.
    """
    folder = files(package) / "scripts"
    texts = [(files(__package__) / "clock.lua").read_text("utf-8")]
    texts += [(folder / f"{part}.lua").read_text("utf-8") for part in (*parts, name)]
    text = "\n".join([before, *texts] if before else texts)
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())
