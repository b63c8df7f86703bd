"""The errors of a crawl, grouped by kind and host: an index that reads each record once.

Records are only appended, so every update goes on where the last one stopped. When URLs are brought
back (`retry`), their records go away: then the index is made anew.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mannerly.crawler.inspection.reasons import error_words
from mannerly.crawler.model import is_failed

if TYPE_CHECKING:
    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import PageRecord

MOST_GROUPS = 5000  # kinds x hosts that are kept apart
OTHER = "other hosts"
EXAMPLES = 20  # URLs of a group that are kept, the latest ones
_FAILED_FROM = 400  # the first status that is an error


class _Group:
    """The errors of one kind at one host."""

    __slots__ = ("can_retry", "examples", "last", "urls")

    def __init__(self) -> None:
        self.urls = 0
        self.last = 0.0
        self.examples: deque[str] = deque(maxlen=EXAMPLES)
        self.can_retry = False  # they have no answer, so `retry` asks for them again


class ErrorIndex:
    """Groups the errors of one crawl; `update` brings it up to date."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self._positions: dict[int, int] = {}  # by shard: the last record that was read
        self._failed = 0

    def update(self, crawl: View) -> None:
        """Read the records that are new."""
        failed = sum(reader.counts().failed for reader in crawl.readers)
        if failed < self._failed:  # some were brought back
            self._groups.clear()
            self._positions.clear()
        self._failed = failed
        for shard, reader in enumerate(crawl.readers):
            for position, record in reader.pages(after=self._positions.get(shard, 0)):
                self._positions[shard] = position
                if kind := _kind(record):
                    self._add(kind, record)

    def described(self) -> dict[str, Any]:
        """Return the kinds, most URLs first, each with its hosts."""
        kinds: dict[str, dict[str, Any]] = {}
        for (kind, host), group in self._groups.items():
            new: dict[str, Any] = {
                "code": kind,
                "words": _words(kind),
                "can_retry": group.can_retry,
                "urls": 0,
                "last": 0.0,
                "example": "",
                "hosts": [],
            }
            found = kinds.setdefault(kind, new)
            found["urls"] += group.urls
            if group.last >= found["last"]:
                found["last"], found["example"] = group.last, group.examples[-1]
            one = {"host": host, "urls": group.urls, "last": group.last}
            found["hosts"].append({**one, "example": group.examples[-1]})
        for found in kinds.values():
            found["hosts"].sort(key=lambda each: -each["urls"])
            del found["hosts"][100:]
        listed = sorted(kinds.values(), key=lambda each: -each["urls"])
        return {"urls": sum(each["urls"] for each in listed), "kinds": listed}

    def urls(self, code: str, host: str) -> list[str]:
        """Return the latest URLs of one kind at one host, at most `EXAMPLES`."""
        group = self._groups.get((code, host))
        return [] if group is None else list(group.examples)[::-1]

    def _add(self, kind: str, record: PageRecord) -> None:
        key = (kind, record.host)
        if key not in self._groups and len(self._groups) >= MOST_GROUPS:
            key = (kind, OTHER)
        group = self._groups.setdefault(key, _Group())
        group.urls += 1
        group.can_retry |= is_failed(record)
        if record.fetched_at >= group.last:
            group.last = record.fetched_at
            group.examples.append(record.url)


def _kind(record: PageRecord) -> str:
    """Return the code of an error: the status of an answer, else the reason; nothing: no error."""
    if record.status is not None and record.status >= _FAILED_FROM:
        return str(record.status)
    return (record.error or "").partition(": ")[0]


def _words(kind: str) -> str:
    if not kind.isdigit():
        words = error_words(kind)
        return words[:1].upper() + words[1:]
    from http import HTTPStatus

    try:
        return f"{kind} {HTTPStatus(int(kind)).phrase}"
    except ValueError:
        return kind
