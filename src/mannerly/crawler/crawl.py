"""READ FIRST. The API of a crawl, and the way of a URL through it.

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
9. Exports, `status` and `explain` read the store; other listeners get events (`events.py`).

Steps 2 to 8 are the conversation in `shard/shard.py`; `runtime/engine.py` is the loop around it,
`runtime/worker.py` a process with its shards, `runtime/supervisor.py` several of them.

This module has `Crawl`, the handle of a crawl that a program runs and iterates over; `stored.py`
has the part of it that also works for a crawl of another process. It is long because of the
overview above and the examples in its docstrings.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mannerly.crawler import control
from mannerly.crawler.events import Watched
from mannerly.crawler.inspection.seeds import (
    GivenUpHost,
    SeedAstray,
    SeedProblem,
    astray,
    given_up_hosts,
    lost_seeds,
    seed_problems,
)
from mannerly.crawler.inspection.status import totals
from mannerly.crawler.inspection.view import settings_of, view
from mannerly.crawler.options.values import OptionError, from_keywords
from mannerly.crawler.page.extract import NamedFunction, is_only_here
from mannerly.crawler.page.page import Page
from mannerly.crawler.runtime.beginning import new_manifest, resumed_settings
from mannerly.crawler.runtime.coordinator import Membership
from mannerly.crawler.runtime.delivery import PageQueue
from mannerly.crawler.runtime.ending import Ending, Signals, StopSwitch
from mannerly.crawler.runtime.run import Run, run
from mannerly.crawler.settings import CrawlSettings, check_shared, with_options
from mannerly.crawler.store import (
    SCHEMES,
    clear_home,
    create_crawl,
    exists,
    in_server,
    is_in_server,
    wipe,
)
from mannerly.crawler.store import open_crawl as open_store
from mannerly.crawler.store.base import StoreError, StoreInUse, StoreMissing
from mannerly.crawler.stored import StoredCrawl, added_seeds
from mannerly.crawler.web.seeds import canonical_seeds
from mannerly.crawler.web.urls import host_key_of
from mannerly.extras import require_redis
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Callable,
        Generator,
        Iterable,
        Mapping,
        Sequence,
    )
    from typing import Unpack

    from mannerly.crawler.options.keywords import CrawlOptions
    from mannerly.crawler.options.values import Given
    from mannerly.crawler.runtime.delivery import Delivered
    from mannerly.crawler.runtime.ending import Watcher
    from mannerly.crawler.runtime.event_batches import EventBatch
    from mannerly.crawler.stats import Stats
    from mannerly.crawler.store.base import CrawlStore

NOTHING_GIVEN: Mapping[str, Given] = {}

# Seconds that a run waits for another run of the same crawl to end. An asynchronous loop that was
# left is closed by the event loop a moment later, and then the engine needs a turn.
LEAVING_S = 5.0

NAMED = 10  # given-up hosts that a result names


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """The end of a run: the reason, the totals and what is left.

    Attributes:
        ending: the reason: finished, max_urls, max_requests, duration, stopped, terminated, no_seed
            or crashed.
        stats: totals of this run.
        seconds: duration of this run in seconds.
        pending: number of URLs that are not fetched yet; 0 means that the crawl is complete.
        given_up: number of URLs that were given up, now or earlier; `retry` queues them again.
        seed_problems: the seeds and the cause of each, if no seed could be fetched.
        astray: where the seeds lead to, if each leads to another host or to a login page.
        given_up_hosts: the hosts with most URLs that were given up, and why.
        unread: number of pages that could not be read, now or earlier, because they ended the
            process that read them or memory lacked; `retry` queues them again.
    """

    ending: Ending
    stats: Stats
    seconds: float
    pending: int
    given_up: int = 0
    seed_problems: tuple[SeedProblem, ...] = ()
    astray: tuple[SeedAstray, ...] = ()
    given_up_hosts: tuple[GivenUpHost, ...] = ()
    unread: int = 0


class Crawl(StoredCrawl):
    """A crawl that this program runs.

        with mannerly.Crawl("https://example.org/", data_dir="crawl-example") as crawl:
            crawl.start()
            result = crawl.wait()

    Iterate over it to get its pages, or `start` it in the background and `wait` for its end. Use it
    in a `with` block: leaving the block stops the crawl. Any thread may call its methods.

    Args:
        seeds: a URL, or several. They may be left out to resume the crawl of a `data_dir`.
        data_dir: directory of the crawl; running again with the same one resumes the crawl.
            Without it a temporary directory is used, and removed at the end.
        fresh: delete the crawl in `data_dir` first, and start over.
        politeness: all settings of the politeness core; options such as `max_rate` change single
            ones.
        redis_url: URL of a Redis or Valkey server that keeps the crawl, so that several programs
            and machines work on it: the first creates it, others join. `data_dir` is this
            program's own then. Put a password in MANNERLY_REDIS_URL.
        name: of the crawl in the server; by default `crawl-` and the host of the first seed.
        options: every option of `mannerly crawl`, by its name with underscores. `processes` is 1
            unless given.

    Raises:
        OptionError: an option is unknown, or a value is out of its range.
        ValueError: a seed is not an http or https URL, no seed is given, or `redis_url` is used
            without the extra `redis`.
        StoreError: `data_dir` is in use, damaged, or not a directory of a crawl.
    """

    def __init__(
        self,
        seeds: str | Iterable[str] = (),
        *,
        data_dir: str | Path | None = None,
        fresh: bool = False,
        politeness: Settings | None = None,
        redis_url: str | None = None,
        name: str | None = None,
        **options: Unpack[CrawlOptions],
    ) -> None:
        base = CrawlSettings(politeness=politeness or Settings())
        self._function = _named_function(options)  # kept: `extract.load` finds it while it is here
        if self._function is not None:
            options["extract"] = self._function.name
        given = from_keywords(options)
        location = None if data_dir is None else _absolute(data_dir)
        texts = [seeds] if isinstance(seeds, str) else list(seeds)
        member: Membership | None = None
        if redis_url is not None:
            require_redis("redis_url")
            check_shared(with_options(base, given))
            name = name or "crawl-" + host_key_of(canonical_seeds(texts[:1] or [""])[0])
            member = Membership(Path(data_dir or name).absolute())
            location = in_server(redis_url, name)
        if location is not None and not fresh and exists(location):
            base = _stored_settings(location)
            base = replace(base, politeness=politeness) if politeness else base
        settings = with_options(base, given)
        self._begin(settings, texts, location, given, fresh=fresh, member=member)

    @classmethod
    def of(
        cls,
        settings: CrawlSettings,
        seeds: Sequence[str],
        location: str | Path,
        given: Mapping[str, Given] = NOTHING_GIVEN,
        *,
        fresh: bool = False,
        member: Membership | None = None,
    ) -> Self:
        """Return a crawl with settings that were made before; `given` are this run's options."""
        crawl = cls.__new__(cls)
        crawl._begin(settings, seeds, location, given, fresh=fresh, member=member)
        return crawl

    def _begin(
        self,
        settings: CrawlSettings,
        seeds: Sequence[str],
        location: str | Path | None,
        given: Mapping[str, Given],
        *,
        fresh: bool,
        member: Membership | None = None,
    ) -> None:
        texts = canonical_seeds(seeds)
        if settings.memory is not None and is_in_server(settings.memory):
            require_redis("--memory with a server")
        self._member = member
        self._remove: Callable[[], object] | None = None
        if location is None:
            location = Path(tempfile.mkdtemp(prefix="mannerly-"))
            self._remove = weakref.finalize(self, shutil.rmtree, location, ignore_errors=True)
        elif fresh:
            wipe(location)
            if member is not None:
                clear_home(member.data_dir)
        self.is_resumed = exists(location)
        self._is_made = False  # by this run, and not by another one at the same time
        if self.is_resumed:
            super().__init__(open_store(location))
            self.settings = resumed_settings(self.store.manifest, settings)
            known = {*self.store.manifest.seeds, *added_seeds(self.store)}
            self._new_seeds = [url for url in texts if url not in known]
            self._override(given)
        else:
            self._create(settings, texts, location)
        self._interrupts = StopSwitch()
        self._lock = threading.Lock()  # held while the store is used or closed by the program
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._result: CrawlResult | None = None
        self._error: BaseException | None = None

    def _create(self, settings: CrawlSettings, seeds: list[str], location: str | Path) -> None:
        """Create the crawl, or join it if another run was faster."""
        self.settings = settings
        self._new_seeds = []
        shards = None if self._member is None else self._member.shards
        manifest = new_manifest(settings, seeds, shards)
        try:
            super().__init__(create_crawl(location, manifest))
            self._is_made = True
        except StoreError:
            if self._member is None or not exists(location):
                raise
            super().__init__(open_store(location))
            self._new_seeds = [url for url in seeds if url not in self.store.manifest.seeds]

    def _override(self, given: Mapping[str, Given]) -> None:
        """Let the options of this run win over what `set` changed earlier."""
        changed = control.in_force(self.store.orders()).options
        for name in changed.keys() & given.keys():
            value = given[name].value
            number = None if value == "unlimited" else float(str(value))
            self.order(control.SetOption(name, number))

    # ------------------------------------------------------------------ run

    def run(
        self,
        *,
        interrupts: StopSwitch | None = None,
        watch: Callable[[Stats, float], None] | None = None,
        hear: Callable[[EventBatch], None] | None = None,
        closely: bool = False,
        pages: PageQueue | None = None,
        patience_s: float = 0.0,
    ) -> CrawlResult:
        """Run the crawl in this thread until it ends. No signal handler is installed.

        Args:
            interrupts: asked four times a second whether to stop; by default `stop` decides.
            watch: called four times a second with the totals and the seconds since the start.
            hear: called four times a second with the events that are worth a log line.
            closely: `hear` is told of every change of pace and every wait of a second, too.
            pages: gets every page; a page is recorded when it is acknowledged there.
            patience_s: waits so long for another run of the same crawl to end.

        Raises:
            StoreInUse: the crawl is already running.
            StoreError: its stored state cannot be used.
        """
        store = open_store(self.location)  # its own: the handle is used by other threads
        try:
            watched = _watched(watch, hear, closely=closely)
            if self._member is None:
                _hold(store, patience_s)
            return self._run(store, interrupts or self._interrupts, watch, pages, hear, watched)
        finally:
            store.close()

    def _run(
        self,
        store: CrawlStore,
        interrupts: StopSwitch,
        watch: Callable[[Stats, float], None] | None,
        pages: PageQueue | None,
        hear: Callable[[EventBatch], None] | None,
        watched: Watched,
    ) -> CrawlResult:
        began = time.monotonic()
        # Before it is held, the crawl is not running: what is ordered from then on is for this run.
        last_order = max((number for number, _ in store.orders()), default=0)
        if self._new_seeds:
            store.order(control.AddSeeds(tuple(self._new_seeds)))
        ending, stats = self._begun(
            Run(
                store=store,
                settings=self.settings,
                is_resumed=self.is_resumed,
                interrupts=interrupts,
                watch=watch,
                pages=pages,
                hear=hear,
                watched=watched,
                last_order=last_order,
                membership=self._member,
            )
        )
        seconds = time.monotonic() - began
        total = totals(store)
        stats.now.queued = total["queued"]  # the store has the last word
        unread = _unread(store) if total["failed"] else 0
        result = CrawlResult(
            ending, stats, seconds, total["pending"], total["given_up"], unread=unread
        )
        # Of a crawl in a server this run may not have the records of the seeds.
        if ending is Ending.FINISHED and not (store.fleet is not None and total["fetched"]):
            result = _examined(result, store)
        self._result = result
        return result

    def _begun(self, this: Run) -> tuple[Ending, Stats]:
        """Run the crawl; one in a server that was made for a run that cannot begin is removed."""
        try:
            return run(this)
        except StoreError:
            store = this.store
            if self._is_made and store.fleet is not None:
                with suppress(StoreError):
                    if not store.workers() and not any(totals(store).values()):
                        wipe(store.location)
            raise

    def start(self, *, patience_s: float = 0.0) -> Self:
        """Start the crawl in a background thread, and return at once.

        It waits up to `patience_s` for another run of the same crawl to end.
        """
        self._start(None, patience_s)
        return self

    def wait(self, timeout_s: float | None = None) -> CrawlResult:
        """Wait until a crawl that was started ends, and return its result.

        Raises:
            TimeoutError: it has not ended after `timeout_s` seconds.
            StoreError: the crawl failed, because its stored state cannot be used any more.
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
        """The result of the run; None while it is running."""
        return self._result

    @property
    def is_running(self) -> bool:
        """Return whether this program is running the crawl."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Send no more requests, wait `grace` seconds for those in flight. It can be resumed."""
        self._interrupts.stop()

    def close(self) -> None:
        """Stop at once; pages recorded so far are kept. A temporary directory is removed."""
        self._end()
        if self._remove is not None:
            self._remove()

    def _end(self) -> None:
        """Stop at once, and release everything but a temporary directory: `status` still works."""
        self._interrupts.stop(at_once=True)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._lock:
            self._is_closed = True
            super().close()

    def _start(self, pages: PageQueue | None, patience_s: float = LEAVING_S) -> None:
        if self._thread is not None:
            raise RuntimeError("a crawl runs once: make another Crawl with its data_dir to resume")
        # A daemon, so that a program that forgot its crawl can end; it is stopped by then.
        self._thread = threading.Thread(
            target=self._in_background, args=(pages, patience_s), name="mannerly", daemon=True
        )
        atexit.register(self._at_exit)
        self._thread.start()

    def _in_background(self, pages: PageQueue | None, patience_s: float) -> None:
        try:
            self.run(pages=pages, patience_s=patience_s)
        except BaseException as error:  # noqa: BLE001 - it is raised by `wait`
            self._error = error
        finally:
            atexit.unregister(self._at_exit)
            if pages is not None:
                pages.close()

    def _at_exit(self) -> None:
        with suppress(Exception):
            self.close()

    # ------------------------------------------------------------------ pages

    def __iter__(self) -> Generator[Page]:
        """Yield pages as they come. Asking for the next page acknowledges the previous one."""
        return self._pages(self._end)

    def __aiter__(self) -> AsyncGenerator[Page]:
        """Yield pages as they come, without blocking the event loop."""
        return self._apages(self._end)

    def _pages(self, end: Callable[[], None]) -> Generator[Page]:
        queue = PageQueue()
        self._start(queue)
        try:
            while (delivered := queue.take()) is not None:
                page = self._page(queue, delivered)
                yield page
                page.done()
            self.wait()
            for page in self._lost_seeds():
                yield page
        finally:
            end()

    async def _apages(self, end: Callable[[], None]) -> AsyncGenerator[Page]:
        import asyncio

        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        queue = PageQueue()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: no task waits any more
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
            for page in await asyncio.to_thread(self._lost_seeds):
                yield page
        finally:
            await asyncio.to_thread(end)

    def _page(self, queue: PageQueue, delivered: Delivered) -> Page:
        is_done = False

        def done() -> None:
            nonlocal is_done
            if not is_done:
                is_done = True
                self._acknowledge(delivered)
                queue.acknowledge(delivered)

        _, _, _, _, record, headers, body, items, received = delivered
        return Page(record, headers, body, done, items=items, received=received)

    def _lost_seeds(self) -> list[Page]:
        """Return the seeds that could not be fetched as pages, with the cause as their error."""
        result = self._result
        is_over = result is not None and result.ending in (Ending.FINISHED, Ending.NO_SEED)
        if not is_over or self.store.fleet is not None:
            return []
        assert result is not None
        if not result.given_up and not result.seed_problems:
            return []
        with self.view() as opened:
            lost = lost_seeds(opened, [*self.store.manifest.seeds, *added_seeds(self.store)])
        return [Page(record, {}, b"") for record in lost]

    def _acknowledge(self, page: Delivered) -> None:
        """Note that the program is done with a page, also after the crawl was closed."""
        with self._lock:
            if not self._is_closed:
                self.store.acknowledge(page.shard, page.seq)
                return
        if self._remove is not None:
            return  # a temporary crawl is never resumed
        with suppress(StoreMissing):
            store = open_store(self.location)
            try:
                # The numbers of pages mean others in a crawl that was begun anew in its place.
                if store.manifest.id == self.store.manifest.id:
                    store.acknowledge(page.shard, page.seq)
            finally:
                store.close()


