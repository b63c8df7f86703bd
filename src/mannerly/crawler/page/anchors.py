"""The anchors of a page: the ids, and the names of `<a>`, that a link with a fragment can lead to.

They are kept with the elements of a page (`elements`), in tags that no page has, and followed by a
mark: elements that were cut off lack it, and then nothing is said about the page's anchors.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from . import scan
from .elements import KeptElements

if TYPE_CHECKING:
    from .parsed import Elements

_ANCHOR, _COMPLETE = "mannerly-anchor", "mannerly-anchors"


def read_all(body: bytes, codec: str, limit: int) -> Elements:
    """Read a page as `scan.read_all` does, and keep its anchors, too. It takes a tree of it."""
    from .tree import parsed  # when it is first needed: see `scan`

    elements = scan.read_all(body, codec, limit)
    names: dict[str, None] = {}
    for each in parsed(body, codec).select("[id], a[name]"):
        for name in (each.attr("id"), each.attr("name") if each.tag == "a" else None):
            if name:
                names[name] = None
    tags = [f'<{_ANCHOR} name="{escape(name)}"' for name in names] + [f"<{_COMPLETE}"]
    text = "".join(f"\0\0{tag.replace(chr(0), '')}" for tag in tags)
    return elements._replace(
        kept=(elements.kept or b"utf-8") + text.encode("ascii", "xmlcharrefreplace")
    )


def anchors_of(kept: bytes | None) -> set[str] | None:
    """Return the anchors of a page; None if they are not known."""
    if kept is None or not kept.endswith(f"<{_COMPLETE}".encode()):
        return None
    return {tag.attr("name") or "" for tag, _ in KeptElements.of(kept).tags(_ANCHOR)}


def leads_to_anchor(fragment: str, anchors: set[str]) -> bool:
    """Return whether a fragment leads somewhere: to an anchor, to the top, or to a script's view.

    `#/…` and `#!…` are addresses of applications in the page, `#:~:…` names words of its text.
    """
    if fragment.startswith(("/", "!", ":~:")) or fragment.lower() in ("", "top"):
        return True
    name = fragment.partition(":~:")[0]
    return name in anchors or unquote(name) in anchors
