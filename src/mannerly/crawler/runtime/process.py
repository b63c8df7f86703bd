"""Where an engine runs: in this process, or as one of several children of a conductor.

A child owns its shards alone. It reports to the conductor four times a second, at once when it is
asked and has nothing to do, and does what the conductor says (`report`).

A child takes no signals: the conductor does, and says what follows. If the conductor is gone, its
end of the pipe is closed, and that means stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError
from mannerly.politeness.clock import MonotonicClock

from .budget import LocalBudget
from .ending import WATCH_S, Ending, told_to_end
from .engine import TICK_S
from .report import Report, tell
from .worker import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.sqlite.directory import CrawlDirectory, Manifest

    from .ending import Signals
    from .engine import Budget


def run_alone(
    settings: CrawlSettings,
    directory: CrawlDirectory,
    signals: Signals,
    watch: Callable[[Stats, float], None],
    *,
    is_resumed: bool,
) -> tuple[Ending, Stats]:
    """Run all shards in this process until something ends the crawl."""
    clock = MonotonicClock()
    budget = LocalBudget(settings.max_urls)
    manifest = directory.manifest
    numbers = list(range(manifest.shards))
    began = next_watch = clock.now()
    ending: Ending | None = None
    with Workplace(
        settings, directory.path, manifest, numbers, budget, is_resumed=is_resumed
    ) as place:
        engine = place.engine
        while ending is None or (engine.in_flight and not signals.wants_end_now):
            engine.turn(TICK_S)
            now = clock.now()
            # With nothing under way this may be the end, and nobody should wait for it.
            if now < next_watch and engine.in_flight and not signals.wants_end_now:
                continue
            if now >= next_watch:
                next_watch = now + WATCH_S
                watch(engine.stats(), now - began)
            if ending is None:
                is_spent = budget.is_spent and engine.in_flight == 0
                ending = told_to_end(settings, signals, now - began, is_spent=is_spent)
                engine.is_draining = ending is not None
            if ending is None and place.is_idle:
                ending = Ending.FINISHED
    return ending, engine.stats()


def work(
    settings: CrawlSettings,
    path: Path,
    manifest: Manifest,
    numbers: list[int],
    budget: Budget,
    pipe: Connection,
    is_resumed: bool,  # noqa: FBT001 - a process takes no keywords from its starter
) -> None:
    """A child's life. Signals are blocked: see `conductor`."""
    try:
        with Workplace(settings, path, manifest, numbers, budget, is_resumed=is_resumed) as place:
            number = _obey(place, pipe)
        last = place.engine.stats()
        tell(pipe, Report(last, number, is_idle=False, in_flight=0, received=place.received))
    except StoreError as error:
        tell(pipe, error)


def _obey(place: Workplace, pipe: Connection) -> int:
    """Crawl and report until told to stop; returns the last round."""
    clock, engine = MonotonicClock(), place.engine
    number, next_report, was_asked = 0, clock.now(), False
    place.listen_to(pipe.fileno())
    while True:
        try:
            while pipe.poll():
                word, *rest = pipe.recv()
                if word == "stop":
                    return number
                if word == "drain":
                    engine.is_draining = True
                else:
                    number, was_asked = rest[0], True
                    engine.hurry()
        except (EOFError, OSError):
            return number
        engine.turn(TICK_S)
        now = clock.now()
        is_due = now >= next_report
        if not is_due and not was_asked:
            continue
        is_idle = place.is_idle
        if is_due or is_idle:
            next_report, was_asked = now + WATCH_S, False
            report = Report(engine.stats(), number, is_idle, engine.in_flight, place.received)
            tell(pipe, report)
