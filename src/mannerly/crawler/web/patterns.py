"""The pattern of a URL: what it has in common with others that one piece of software made.

    https://a.example/blog/2024/05/a-post         /blog/*/*/*
    https://a.example/p/17?sid=8f3a               /p/*?sid
    https://a.example/about                       /*
    https://a.example/3f9c01d2e4b5a6f7/p/17       /#/*/*
    https://a.example/a/b/a/b/a/b/                /…/
    https://a.example/list?dir=up&page=2&sort=n   /list?3 keys

The first folder is kept, because sites are divided by it; one with a digit in it, or a long one, is
#. Deeper segments are counted up to a limit. Of a query the names of one or two keys are kept,
beyond that their number only: n keys have 2ⁿ combinations. A path most of whose segments repeat has
the pattern /…/ whatever its length.

This module knows no page, no queue and no host: patterns are compared within one host.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MAX_FOLDER = 24  # a longer folder is a token rather than a word
_MAX_SEGMENTS = 8
_MAY_REPEAT = 6  # segments; in a shorter path repetition says nothing
_NAMED_KEYS = 2
_CACHED = 4096

_VARIES = re.compile(r"[0-9%]").search
_DEEPER = tuple("/*" * count for count in range(_MAX_SEGMENTS))


def pattern_of(url: str) -> str:
    """Return the pattern of a canonical URL."""
    start = url.index("/", 8)
    end = url.find("?", start)
    path = url[start:] if end < 0 else url[start:end]
    folder_end = path.find("/", 1)
    if folder_end < 0:
        shape = "/#" if _VARIES(path) else "/*"
    elif (segments := path.count("/")) >= _MAY_REPEAT and _repeats(path):
        shape = "/…/"
    else:
        shape = _folder(path[:folder_end]) + _DEEPER[min(segments, _MAX_SEGMENTS) - 1]
    return shape if end < 0 else f"{shape}?{_keys(url[end + 1 :])}"


@lru_cache(maxsize=_CACHED)
def _folder(folder: str) -> str:
    return "/#" if len(folder) > _MAX_FOLDER or _VARIES(folder) else folder


def _repeats(path: str) -> bool:
    segments = path.split("/")
    return len(set(segments)) <= len(segments) // 2 + 1


def _keys(query: str) -> str:
    """Return the names of the keys of a query, in order; if they are many, their number."""
    if "&" not in query:
        return query.partition("=")[0]
    keys = {pair.partition("=")[0] for pair in query.split("&")}
    return "&".join(sorted(keys)) if len(keys) <= _NAMED_KEYS else f"{min(len(keys), 9)} keys"


def section_of(url: str) -> str:
    """Return the part of a site that a URL belongs to: its host and the first directory."""
    start = url.index("//") + 2
    path = url.find("/", start)
    end = url.find("/", path + 1)
    query = url.find("?", path)
    is_directory = end != -1 and (query == -1 or end < query)
    return url[start : end + 1 if is_directory else path + 1]
