"""Checks of links: the target of a link, and the anchor in it.

A check asks whether the target of a link exists. Its answer is recorded and never parsed.

    CHECK       asked with HEAD: the answer without its body
    CHECK_GET   the same with GET, where a server refuses HEAD

A redirect leads to a check of its target, whatever the scope of the crawl: it belongs to the link.

The anchors of a page are the ids, and the names of `<a>`, that a link with a fragment can lead to.
They are kept with the elements of a page (`elements`), in tags that no page has, and followed by a
mark: elements that were cut off lack it, and then nothing is said about the page's anchors.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.urls import host_key_of

from . import scan
from .elements import KeptElements
from .links import REDIRECTS, dead_end, redirect_target
from .record import Harvest, page_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry, Fetched

    from .links import LinkRules
    from .parsed import Elements


# Statuses with which servers refuse HEAD; what they say of the page is asked with GET.
METHOD_REFUSED = frozenset({400, 403, 405, 406, 500, 501})
_PRIORITY = 64  # after the seeds of a host


def check_candidates(urls: Iterable[str]) -> list[Candidate]:
    """Return canonical URLs as targets that are to be checked."""
    return [Candidate(url, host_key_of(url), 1, _PRIORITY, None, kind=Kind.CHECK) for url in urls]


def harvest_check(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a check, and the target of a redirect as the next one."""
    record = page_record(entry, answer, wall)
    if answer.is_truncated:
        record = record._replace(error=None)
    if answer.status not in REDIRECTS:
        return Harvest(record, [], {})
    target = redirect_target(entry, answer, rules)
    record = record._replace(redirect_to=target)
    error = dead_end(entry, target, rules)
    if target is None or error is not None:
        return Harvest(record._replace(error=error), [], {})
    if rules.scope.excludes(target):
        return Harvest(record, [], {SkipReason.EXCLUDED.value: 1})
    (candidate,) = check_candidates([target])
    return Harvest(record, [candidate._replace(parent=entry.url, hops=entry.hops + 1)], {})


# ---------------------------------------------------------------------- anchors


_ANCHOR, _COMPLETE = "mannerly-anchor", "mannerly-anchors"


def read_with_anchors(body: bytes, codec: str, limit: int) -> Elements:
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
