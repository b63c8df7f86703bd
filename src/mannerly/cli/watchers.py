"""Watchers of a run besides the terminal: the live page (`--dashboard`), the file of metrics.

`together` makes one watcher of several. The file of `--metrics-file` is for the textfile collector
of Prometheus.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from mannerly.crawler.runtime.ending import Watcher
from mannerly.extras import install_words

from .command_line import ANYWHERE
from .serve import address, fail_without_packages, is_loopback
from .terminal import fail, note

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats
    from mannerly.live.meter import Limits


def together(watchers: Iterable[Watcher | None]) -> Watcher | None:
    """Return one watcher that tells all others; None if there is none."""
    present = [each for each in watchers if each is not None]
    return present[0] if len(present) == 1 else _Watchers(present) if present else None


class _Watchers(Watcher):
    """Tells several watchers everything; one that is not close hears no details."""

    def __init__(self, watchers: list[Watcher]) -> None:
        self._watchers = watchers
        self.is_close = any(each.is_close for each in watchers)

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        for each in self._watchers:
            each(stats, elapsed_s)

    def hear(self, batch: EventBatch) -> None:
        for each in self._watchers:
            each.hear(batch if each.is_close else batch.notable())

    def stopping(self) -> None:
        for each in self._watchers:
            each.stopping()

    def leaving(self) -> None:
        for each in self._watchers:
            each.leaving()


INSTALL = f"needs one more package: {install_words('metrics')}"


class MetricsFile(Watcher):
    """Writes the metrics of a run at intervals, each time as a whole, and once more at its end.

    A file that cannot be written is reported once; the crawl goes on.
    """

    is_close = True  # waits of hosts are reported to those who watch closely

    def __init__(self, path: Path, limits: Limits, *, interval_s: float, hosts: int) -> None:
        try:
            from mannerly.service.metrics import metrics_text  # noqa: F401 - is it installed?
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mannerly"):
                raise
            fail(f"--metrics-file {INSTALL}")
        if not path.absolute().parent.is_dir():
            fail(f"--metrics-file {path}: there is no directory {path.parent}")
        self._path = path
        self._limits = limits
        self._interval_s = interval_s
        self._hosts = hosts
        self._next_s = 0.0
        self._latest: tuple[Stats, float] | None = None
        self._has_failed = False

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Take a report, and write it if it is time."""
        self._latest = stats, elapsed_s
        if elapsed_s >= self._next_s:
            self._next_s = elapsed_s + self._interval_s
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def _write(self) -> None:
        from mannerly.exports.whole import whole_file
        from mannerly.live.meter import limit_uses
        from mannerly.service.metrics import Reading, metrics_text

        if self._latest is None:
            return
        stats, elapsed_s = self._latest
        reading = Reading(stats, limit_uses(self._limits, stats, elapsed_s), time.time())
        try:
            with whole_file(self._path, sync=False) as file:
                file.write(metrics_text(reading, hosts=self._hosts))
        except OSError as error:
            if not self._has_failed:
                note(f"--metrics-file {self._path} cannot be written: {error.strerror}")
            self._has_failed = True


class LivePage(Watcher):
    """The page of one crawl: `with LivePage(place, location, limits) as page: …`."""

    is_close = True

    def __init__(self, place: str, location: str, limits: Limits) -> None:
        from mannerly.service.beside import PACKAGES, Dashboard, PageOrder, name_of

        if not all(map(find_spec, PACKAGES)):
            fail_without_packages("--dashboard")
        host, port = ("127.0.0.1", 0) if place == ANYWHERE else address("--dashboard", place)
        # On loopback, too: another user of this machine must not steer the crawl, nor lead it into
        # the networks that its operator has opened.
        self._page = Dashboard(
            PageOrder(
                location,
                name_of(location),
                limits,
                host,
                port,
                allow_hosts=(host,),
                token=_token(),
                has_open_metrics=is_loopback(host),
            )
        )

    def __enter__(self) -> Self:
        ready = self._page.ready()
        if ready.error:
            self._page.close()
            fail(f"--dashboard: {ready.error}")
        note(f"Live page: {ready.address}")
        return self

    def __exit__(self, *_: object) -> None:
        self._page.close()

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Show a report."""
        self._page.show(stats, elapsed_s)

    def hear(self, batch: EventBatch) -> None:
        """Show what happened."""
        self._page.hear(batch)


def _token() -> str:
    import secrets

    return secrets.token_urlsafe(32)
