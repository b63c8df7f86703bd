"""A crawl on disk, made through the store, with something of everything in it.

Two shards. The crawled text is as nasty as it gets: a formula, an escape sequence, the
markup of a terminal library, line ends that only some programs know.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.host_view import Doing, LimitedBy, pack_doing
from mannerly.crawler.model import Candidate, Entry, HostRecord, PageRecord, RobotsRecord
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mannerly.crawler.store.base import ShardStore

Location = TypeVar("Location", bound="str | Path")
SHARDS = 2
SHARDING = Sharding(SHARDS)
SEED = "https://a.example/"
FETCHED_AT = 1_700_000_000.25
NASTY_TITLE = '=1+1 \x1b[31m[/red]\u2028\u202e"x"'


def page(url: str, **changes: object) -> PageRecord:
    """A page like any other, but for the changes."""
    record = PageRecord(
        url=url,
        status=200,
        depth=0,
        parent=None,
        title="A page",
        content_type="text/html; charset=utf-8",
        bytes=1234,
        latency_ms=12.5,
        fetched_at=FETCHED_AT,
        attempts=1,
        links=3,
        canonical=None,
        redirect_to=None,
        error=None,
        host=host_key_of(url),
        digest="00ff",
    )
    return record._replace(**changes)  # type: ignore[arg-type]


PAGES = (
    page(SEED),
    page("https://a.example/nasty", depth=1, parent=SEED, title=NASTY_TITLE),
    page("https://a.example/copy", canonical=SEED, parent=SEED, depth=1),
    page("https://a.example/old", status=301, redirect_to=SEED, parent=SEED, depth=1),
    page("https://a.example/gone", status=404, parent=SEED, depth=1),
    page("https://a.example/a.pdf", content_type="application/pdf", parent=SEED, depth=1),
    page("https://b.example/?a=1&b=<2>", parent=SEED, depth=1),
    page(
        "https://b.example/broken",
        status=None,
        content_type=None,
        error="timeout",
        parent=SEED,
        depth=1,
    ),
)
LISTED = (SEED, "https://a.example/nasty", "https://b.example/?a=1&b=<2>")
QUEUED = "https://a.example/later"
PRIVATE = "https://a.example/private/x"
EXCESS = "https://b.example/one-too-many"
SKIPPED = {PRIVATE: "robots", EXCESS: "max_per_host"}


def make_crawl(
    location: Location, pages: Iterable[PageRecord] = PAGES, **settings: object
) -> Location:
    """A crawl with these pages fetched, one URL queued and some skipped."""
    crawl_settings = CrawlSettings(processes=SHARDS, **settings)  # type: ignore[arg-type]
    manifest = Manifest.new(
        seeds=[SEED],
        settings=msgspec.to_builtins(crawl_settings),
        shards=SHARDS,
        created_at=FETCHED_AT,
    )
    with closing(create_crawl(location, manifest)) as crawl:
        for shard in range(SHARDS):
            mine = [each for each in pages if _shard_of(each.url) == shard]
            with crawl.claim(shard, ShardOptions(frontier_limit=1_000_000)) as store:
                _fill(store, shard, mine)
    return location


def _fill(store: ShardStore, shard: int, pages: list[PageRecord]) -> None:
    skipped = {url: reason for url, reason in SKIPPED.items() if _shard_of(url) == shard}
    offered = [_candidate(each.url, each.parent) for each in pages]
    offered += [_candidate(url, SEED) for url in skipped]
    new = store.commit(Batch(found=offered)).new
    entries: dict[str, Entry] = {entry.url: entry for entry in new}
    batch = Batch(
        pages=[(entries[each.url], each) for each in pages],
        dropped=[(entries[url], reason) for url, reason in skipped.items()],
    )
    if shard == _shard_of(SEED):
        batch.found.append(_candidate(QUEUED, SEED))
        batch.hosts.append(_host())
        batch.robots["https://a.example"] = _robots()
    store.commit(batch)


def _shard_of(url: str) -> int:
    return SHARDING.shard_of(host_key_of(url))


def _candidate(url: str, parent: str | None) -> Candidate:
    return Candidate(url, host_key_of(url), 0 if parent is None else 1, 5, parent)


def _host() -> HostRecord:
    return HostRecord(
        host="a.example",
        adaptive_delay_s=0.5,
        concurrency=4,
        is_proven=True,
        blocked_until=4_000_000_000.0,
        doing=pack_doing(Doing(delay_s=0.5, limited_by=LimitedBy.LEARNED)),
        updated_at=FETCHED_AT,
        fetched=6,
        refused=2,
        retired="stalled",
    )


def _robots() -> RobotsRecord:
    return RobotsRecord(
        origin="https://a.example",
        status=200,
        body=b"User-agent: *\nDisallow: /private/\n",
        fetched_at=FETCHED_AT,
        expires_at=FETCHED_AT + 86_400,
    )
