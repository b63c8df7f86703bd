"""A stored crawl: inspect it and steer it, whether it is running or not.

Steering means appending a control record to the store (`control.py`), so it works from any process.

This module is long because it has a method for every command that looks at a crawl or steers it;
the work is done in `inspection` and `control`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from mannerly.crawler import control
from mannerly.crawler.inspection import explain, hosts
from mannerly.crawler.inspection.neighbours import forget_shared, shared_budget
from mannerly.crawler.inspection.status import status_of
from mannerly.crawler.inspection.view import View, settings_of, view
from mannerly.crawler.model import is_failed
from mannerly.crawler.options.table import CHANGEABLE, main_name
from mannerly.crawler.options.values import OptionError, from_keywords, nearest
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.crawler.store import open_crawl as open_store
from mannerly.crawler.web.choices import HostSort
from mannerly.crawler.web.scope import Glob
from mannerly.crawler.web.seeds import canonical_seeds
from mannerly.crawler.web.words import many

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Unpack

    from mannerly.crawler.host_view import HostStatus, HostView
    from mannerly.crawler.inspection.explain import UrlExplanation
    from mannerly.crawler.inspection.hosts import HostDetails
    from mannerly.crawler.inspection.status import Status
    from mannerly.crawler.model import Link, PageItems, PageRecord, Skipped
    from mannerly.crawler.options.keywords import CrawlOptions
    from mannerly.crawler.page.metadata import Metadata
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.hosts.base import HostBudget


class HandlerFailures(NamedTuple):
    """Pages on which the user's code has failed."""

    url: str  # of the first
    error: str
    pages: int

    @property
    def words(self) -> str:
        """Return this as a sentence."""
        return f"handlers failed on {many(self.pages, 'page')}, first on {self.url}: {self.error}"


class HostHandle:
    """One host of a crawl: inspect it and steer it."""

    def __init__(self, crawl: StoredCrawl, host: str) -> None:
        self._crawl = crawl
        self.name = hosts.host_key(host)

    def __repr__(self) -> str:
        return f"<HostHandle {self.name} of {self._crawl.location}>"

    def show(self) -> HostDetails | None:
        """Return what is known about the host; None if the crawl has no URL of it yet."""
        with self._crawl.view() as crawl:
            return hosts.one_host(crawl, self.name, now=time.time())

    def pause(self) -> None:
        """Send nothing to the host until `resume`; requests in flight finish."""
        self._crawl.order(control.HostPause(self.name))

    def resume(self) -> None:
        """End a `pause`, or try a host again that was given up."""
        self._crawl.order(control.HostResume(self.name))

    def set(
        self,
        *,
        delay_s: float | None = None,
        max_rate: control.Rate | None = None,
        per_host: int | None = None,
    ) -> None:
        """Set the pace of the host; arguments that are not given stay as they are.

        These values replace those of the crawl until they are set again.

        Args:
            delay_s: minimum delay between requests, in seconds.
            max_rate: maximum requests per second, or "unlimited".
            per_host: maximum requests in flight.

        Raises:
            OptionError: no argument is given, or a value is out of its range.
        """
        if delay_s is None and max_rate is None and per_host is None:
            raise OptionError("nothing to set: give delay_s, max_rate or per_host")
        given = {"delay": delay_s, "max_rate": max_rate, "per_host": per_host}
        with_options(CrawlSettings(), from_keywords(given))  # raises OptionError
        self._crawl.order(control.HostSet(self.name, delay_s, max_rate, per_host))

    def forget(self) -> None:
        """Forget the pace that was learned for the host, by this crawl and by others.

        A Retry-After still applies.
        """
        self._crawl.order(control.HostForget(self.name))
        forget_shared(self._crawl.store, self.name, time.time())

    def shared(self) -> HostBudget | None:
        """Return what all crawls of this machine know of the host; None: nothing."""
        return shared_budget(self._crawl.store, self.name, time.time())


