"""A whole crawl: make or take up its directory, run its engine or engines, say how it ended.

With one process the engine runs here. With more, every one is a child (`process`), and here is
only the `conductor`: it adds up what they report, restarts one that died, decides when all is
finished, and passes signals on. Either way the main thread never blocks for long.

Ctrl-C once (or SIGTERM) drains: nothing new starts, what is under way may finish. Twice stops at
once. Both leave a crawl that can be taken up again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.sqlite.directory import CrawlDirectory, Manifest, is_crawl, wipe
from mannerly.crawler.store.sqlite.inbox import unread
from mannerly.crawler.store.sqlite.reader import SqliteReader
from mannerly.crawler.web.urls import canonical
from mannerly.politeness.clock import MonotonicClock

from .ending import Ending, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mannerly.crawler.stats import Stats


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """How a crawl ended, and with what."""

    ending: Ending
    stats: Stats
    seconds: float
    pending: int


def crawl(
    settings: CrawlSettings,
    seeds: Sequence[str],
    data_dir: Path,
    *,
    fresh: bool = False,
    watch: Callable[[Stats, float], None] | None = None,
) -> CrawlResult:
    """Crawl from `seeds`, or take up the crawl that `data_dir` holds.

    Raises:
        StoreError: the directory is in use, damaged, or not a crawl's.
        ValueError: a seed is no URL, a setting is out of its range.
    """
    if fresh:
        wipe(data_dir)
    directory, is_resumed = _open(settings, seeds, data_dir)
    with directory, Signals() as signals:
        manifest = directory.manifest
        settings = stored_settings(manifest, settings) if is_resumed else settings
        workers = min(settings.processes, manifest.shards)
        if workers == 1:
            from .process import run_alone as runner
        else:
            from .supervisor import conduct as runner
        clock = MonotonicClock()
        began = clock.now()
        ending, stats = runner(
            replace(settings, processes=workers),
            directory,
            signals,
            watch or _nobody_watches,
            is_resumed=is_resumed,
        )
        seconds, pending = clock.now() - began, _pending(directory)
    if ending is Ending.MAX_URLS and not pending:
        ending = Ending.FINISHED
    if ending is Ending.FINISHED and not is_resumed and not stats.fetched:
        ending = Ending.NO_SEED
    return CrawlResult(ending, stats, seconds, pending)


def _nobody_watches(_stats: Stats, _elapsed_s: float) -> None:
    """Nobody asked to be told."""


def _pending(directory: CrawlDirectory) -> int:
    """URLs that are not fetched yet, wherever they wait."""
    total = 0
    for number in range(directory.manifest.shards):
        with SqliteReader.beside(directory.path, number) as reader:
            counts = reader.counts()
        total += counts.queued + counts.outgoing + unread(directory.path, number)
    return total


def _open(
    settings: CrawlSettings, seeds: Sequence[str], data_dir: Path
) -> tuple[CrawlDirectory, bool]:
    if is_crawl(data_dir):
        return CrawlDirectory.open(data_dir), True
    texts = [_seed(seed) for seed in seeds]
    if not texts:
        raise ValueError("a crawl needs at least one URL to start from")
    settings.scope_of(texts)
    manifest = Manifest.new(
        seeds=list(dict.fromkeys(texts)),
        settings=msgspec.to_builtins(settings),
        shards=settings.processes,
        created_at=MonotonicClock().wall(),
    )
    return CrawlDirectory.create(data_dir, manifest), False


def _seed(text: str) -> str:
    url = canonical(text)
    if url is None:
        raise ValueError(f"{text!r} is not an http or https URL")
    return url


def stored_settings(manifest: Manifest, now: CrawlSettings) -> CrawlSettings:
    """A resumed crawl keeps what decides about URLs, and takes the rest from this run."""
    kept: CrawlSettings = msgspec.convert(manifest.settings, CrawlSettings, strict=False)
    return replace(
        now,
        scope=kept.scope,
        include=kept.include,
        exclude=kept.exclude,
        max_depth=kept.max_depth,
        seeding=kept.seeding,
        drop_tracking=kept.drop_tracking,
    )
