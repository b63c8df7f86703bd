"""A crawl's store with a reader for each shard: what all inspections start from."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import PageRecord
from mannerly.crawler.options.table import main_name
from mannerly.crawler.page.elements import LinkReader
from mannerly.crawler.page.metadata import metadata_of
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.web.robots_meta import content_signal
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import Link, Skipped
    from mannerly.crawler.page.metadata import Metadata
    from mannerly.crawler.store.base import CrawlStore, Manifest, ShardReader


_ORIGINS = 10_000  # whose robots.txt is remembered while pages are read


class View(NamedTuple):
    """A crawl's store, and a reader for each of its shards."""

    store: CrawlStore
    readers: tuple[ShardReader, ...]
    signals: dict[str, dict[str, str]]  # what robots.txt files say about use by machines

    def shard_of(self, host: str) -> int:
        """Return the shard that has everything about a host."""
        return Sharding(len(self.readers)).shard_of(host)

    def reader_of(self, host: str) -> ShardReader:
        """Return the reader of that shard."""
        return self.readers[self.shard_of(host)]

    def pages(self) -> Iterator[PageRecord]:
        """Yield the records of all pages, each once, shard after shard."""
        for reader in self.readers:
            for _, record in reader.pages():
                yield record

    @property
    def keeps_links(self) -> bool:
        """Return whether the links of pages are kept (--links)."""
        return settings_of(self.store.manifest).links

    def links(self) -> Iterator[Link]:
        """Yield every link of every page, page after page; without --links redirects only."""
        read = self._link_reader().links
        for reader in self.readers:
            for record, kept in reader.elements():
                yield from read(record, kept)

    def links_of(self, url: str) -> Iterator[Link]:
        """Yield the links of one page."""
        reader = self.reader_of(host_key_of(url))
        record = reader.find(url)
        if isinstance(record, PageRecord):
            yield from self._link_reader().links(record, reader.elements_of(url))

    def metadata(self) -> Iterator[tuple[PageRecord, Metadata]]:
        """Yield every page with its metadata; without --links only what robots.txt says."""
        keeps_links = self.keeps_links
        for reader in self.readers:
            pages = reader.elements() if keeps_links else _without_elements(reader)
            for record, kept in pages:
                yield record, self._metadata(record, kept)

    def metadata_of(self, record: PageRecord) -> Metadata:
        """Return the metadata of one page."""
        kept = self.reader_of(host_key_of(record.url)).elements_of(record.url)
        return self._metadata(record, kept)

    def _metadata(self, record: PageRecord, kept: bytes | None) -> Metadata:
        found = metadata_of(record.url, kept)
        signals = self._signals(record.url[: record.url.index("/", 8)])
        if signals:
            use = found.setdefault("machine_use", {})
            assert isinstance(use, dict)
            use["content_signal"] = signals
        return found

    def _signals(self, origin: str) -> dict[str, str]:
        """Return what the robots.txt of an origin says about use by machines."""
        if origin not in self.signals:
            if len(self.signals) >= _ORIGINS:
                self.signals.clear()
            robots = self.reader_of(host_key_of(origin + "/")).robots(origin)
            agent = settings_of(self.store.manifest).agent_token
            body = robots.body if robots is not None else None
            self.signals[origin] = content_signal(body, agent)
        return self.signals[origin]

    def _link_reader(self) -> LinkReader:
        return LinkReader(settings_of(self.store.manifest).url_rules)

    def skipped(self) -> Iterator[Skipped]:
        """Yield all URLs that are skipped, each once."""
        for reader in self.readers:
            yield from reader.skipped()

    def given_up(self) -> Iterator[Skipped]:
        """Yield all URLs that were given up, each once."""
        for reader in self.readers:
            yield from reader.given_up()


@contextmanager
def view(store: CrawlStore) -> Iterator[View]:
    """Open a reader for every shard."""
    with ExitStack() as stack:
        shards = range(store.manifest.shards)
        yield View(store, tuple(stack.enter_context(store.read(shard)) for shard in shards), {})


def _without_elements(reader: ShardReader) -> Iterator[tuple[PageRecord, None]]:
    for _, record in reader.pages():
        yield record, None


def settings_of(manifest: Manifest) -> CrawlSettings:
    """Return the settings that a crawl began with.

    Raises:
        StoreError: they make no sense to this version.
    """
    try:
        stored = {main_name(name): value for name, value in manifest.settings.items()}
        return msgspec.convert(stored, CrawlSettings, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(f"the crawl's stored settings cannot be used: {error}") from error
