"""The metadata of a page, read from its kept elements: what it says about itself to programs.

    hreflang       the same page in other languages, by language
    open_graph     `og:`, `article:` and `twitter:` properties
    json_ld        the objects of its JSON-LD scripts; what is no JSON is left out
    machine_use    what is said about use by machines (`web.machine_use`)

All of it is text of a server: lines are cleaned, and numbers of entries and sizes are bounded.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from mannerly.crawler.web.robots_meta import NO_AI
from mannerly.crawler.web.urls import LinkBase

from .elements import KeptElements
from .parsed import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .elements import TagElement

Metadata: TypeAlias = "dict[str, dict[str, object] | list[object]]"

MAX_ENTRIES = 100
MAX_JSON_BYTES = 64 * 1024  # of all scripts of a page

HEADERS = ("x-robots-tag", "tdm-reservation", "tdm-policy")
_SOCIAL = ("og:", "article:", "twitter:")
_TDM = {"tdm-reservation": "tdm_reservation", "tdm-policy": "tdm_policy"}


def header_element(headers: Mapping[str, str]) -> bytes:
    """Return the headers about use by machines as one more kept element; empty without any."""
    found = [(name, value) for name in HEADERS if (value := headers.get(name))]
    if not found:
        return b""
    values = "".join(f' {name}="{escape(clean_line(value))}"' for name, value in found)
    return f"\0\0<header{values}".encode()


def metadata_of(url: str, kept: bytes | None) -> Metadata:
    """Return what a page says about itself; sections without entries are left out."""
    if kept is None:
        return {}
    elements = KeptElements.of(kept)
    base = LinkBase(url)
    found: Metadata = {
        "hreflang": _languages(elements, base),
        "open_graph": _properties(elements),
        "json_ld": _objects(text for tag, text in elements.tags("script") if _is_json_ld(tag)),
        "machine_use": _machine_use(elements),
    }
    return {name: section for name, section in found.items() if section}


def _languages(elements: KeptElements, base: LinkBase) -> dict[str, object]:
    found: dict[str, object] = {}
    for tag, _ in elements.tags("link"):
        language, href = tag.attr("hreflang"), tag.attr("href")
        if language and href and "alternate" in (tag.attr("rel") or "").lower():
            target = base.resolve(href)
            if isinstance(target, str) and len(found) < MAX_ENTRIES:
                found.setdefault(clean_line(language)[:35], target)
    return found


def _properties(elements: KeptElements) -> dict[str, object]:
    found: dict[str, object] = {}
    for tag, _ in elements.tags("meta"):
        name = (tag.attr("property") or tag.attr("name") or "").strip().lower()
        if name.startswith(_SOCIAL) and len(found) < MAX_ENTRIES:
            found.setdefault(clean_line(name)[:100], clean_line(tag.attr("content") or ""))
    return found


def _is_json_ld(tag: TagElement) -> bool:
    return "ld+json" in (tag.attr("type") or "").lower()


def _objects(texts: Iterable[str]) -> list[object]:
    found: list[object] = []
    room = MAX_JSON_BYTES
    for text in texts:
        room -= len(text)
        if room < 0:
            break
        try:
            found.append(json.loads(text, parse_constant=str))
        except (ValueError, RecursionError):
            continue
    return found


def _machine_use(elements: KeptElements) -> dict[str, object]:
    found: dict[str, object] = {}
    robots: set[str] = set()
    for tag, _ in elements.tags("meta"):
        name = (tag.attr("name") or "").strip().lower()
        if name == "robots":
            robots |= _directives(tag.attr("content"))
        elif name in _TDM:
            found.setdefault(_TDM[name], clean_line(tag.attr("content") or ""))
    for tag, _ in elements.tags("header"):
        robots |= _directives(tag.attr("x-robots-tag"))
        for name, key in _TDM.items():
            if value := tag.attr(name):
                found[key] = clean_line(value)
    if robots:
        found["robots"] = sorted(robots)
    return found


def _directives(text: str | None) -> frozenset[str]:
    words = {word.strip().rpartition(":")[2].strip() for word in (text or "").lower().split(",")}
    return NO_AI & words
