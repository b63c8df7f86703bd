"""Several watchers of one run as one: the terminal, the live page, the metrics file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.runtime.ending import Watcher
    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.stats import Stats


def together(watchers: Iterable[Watcher | None]) -> Watcher | None:
    """Return one watcher that tells all others; None if there is none."""
    present = [each for each in watchers if each is not None]
    return present[0] if len(present) == 1 else _Watchers(present) if present else None


class _Watchers:
    """Tells several watchers everything; one that is not close hears no details."""

    def __init__(self, watchers: list[Watcher]) -> None:
        self._watchers = watchers
        self.is_close = any(each.is_close for each in watchers)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        for each in self._watchers:
            each(stats, elapsed_s)

    def hear(self, told: Told) -> None:
        for each in self._watchers:
            each.hear(told if each.is_close else told.notable())

    def stopping(self) -> None:
        for each in self._watchers:
            each.stopping()

    def leaving(self) -> None:
        for each in self._watchers:
            each.leaving()