def crawl(
    seeds: str | Iterable[str] = (),
    *,
    data_dir: str | Path | None = None,
    fresh: bool = False,
    politeness: Settings | None = None,
    redis_url: str | None = None,
    name: str | None = None,
    **options: Unpack[CrawlOptions],
) -> Generator[Page]:
    """Crawl from one or more URLs and yield the pages as they come.

        for page in mannerly.crawl("https://example.org/", max_urls=500):
            print(page.url, page.status, page.title, len(page.body))

    Asking for the next page acknowledges the previous one: it is recorded, and its links are
    followed. With a `data_dir`, a loop that was left (by `break`, an error or a crash) continues
    when the program is run again, with the page that was not acknowledged first. A slow loop slows
    down fetching. The arguments are those of `Crawl`.
    """
    made = Crawl(
        seeds,
        data_dir=data_dir,
        fresh=fresh,
        politeness=politeness,
        redis_url=redis_url,
        name=name,
        **options,
    )
    return made._pages(made.close)


def acrawl(
    seeds: str | Iterable[str] = (),
    *,
    data_dir: str | Path | None = None,
    fresh: bool = False,
    politeness: Settings | None = None,
    redis_url: str | None = None,
    name: str | None = None,
    **options: Unpack[CrawlOptions],
) -> AsyncGenerator[Page]:
    """Crawl like `crawl`, for `async for`, without blocking the event loop.

        async for page in mannerly.acrawl("https://example.org/", max_urls=500):
            print(page.url, page.status, page.title, len(page.body))

    Python closes an asynchronous generator some time after a `break`; with `contextlib.aclosing`
    the crawl is stopped when the block ends.
    """
    made = Crawl(
        seeds,
        data_dir=data_dir,
        fresh=fresh,
        politeness=politeness,
        redis_url=redis_url,
        name=name,
        **options,
    )
    return made._apages(made.close)


