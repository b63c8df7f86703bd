"""A whole crawl: make or take up its directory, run its engine or engines, say how it ended.

With one process the engine runs here. With more, every one is a child (`process`), and here is
only the `conductor`: it adds up what they report, restarts one that died, decides when all is
finished, and passes signals on. Either way the main thread never blocks for long.

Ctrl-C once (or SIGTERM) drains: nothing new starts, what is under way may finish. Twice stops at
once. Both leave a crawl that can be taken up again.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import msgspec

from mannerly.politeness.clock import MonotonicClock

from .model import Candidate
from .pipeline import Rules, has_moved, seed_candidates, sitemap_candidates
from .scope import Scope
from .settings import CrawlSettings
from .sources import COMMONCRAWL, CT
from .store.directory import CrawlDirectory, Manifest, is_crawl, wipe
from .store.inbox import unread
from .store.reader import SqliteReader
from .urls import Url, UrlRules, canonical, host_key_of, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    from .model import Entry, PageRecord, Skipped
    from .stats import Stats
    from .store.base import ShardStore

WATCH_S = 0.25


class Ending(Enum):
    """Why a crawl ended."""

    FINISHED = "finished"
    MAX_URLS = "max_urls"
    DURATION = "duration"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NO_SEED = "no_seed"


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """How a crawl ended, and with what."""

    ending: Ending
    stats: Stats
    seconds: float
    pending: int


class Signals:
    """SIGINT and SIGTERM as facts to be looked at, not as exceptions out of nowhere."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.is_terminated = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.interrupts += 1
        if number == signal.SIGTERM:
            self.is_terminated = True

    @property
    def wants_end(self) -> bool:
        """Start nothing more."""
        return self.interrupts > 0

    @property
    def wants_end_now(self) -> bool:
        """Do not even wait for what is under way."""
        return self.interrupts > 1

    @property
    def ending(self) -> Ending:
        """How a crawl that was told to end has ended."""
        return Ending.TERMINATED if self.is_terminated else Ending.STOPPED


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
    from .conductor import conduct
    from .process import run_alone

    if fresh:
        wipe(data_dir)
    directory, is_resumed = _open(settings, seeds, data_dir)
    with directory, Signals() as signals:
        manifest = directory.manifest
        settings = stored_settings(manifest, settings) if is_resumed else settings
        workers = min(settings.processes, manifest.shards)
        runner = run_alone if workers == 1 else conduct
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
    Scope(tuple(texts), settings.scope, settings.include, settings.exclude, settings.max_depth)
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


def rules_of(settings: CrawlSettings, manifest: Manifest) -> Rules:
    """What decides about links in this crawl."""
    from .parse.links import HrefMemory

    urls = (
        UrlRules()
        if settings.drop_tracking
        else UrlRules(drop_params=frozenset(), drop_prefixes=())
    )
    scope = Scope(
        tuple(manifest.seeds),
        settings.scope,
        settings.include,
        settings.exclude,
        settings.max_depth,
    )
    return Rules(scope, settings.agent_token, settings.max_redirects, urls, HrefMemory())


def first_candidates(settings: CrawlSettings, manifest: Manifest) -> list[Candidate]:
    """The seeds, and where their sitemaps usually are."""
    candidates = seed_candidates(manifest.seeds)
    if settings.seeding in ("sitemap", "all"):
        origins = dict.fromkeys(url[: url.index("/", 8)] for url in manifest.seeds)
        candidates += sitemap_candidates([f"{origin}/sitemap.xml" for origin in origins], None)
    sites = dict.fromkeys(site_of(Url.of(url).host) for url in manifest.seeds)
    for source, template in ((CT, settings.ct_url), (COMMONCRAWL, settings.commoncrawl_url)):
        if settings.seeding in (source.name, "all"):
            urls = (source.address(template, site) for site in sites)
            candidates += [Candidate(url, host_key_of(url), source.depth, 0, None) for url in urls]
    return candidates


def moved_seeds(store: ShardStore, seeds: Sequence[str]) -> list[str]:
    """Where seeds redirected to in an earlier run, so that the scope follows them again."""
    targets = []
    for seed in seeds:
        url: str | None = seed
        for _ in range(10):
            known: Entry | PageRecord | Skipped | None = store.find(url) if url else None
            target = getattr(known, "redirect_to", None)
            if url is None or target is None or not has_moved(url, target):
                break
            targets.append(target)
            url = target
    return targets
