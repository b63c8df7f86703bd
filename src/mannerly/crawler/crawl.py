"""READ FIRST. A crawl as a program sees it, and the way of a URL through it.

    seeds ─► scope ─► frontier ─► politeness ─► fetch ─► page ─► links ─┐
               ▲    (whose turn?) (may it go?)                          │
               └──────────────── new? scope? ◄──────────────────────────┘
                                   │ one commit: page, links, host state
                                   ▼
                                 store ─► exports, status, the program

1. A seed becomes a `Candidate` (`web/seeds.py`), and so does every link found later
   (`page/harvest.py`). `web/urls.py` gives it its one spelling, `web/scope.py` says whether it
   belongs to the crawl.
2. The store decides which candidates are new (`store/base.py`); those become `Entry`s in the
   queue of their host. The links of other shards are handed over to their owners.
3. The frontier (`frontier/core.py`) schedules hosts by the instant at which each may next be
   contacted, and shows each entry to a judge: robots.txt (`robots/gate.py`), --max-per-host.
4. The politeness core (`mannerly.politeness`) grants a permit, or says until when to wait.
5. The fetcher (`fetch/curl.py`) sends the request; `fetch/guard.py` checks the address.
6. The answer goes to the politeness core, which learns from it; then `shard/follows.py` says what
   follows: again later, rules learned, or a page to be read.
7. The page is read (`page/html.py`): record, title, links.
8. The shard commits record, links and host state together, and what was new joins the frontier.
9. Exports, `status` and `explain` read the store; events tell everybody else (`events.py`).

Steps 2 to 8 are the conversation in `shard/shard.py`; `runtime/engine.py` is the loop around it,
`runtime/worker.py` a process with its shards, `runtime/supervisor.py` several of them.

Here are the handles: `StoredCrawl` looks at a crawl and steers it, wherever it is kept and whether
it runs or not; `Crawl` also runs it, and is iterated over by programs. Steering means appending a
control record to the store (`control.py`), so it works from another process, too.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import time
import weakref
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from mannerly.crawler import control
from mannerly.crawler.inspection import explain, hosts
from mannerly.crawler.inspection.hosts import HostSort
from mannerly.crawler.inspection.status import pending, status_of
from mannerly.crawler.inspection.view import settings_of, view
from mannerly.crawler.options import OptionError, from_keywords, nearest
from mannerly.crawler.page.page import Page
from mannerly.crawler.runtime.delivery import PageQueue
from mannerly.crawler.runtime.ending import Ending, StopSwitch
from mannerly.crawler.runtime.run import run
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.crawler.store import create_crawl, exists, wipe
from mannerly.crawler.store import open_crawl as open_store
from mannerly.crawler.store.base import Manifest
from mannerly.crawler.web.scope import Glob
from mannerly.crawler.web.urls import canonical
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Unpack

    from mannerly.crawler.inspection.explain import Explanation
    from mannerly.crawler.inspection.hosts import HostLine
    from mannerly.crawler.inspection.status import Status
    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import PageRecord, Skipped
    from mannerly.crawler.options import CrawlOptions
    from mannerly.crawler.runtime.delivery import Delivered
    from mannerly.crawler.runtime.ending import Interrupts
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore

# Settings that decide about URLs: a resumed crawl keeps them, half a crawl under each is neither.
KEPT = ("scope", "include", "exclude", "max_depth", "seeding", "drop_tracking")

# Options that `set` changes in a running crawl.
CHANGEABLE = ("max_rate", "max_urls", "duration", "workers", "exclude")


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """How a crawl ended.

    Attributes:
        ending: why: finished, max_urls, duration, stopped, terminated or no_seed.
        stats: totals of this run.
        seconds: duration of this run.
        pending: URLs that are not fetched yet; 0 means that the crawl is complete.
    """

    ending: Ending
    stats: Stats
    seconds: float
    pending: int


class HostHandle:
    """One host of a crawl: look at it and steer it."""

    def __init__(self, crawl: StoredCrawl, host: str) -> None:
        self._crawl = crawl
        self.name = hosts.host_key(host)

    def __repr__(self) -> str:
        return f"<HostHandle {self.name} of {self._crawl.location}>"

    def show(self) -> HostLine | None:
        """Return what is kept of the host; None if it is no host of the crawl yet."""
        with self._crawl.view() as crawl:
            return hosts.one_host(crawl, self.name)

    def pause(self) -> None:
        """Send nothing to the host until `resume`; requests under way come to their end."""
        self._crawl.order(control.HostPause(self.name))

    def resume(self) -> None:
        """End a `pause`, and give a host that was given up another chance."""
        self._crawl.order(control.HostResume(self.name))

    def set(
        self,
        *,
        delay_s: float | None = None,
        max_rate: control.Rate | None = None,
        per_host: int | None = None,
    ) -> None:
        """Set the pace of the host; what is not named stays as it is.

        It holds until it is set again, whatever the crawl's own pace is.

        Args:
            delay_s: smallest gap between requests, in seconds.
            max_rate: requests a second at most, or "unlimited".
            per_host: requests under way at once.

        Raises:
            OptionError: nothing is named, or a value is out of its range.
        """
        if delay_s is None and max_rate is None and per_host is None:
            raise OptionError("nothing to set: give delay_s, max_rate or per_host")
        given = {"delay": delay_s, "max_rate": max_rate, "per_host": per_host}
        with_options(CrawlSettings(), from_keywords(given))  # raises OptionError
        self._crawl.order(control.HostSet(self.name, delay_s, max_rate, per_host))

    def forget(self) -> None:
        """Forget what was learned about the host; waits that it asked for stay."""
        self._crawl.order(control.HostForget(self.name))


class StoredCrawl:
    """A crawl that is kept somewhere: look at it and steer it, whether it runs or not.

    Orders (`pause`, `add`, `set` …) are acted on by a running crawl within a second, and by a
    stopped one when it is resumed.
    """

    def __init__(self, store: CrawlStore) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def location(self) -> str:
        """Where the crawl is kept: a directory, or SCHEME:REST for another store."""
        return self.store.location

    def close(self) -> None:
        """Let go of the store; twice is harmless."""
        self.store.close()

    # ------------------------------------------------------------------ look

    @contextmanager
    def view(self) -> Iterator[View]:
        """Open the crawl's store for reading, with connections of its own.

        The store of a crawl that runs in another thread of this program is that thread's.
        """
        with closing(open_store(self.location)) as store, view(store) as crawl:
            yield crawl

    def status(self) -> Status:
        """Return how far the crawl is."""
        with self.view() as crawl:
            return status_of(crawl, now=time.time())

    def hosts(self, sort: str = "queued", limit: int = 20) -> list[HostLine]:
        """Return the first hosts by queued, fetched, refused, failed or delay, largest first."""
        try:
            order = HostSort(sort)
        except ValueError:
            raise OptionError(f"sort is {sort!r}; allowed: {', '.join(HostSort)}") from None
        with self.view() as crawl:
            return hosts.top_hosts(crawl, order, limit)

    def host(self, name: str) -> HostHandle:
        """Return a handle of one host, by its name or a URL of it."""
        return HostHandle(self, name)

    def explain(self, url: str) -> Explanation:
        """Return where a URL stands in the crawl, and why."""
        with self.view() as crawl:
            return explain.explain(crawl, url, now=time.time())

    def pages(self) -> Iterator[PageRecord]:
        """Yield the record of every page so far, each once."""
        with self.view() as crawl:
            yield from crawl.pages()

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that will not be fetched, with the reason."""
        with self.view() as crawl:
            yield from crawl.skipped()

    # ------------------------------------------------------------------ steer

    def order(self, order: control.Control) -> None:
        """Append a control record to the store."""
        # A connection of its own: the crawl may be running in another thread.
        with closing(open_store(self.location)) as store:
            store.order(order)

    def pause(self) -> None:
        """Start no request until `unpause`; requests under way come to their end."""
        self.order(control.Pause())

    def unpause(self) -> None:
        """Go on after `pause`."""
        self.order(control.Unpause())

    def stop(self) -> None:
        """End the present run, if there is one; it can be resumed."""
        self.order(control.Stop())

    def add(self, urls: str | Iterable[str]) -> None:
        """Add seeds.

        Raises:
            ValueError: one of them is not an http or https URL; then none is added.
        """
        texts = [urls] if isinstance(urls, str) else list(urls)
        if texts:
            self.order(control.AddSeeds(tuple(_canonical_seeds(texts))))

    def exclude(self, glob: str) -> None:
        """Fetch no URL that matches this glob from now on; queued ones are dropped.

        Raises:
            ValueError: it can match no URL.
        """
        from_keywords({"exclude": glob})  # raises OptionError
        Glob(glob)  # raises ValueError
        self.order(control.Exclude(glob))

    def set(self, **options: Unpack[CrawlOptions]) -> None:
        """Change options of the crawl: max_rate, max_urls, duration, workers, exclude.

        None takes a limit away.

        Raises:
            ValueError: another option, or a value out of its range; then nothing is changed.
        """
        for name in options:
            if name not in CHANGEABLE:
                allowed = ", ".join(CHANGEABLE)
                guess = nearest(name, CHANGEABLE)
                raise OptionError(f"{name} cannot be changed in a crawl: {allowed} can{guess}")
        given = from_keywords(options)
        with_options(CrawlSettings(), given)
        globs = _globs(options.pop("exclude", ()))
        for name, value in options.items():
            number = None if value in (None, "unlimited") else float(str(value))
            self.order(control.SetOption(name, number))
        for glob in globs:
            self.order(control.Exclude(glob))