def run_crawl(
    settings: CrawlSettings,
    seeds: Sequence[str],
    location: str | Path,
    given: Mapping[str, Given] = NOTHING_GIVEN,
    *,
    fresh: bool = False,
    watch: Callable[[Stats, float], None] | None = None,
    watcher: Watcher | None = None,
    member: Membership | None = None,
) -> CrawlResult:
    """Run a crawl as a command does: signals end it, in the main thread of a program.

    `watcher` is told of everything; a program that wants the totals only has `watch`. `member` is
    the place of this run in a crawl that is kept in a server.
    """
    words = (
        f"mannerly resume {shlex.quote(str(location))}" if member is None else "the same command"
    )
    signals = Signals(f"To resume: {words}", watcher)
    made = Crawl.of(settings, seeds, location, given, fresh=fresh, member=member)
    with made as crawl, signals:
        if watcher is None:
            return crawl.run(interrupts=signals, watch=watch)
        return crawl.run(
            interrupts=signals, watch=watcher, hear=watcher.hear, closely=watcher.is_close
        )


def _named_function(options: CrawlOptions) -> NamedFunction | None:
    """Return the extract function with its name, if the program has passed a function.

    Raises:
        OptionError: other processes cannot import it, and there are to be some.
    """
    function = options.get("extract")
    if function is None or isinstance(function, str):
        return None
    named = NamedFunction(function)
    if is_only_here(named.name) and (options.get("processes") or 1) > 1:
        raise OptionError(
            "extract: other processes cannot import this function: put it into a module, or use "
            "processes=1"
        )
    return named