class StoredCrawl:
    """A stored crawl: inspect it and steer it, whether it is running or not.

    What is ordered (`pause`, `add`, `set` …) takes effect within a second, or when it is resumed.
    """

    def __init__(self, store: CrawlStore) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def location(self) -> str:
        """The place of the crawl: a directory, or SCHEME:REST for another store."""
        return self.store.location

    def close(self) -> None:
        """Close the store; closing twice is harmless."""
        self.store.close()

    # ------------------------------------------------------------------ look

    @contextmanager
    def view(self) -> Iterator[View]:
        """Open the crawl for reading.

        It opens the store anew, so that any thread may call it, also while the crawl is running.
        """
        store = open_store(self.location)
        try:
            with view(store) as crawl:
                yield crawl
        finally:
            store.close()

    def status(self) -> Status:
        """Return the state, counts, queues and workers of the crawl."""
        with self.view() as crawl:
            return status_of(crawl, now=time.time())

    def hosts(self, sort: str = "queued", limit: int = 20) -> list[HostView]:
        """Return `limit` hosts by queued, fetched, refused, failed, given_up or delay: what each
        does or waits for, and until when.
        """
        with self.view() as crawl:
            return hosts.HostViews(crawl, now=time.time()).top(_order(sort), limit)

    def slowest_host(self) -> HostView | None:
        """Return the host whose queue takes longest at its pace, which the end depends on."""
        with self.view() as crawl:
            return hosts.slowest_of(hosts.HostViews(crawl, now=time.time()))

    def host_counts(self) -> Counter[HostStatus]:
        """Return the number of hosts by what they are doing: every record of a host is read."""
        with self.view() as crawl:
            return hosts.counts_of(hosts.HostViews(crawl, now=time.time()))

    def host(self, name: str) -> HostHandle:
        """Return a handle of one host, by its name or a URL of it."""
        return HostHandle(self, name)

    def explain(self, url: str) -> UrlExplanation:
        """Return the state of a URL in the crawl, and the reason."""
        with self.view() as crawl:
            return explain.explain(crawl, url, now=time.time())

    def pages(self) -> Iterator[PageRecord]:
        """Yield the record of every page so far, each once: fetched or failed."""
        with self.view() as crawl:
            yield from crawl.pages()

    def extracted(self) -> Iterator[tuple[str, PageItems]]:
        """Yield what was extracted from every page so far, with its URL."""
        with self.view() as crawl:
            for reader in crawl.readers:
                for _, url, items in reader.items():
                    yield url, items

    def handler_failures(self) -> HandlerFailures | None:
        """Return on how many pages the user's code has failed, so far; None: on no page."""
        failed = ((url, each.error) for url, each in self.extracted() if each.error is not None)
        first = next(failed, None)
        return None if first is None else HandlerFailures(*first, 1 + sum(1 for _ in failed))

    @property
    def keeps_links(self) -> bool:
        """Return whether the crawl keeps the links of its pages (`links=True`)."""
        with self.view() as crawl:
            return crawl.keeps_links

    def links(self) -> Iterator[Link]:
        """Yield every link of every page, page after page; without `links=True` redirects only."""
        with self.view() as crawl:
            yield from crawl.links()

    def links_of(self, url: str) -> Iterator[Link]:
        """Yield the links of one page.

        Raises:
            ValueError: it is not an http or https URL.
        """
        (page,) = canonical_seeds([url])
        with self.view() as crawl:
            yield from crawl.links_of(page)

    def sources(self, urls: Collection[str]) -> Iterator[Link]:
        """Yield every link that leads to one of these URLs (canonical), in one pass over all."""
        return (link for link in self.links() if link.target in urls)

    def metadata(self) -> Iterator[tuple[PageRecord, Metadata]]:
        """Yield every page with what it says about itself: hreflang, Open Graph, JSON-LD, and use
        by machines; without `links=True` only what robots.txt says about the latter.
        """
        with self.view() as crawl:
            yield from crawl.metadata()

    def skipped(self) -> Iterator[Skipped]:
        """Yield every URL that is skipped on purpose, with the reason."""
        with self.view() as crawl:
            yield from crawl.skipped()

    def given_up(self) -> Iterator[Skipped]:
        """Yield every URL whose host or robots.txt could not be reached, with the reason."""
        with self.view() as crawl:
            yield from crawl.given_up()

    # ------------------------------------------------------------------ steer

    def order(self, order: control.Control) -> None:
        """Append a control record to the store."""
        # With a connection of its own, as in `view`.
        store = open_store(self.location)
        try:
            store.order(order)
        finally:
            store.close()

    def pause(self) -> None:
        """Send no request until `unpause`; requests in flight finish."""
        self.order(control.Pause())

    def unpause(self) -> None:
        """Continue after `pause`."""
        self.order(control.Unpause())

    def stop(self) -> None:
        """Stop the crawl if it is running; it can be resumed."""
        self.order(control.Stop())

    def add(self, urls: str | Iterable[str]) -> None:
        """Add seeds.

        Raises:
            ValueError: one of them is not an http or https URL; then none is added.
        """
        texts = [urls] if isinstance(urls, str) else list(urls)
        if texts:
            self.order(control.AddSeeds(tuple(canonical_seeds(texts))))

    def again(self) -> Self:
        """Ask for every page again, and note what has changed; follow new links.

        A stopped crawl does so when it is resumed. A recrawl that was interrupted goes on: it is
        not begun again.
        """
        with self.view() as crawl:
            orders = [order for _, order in crawl.store.orders()]
            rounds = [order.round for order in orders if isinstance(order, control.Recrawl)]
            last = max(rounds, default=0)
            counts = [reader.counts() for reader in crawl.readers]
        if all(each.round == last and not (each.rechecks or each.retries) for each in counts):
            self.order(control.Recrawl(last + 1))
        return self

    def retry(
        self,
        *,
        failed: bool = False,
        given_up: bool = False,
        skipped: str | None = None,
        missing: bool = False,
        failed_handlers: bool = False,
        host: str | None = None,
    ) -> int:
        """Queue URLs again: those that failed and those that were given up, if no kind is named.

        A host that was given up is taken into the crawl again. Returns how many pages are fetched
        again because their record is lost with the disk of a worker.

        Args:
            failed: pages without an answer, with an error of the server (500 and more) or a refusal
                (such as 401, 403, 429), pages that were not read, and seeds that gave no page.
            given_up: URLs whose host or robots.txt could not be reached.
            skipped: URLs that were skipped for this reason, such as "robots".
            missing: pages whose answer is not kept although the crawl keeps bodies: a repair has
                found it lost. Their records stay until the next answer. Of a crawl in a server also
                pages whose record is in no directory of a worker that was given.
            failed_handlers: pages on which the user's code failed, without a kept answer; with one
                no request is needed (`mannerly retry --failed-handlers`).
            host: only those of one host, by its name or a URL of it.
        """
        name = None if host is None else hosts.host_key(host)
        none = not (failed or given_up or missing or failed_handlers) and skipped is None
        lost = self._recall(name) if missing else 0
        # Also if none was found: an earlier command may have ended before it gave the order.
        recalled = missing and self.store.fleet is not None
        missing = missing and self.keeps_bodies
        if (
            failed
            or given_up
            or none
            or skipped is not None
            or missing
            or recalled
            or failed_handlers
        ):
            self.order(
                control.RetryUrls(
                    failed or none,
                    given_up or none,
                    name,
                    skipped,
                    missing,
                    lost=recalled,
                    handlers=failed_handlers,
                )
            )
        return lost

    def _recall(self, host: str | None) -> int:
        """Have pages fetched again whose record is lost; return how many."""
        with self.view() as opened:
            fleet = opened.store.fleet
            return 0 if fleet is None else fleet.recall(host)

    @property
    def keeps_bodies(self) -> bool:
        """Return whether every answer is kept (--keep-bodies)."""
        return settings_of(self.store.manifest).keep_bodies

    def missing(self) -> Iterator[str]:
        """Yield the pages whose answer is not kept although the crawl keeps bodies."""
        if not self.keeps_bodies:
            return
        with view(self.store) as opened:
            for reader in opened.readers:
                for _, record, place in reader.kept_pages():
                    if place is None and not is_failed(record):
                        yield record.url

    def lost_records(self) -> int:
        """Return how many pages were fetched whose record is in no directory that was given.

        Only a crawl in a server has such: each of its workers keeps its own records.
        """
        with self.view() as opened:
            return sum(reader.missing for reader in opened.readers)

    def unnamed_records(self) -> int:
        """Return how many of these have a URL that is not known, either: they cannot be asked for.

        They are on shared storage (`segments`) whose directory was not given.
        """
        with self.view() as opened:
            return sum(reader.missing_unnamed for reader in opened.readers)

    def exclude(self, glob: str) -> None:
        """Fetch no URL that matches this glob from now on; queued ones are skipped.

        Raises:
            ValueError: the glob can match no URL.
        """
        from_keywords({"exclude": glob})  # raises OptionError
        Glob(glob)  # raises ValueError
        self.order(control.Exclude(glob))

    def set(self, **options: Unpack[CrawlOptions]) -> None:
        """Change options of the crawl: max_rate, max_urls, duration, concurrency, exclude.

        None removes a limit.

        Raises:
            ValueError: an option cannot be changed, or a value is wrong; then nothing is changed.
        """
        for name in options:
            if main_name(name) not in CHANGEABLE:
                allowed = ", ".join(CHANGEABLE)
                guess = nearest(name, CHANGEABLE)
                raise OptionError(f"{name} cannot be changed; allowed: {allowed}{guess}")
        given = from_keywords(options)
        with_options(CrawlSettings(), given)
        globs = _globs(options.pop("exclude", ()))
        for name, value in options.items():
            number = None if value in (None, "unlimited") else float(str(value))
            self.order(control.SetOption(main_name(name), number))
        for glob in globs:
            self.order(control.Exclude(glob))


def open_crawl(location: str | Path) -> StoredCrawl:
    """Open a stored crawl to inspect it or to steer it.

        for record in mannerly.open("crawl-example").pages():
            print(record.url, record.status)

    Raises:
        StoreMissing: there is no crawl at `location`.
        StoreError: the crawl is damaged, or of another version.
    """
    return StoredCrawl(open_store(location))


def added_seeds(store: CrawlStore) -> set[str]:
    """Return the seeds that control records have added."""
    added = (order for _, order in store.orders() if isinstance(order, control.AddSeeds))
    return {url for order in added for url in order.urls}


def _order(sort: str) -> HostSort:
    try:
        return HostSort(sort)
    except ValueError:
        raise OptionError(f"sort is {sort!r}; allowed: {', '.join(HostSort)}") from None


def _globs(exclude: str | Sequence[str] | None) -> list[str]:
    """Return checked globs.

    Raises:
        ValueError: one of them can match no URL.
    """
    if exclude is None:
        raise OptionError(
            "exclude cannot be none, because an excluded pattern stays excluded: give a glob"
        )
    globs = [exclude] if isinstance(exclude, str) else list(exclude)
    return [Glob(glob).pattern for glob in globs]