class Crawl(StoredCrawl):
    """A crawl that this program runs.

    Iterate over it to get its pages, or `start` it in the background and `wait` for its end. Use it
    in a `with` block: leaving the block stops the crawl.

    Args:
        seeds: a URL, or several. They may be left out to resume the crawl of a `data_dir`.
        data_dir: where the crawl is kept; running again with the same one resumes. Without it a
            temporary directory is used and removed in the end.
        fresh: remove the crawl that `data_dir` holds, and start over.
        politeness: how polite to be, as a whole; single options such as `max_rate` change it.
        options: every option of `mannerly crawl`, by its name with underscores. `processes` is 1
            unless given.

    Raises:
        OptionError: an unknown option, or a value out of its range.
        ValueError: a seed is not an http or https URL, or there is none.
        StoreError: `data_dir` cannot be used.
    """

    def __init__(
        self,
        seeds: str | Iterable[str] = (),
        *,
        data_dir: str | Path | None = None,
        fresh: bool = False,
        politeness: Settings | None = None,
        **options: Unpack[CrawlOptions],
    ) -> None:
        base = CrawlSettings(politeness=politeness or Settings())
        given = from_keywords(options)
        if data_dir is not None and not fresh and exists(data_dir):
            base = settings_of(open_store(data_dir).manifest)
            base = replace(base, politeness=politeness) if politeness else base
        settings = with_options(base, given)
        texts = [seeds] if isinstance(seeds, str) else list(seeds)
        self._begin(settings, texts, data_dir, fresh=fresh)

    @classmethod
    def of(
        cls,
        settings: CrawlSettings,
        seeds: Sequence[str],
        location: str | Path,
        *,
        fresh: bool = False,
    ) -> Self:
        """Return a crawl with settings that were made before."""
        crawl = cls.__new__(cls)
        crawl._begin(settings, seeds, location, fresh=fresh)
        return crawl

    def _begin(
        self,
        settings: CrawlSettings,
        seeds: Sequence[str],
        location: str | Path | None,
        *,
        fresh: bool,
    ) -> None:
        texts = _canonical_seeds(seeds)
        self._remove: Callable[[], object] | None = None
        if location is None:
            location = Path(tempfile.mkdtemp(prefix="mannerly-"))
            self._remove = weakref.finalize(self, shutil.rmtree, location, ignore_errors=True)
        elif fresh:
            wipe(location)
        self.is_resumed = exists(location)
        if self.is_resumed:
            super().__init__(open_store(location))
            self.settings = _resumed(self.store.manifest, settings)
            known = {*self.store.manifest.seeds, *added_seeds(self.store)}
            self._new_seeds = [url for url in texts if url not in known]
        else:
            super().__init__(create_crawl(location, _manifest(settings, texts)))
            self.settings = settings
            self._new_seeds = []
        self._interrupts = StopSwitch()
        self._thread: threading.Thread | None = None
        self._result: CrawlResult | None = None
        self._error: BaseException | None = None

    # ------------------------------------------------------------------ run

    def run(
        self,
        *,
        interrupts: Interrupts | None = None,
        watch: Callable[[Stats, float], None] | None = None,
        pages: PageQueue | None = None,
    ) -> CrawlResult:
        """Run the crawl in this thread until it ends. No signal is taken.

        Args:
            interrupts: asked four times a second whether to end; by default `stop` is what ends it.
            watch: called four times a second with the totals and the seconds since the start.
            pages: gets every page; it is settled when it is acknowledged there.
        """
        began = time.monotonic()
        if self._new_seeds:
            self.add(self._new_seeds)
        ending, stats = run(
            self.store,
            self.settings,
            is_resumed=self.is_resumed,
            interrupts=interrupts or self._interrupts,
            watch=watch,
            pages=pages,
        )
        seconds = time.monotonic() - began
        self._result = CrawlResult(ending, stats, seconds, pending(self.store))
        return self._result

    def start(self) -> Self:
        """Run the crawl in the background. Pages are recorded as they come."""
        self._start(None)
        return self

    def wait(self, timeout_s: float | None = None) -> CrawlResult:
        """Wait for the end of a crawl that was started, and return how it ended.

        Raises:
            TimeoutError: it has not ended after `timeout_s` seconds.
            StoreError: its state cannot be used any more.
        """
        if self._thread is None:
            raise RuntimeError("the crawl was not started: call start() first")
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"the crawl has not ended after {timeout_s:g} s")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    @property
    def result(self) -> CrawlResult | None:
        """How the crawl ended; None while it runs."""
        return self._result

    @property
    def is_running(self) -> bool:
        """Whether this program is running the crawl."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Start no more requests, and end when those under way are answered. It can be resumed."""
        self._interrupts.stop()

    def close(self) -> None:
        """Stop at once, keep everything that is done, and let go of the store."""
        self._interrupts.stop(at_once=True)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        atexit.unregister(self._at_exit)
        super().close()
        if self._remove is not None:
            self._remove()

    def _start(self, pages: PageQueue | None) -> None:
        if self._thread is not None:
            raise RuntimeError("a crawl runs once: make another Crawl with its data_dir to resume")
        # A daemon, so that a program that forgot its crawl can end; it is stopped by then.
        self._thread = threading.Thread(
            target=self._in_background, args=(pages,), name="mannerly", daemon=True
        )
        atexit.register(self._at_exit)
        self._thread.start()

    def _in_background(self, pages: PageQueue | None) -> None:
        try:
            self.run(pages=pages)
        except BaseException as error:  # noqa: BLE001 - it is raised by `wait`
            self._error = error
        finally:
            if pages is not None:
                pages.close()

    def _at_exit(self) -> None:
        with suppress(Exception):
            self.close()

    # ------------------------------------------------------------------ pages

    def __iter__(self) -> Iterator[Page]:
        """Yield pages as they come. Asking for the next one acknowledges the one before."""
        queue = PageQueue()
        self._start(queue)
        try:
            while (delivered := queue.take()) is not None:
                page = self._page(queue, delivered)
                yield page
                page.done()
            self.wait()
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[Page]:
        """Yield pages as they come, without holding up the event loop."""
        import asyncio

        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        queue = PageQueue()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(changed.set)

        queue.on_change = tell
        self._start(queue)
        try:
            while True:
                changed.clear()
                is_closed = queue.is_closed
                delivered = queue.take_at_once()
                if delivered is None:
                    if is_closed:
                        break
                    await changed.wait()
                    continue
                page = self._page(queue, delivered)
                yield page
                page.done()
                await asyncio.sleep(0)  # pages that are here already must not starve other tasks
            await asyncio.to_thread(self.wait)
        finally:
            await asyncio.to_thread(self.close)

    def _page(self, queue: PageQueue, delivered: Delivered) -> Page:
        is_done = False

        def done() -> None:
            nonlocal is_done
            if not is_done:
                is_done = True
                self.store.acknowledge(delivered.shard, delivered.seq)
                queue.acknowledge(delivered)

        return Page(delivered.record, delivered.headers, delivered.body, done)


