"""`--metrics-file`: the metrics of a run in a file, for the textfile collector of Prometheus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from mannerly.extras import install_words

from .terminal import fail, note

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.stats import Stats
    from mannerly.live.meter import Limits

INSTALL = f"needs one more package: {install_words('metrics')}"


class MetricsFile:
    """Writes the metrics of a run at intervals, each time as a whole, and once more at its end.

    A file that cannot be written is reported once; the crawl goes on.
    """

    is_close = True  # waits of hosts are told to those who watch closely

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

    def hear(self, told: Told) -> None:
        """Events are in the totals."""

    def stopping(self) -> None:
        """There is nothing to show."""

    def leaving(self) -> None:
        """There is nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write()

    def _write(self) -> None:
        from mannerly.exports.whole import whole_file
        from mannerly.service.limit_use import limit_uses
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