def _absolute(location: str | Path) -> str | Path:
    """Return a location that means the same after a change of the working directory."""
    if isinstance(location, str) and (
        "://" in location or location.partition(":")[0] in SCHEMES  # not a directory
    ):
        return location
    return Path(location).absolute()


def _stored_settings(location: str | Path) -> CrawlSettings:
    store = open_store(location)
    try:
        return settings_of(store.manifest)
    finally:
        store.close()


def _unread(store: CrawlStore) -> int:
    with view(store) as opened:
        return sum(reader.unread_pages() for reader in opened.readers)


def _examined(result: CrawlResult, store: CrawlStore) -> CrawlResult:
    """Find out what became of the seeds, and which hosts were given up."""
    seeds = [*store.manifest.seeds, *sorted(added_seeds(store))]
    with view(store) as opened:
        problems = tuple(seed_problems(opened, seeds))
        return replace(
            result,
            ending=Ending.NO_SEED if problems else result.ending,
            seed_problems=problems,
            astray=() if problems else tuple(astray(opened, seeds)),
            given_up_hosts=tuple(given_up_hosts(opened, NAMED)) if result.given_up else (),
        )


def _watched(watch: object, hear: object, *, closely: bool) -> Watched:
    if hear is not None and closely:
        return Watched.CLOSELY
    return Watched.NO if watch is None and hear is None else Watched.HOSTS


def _hold(store: CrawlStore, patience_s: float) -> None:
    """Become the one run of a crawl; wait for a run of this program that is just being closed."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return store.hold()
        except StoreInUse:
            if time.monotonic() >= deadline:
                raise