def crawl(
    seeds: str | Iterable[str] = (),
    *,
    data_dir: str | Path | None = None,
    fresh: bool = False,
    politeness: Settings | None = None,
    **options: Unpack[CrawlOptions],
) -> Iterator[Page]:
    """Crawl from one or more URLs and yield the pages as they come.

        for page in mannerly.crawl("https://example.org/", max_urls=500):
            print(page.url, page.status, page.title, len(page.body))

    Asking for the next page acknowledges the one before: it is recorded, and its links are
    followed. With a `data_dir`, a loop that was left (by `break`, an error or a crash) goes on when
    it is run again, beginning with the page that was not acknowledged. Fetching waits for a slow
    loop. The arguments are those of `Crawl`.
    """
    return iter(Crawl(seeds, data_dir=data_dir, fresh=fresh, politeness=politeness, **options))


def acrawl(
    seeds: str | Iterable[str] = (),
    *,
    data_dir: str | Path | None = None,
    fresh: bool = False,
    politeness: Settings | None = None,
    **options: Unpack[CrawlOptions],
) -> AsyncIterator[Page]:
    """Do the same as `crawl` for `async for`, without holding up the event loop."""
    return aiter(Crawl(seeds, data_dir=data_dir, fresh=fresh, politeness=politeness, **options))


def open_crawl(location: str | Path) -> StoredCrawl:
    """Open a crawl to look at it or to steer it, wherever it is kept.

    Raises:
        StoreMissing: there is none.
        StoreError: it is damaged, or of another version.
    """
    return StoredCrawl(open_store(location))


def _canonical_seeds(seeds: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for text in seeds:
        url = canonical(text)
        if url is None:
            raise ValueError(f"{text!r} is not an http or https URL")
        found[url] = None
    return list(found)


def _globs(exclude: str | Sequence[str] | None) -> list[str]:
    """Return checked globs.

    Raises:
        ValueError: one of them can match no URL.
    """
    if exclude is None:
        raise OptionError("an excluded pattern stays excluded: exclude takes a glob, not none")
    globs = [exclude] if isinstance(exclude, str) else list(exclude)
    return [Glob(glob).pattern for glob in globs]


def added_seeds(store: CrawlStore) -> set[str]:
    """Return the seeds that control records have added."""
    added = (order for _, order in store.orders() if isinstance(order, control.AddSeeds))
    return {url for order in added for url in order.urls}


def _manifest(settings: CrawlSettings, seeds: list[str]) -> Manifest:
    if not seeds:
        raise ValueError("a crawl needs at least one URL to start from")
    settings.scope_of(seeds)  # raises ValueError
    return Manifest.new(
        seeds=seeds,
        settings=msgspec.to_builtins(settings),
        shards=settings.processes,
        created_at=time.time(),
    )


def _resumed(manifest: Manifest, now: CrawlSettings) -> CrawlSettings:
    """A resumed crawl keeps what decides about URLs, and takes the rest from this run."""
    kept = settings_of(manifest)
    return replace(now, **{name: getattr(kept, name) for name in KEPT})
