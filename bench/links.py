"""Measure the room and the time that the links of pages take (--links).

    python -m bench links                  the bench's web and the manuals that are installed
    python -m bench links --hosts 50       a smaller web

The pages are read from disk, scanned, and committed to a store: many at a time as a fast crawl
does, which compresses quickly, and few at a time as a crawl does that waits for its server. Printed
for each site: elements and bytes a page, microseconds of processor time a page for compressing and
for reading all pages in order, and links a second of an export that does nothing with them.

Of the bench's web the least possible is printed, too: its link texts are random words and its
targets random pages, so no encoding of them can be smaller on average than the choices of its
generator, in bits.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import closing
from math import log2
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import apsw
import msgspec

from mannerly.crawler.page import scan
from mannerly.crawler.page.elements import bounded
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.store.contract import candidate, offer, page
from mannerly.crawler.store.element_streams import ElementStream, StreamReader
from mannerly.crawler.stored import open_crawl

from ._figures import write
from .content import SITES
from .scale import temporary
from .web import WebSpec
from .web.links import CAMPAIGNS, FRAGMENTS, KINDS
from .web.page import BLOCKS, SHARES, Prose, card
from .web.tree import ensure, file_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MANY, FEW = 200, 10  # pages of a commit, in a fast crawl and in a slow one


class Site(NamedTuple):
    """Pages of one kind: where each is, and its elements."""

    name: str
    kept: list[bytes]


class Figures(NamedTuple):
    """Means of a page."""

    elements: float
    bytes_plain: float
    bytes_fast: float
    bytes_slow: float
    us_fast: float
    us_slow: float
    us_read: float
    links_per_s: float


def elements_of(files: Iterator[Path]) -> list[bytes]:
    """Return what --links keeps of each file."""
    found = (scan.read_all(file.read_bytes(), "utf-8", 10_000).kept for file in files)
    return [bounded(kept) for kept in found if kept is not None]


def sites(spec: WebSpec) -> Iterator[Site]:
    """Yield the bench's web, page after page of all hosts, and the manuals."""
    root = ensure(spec) / "hosts"
    paths = [file_of(spec.path(number)) for number in range(spec.pages)]
    homes = [root / spec.address(host) for host in range(spec.hosts)]
    yield Site("bench web", elements_of(home / path for path in paths for home in homes))
    for name, (pattern, _) in SITES.items():
        roots = sorted(Path("/").glob(pattern.lstrip("/")))
        files = sorted({file.resolve() for each in roots for file in each.rglob("*.html")})
        if files:
            yield Site(name, elements_of(iter(files)))
        else:
            print(f"{name} is not installed: apt install {name}")


def slices(kept: list[bytes], count: int) -> Iterator[list[bytes]]:
    return (kept[start : start + count] for start in range(0, len(kept), count))


def stored(location: Path, kept: list[bytes], at_once: int) -> int:
    """Store the pages, so many a commit; return the bytes of their elements in the file."""
    manifest = Manifest.new(
        seeds=["https://a.example/"],
        settings=msgspec.to_builtins(CrawlSettings(links=True)),
        shards=1,
        created_at=1_790_000_000.0,
    )
    options = ShardOptions(frontier_limit=10_000_000)
    with closing(create_crawl(location, manifest)) as crawl, crawl.claim(0, options) as store:
        for number, part in enumerate(slices(kept, at_once)):
            found = [candidate(f"/{number}/{place}.html") for place in range(len(part))]
            new = store.commit(offer(found)).new
            elements = {each.seq: content for each, content in zip(new, part, strict=True)}
            store.commit(Batch(pages=[(each, page(each)) for each in new], elements=elements))
    with closing(apsw.Connection(str(location / "shard-0.db"))) as database:
        ((size,),) = database.execute("SELECT sum(length(data)) FROM elements")
    return int(str(size))


def compressing_s(kept: list[bytes], at_once: int, *, is_fast: bool) -> tuple[float, float]:
    """Return the seconds of compressing all pages, and of reading them."""
    streams: list[list[bytes]] = []
    stream = None
    began = time.process_time()
    for part in slices(kept, at_once):
        if stream is None or stream.is_full:
            stream = ElementStream(is_fast=is_fast)
            streams.append([])
        streams[-1].append(stream.add(part))
    written = time.process_time()
    for each in streams:
        reader = StreamReader()
        for data in each:
            reader.next(data)
    return written - began, time.process_time() - written


def measured(site: Site, place: Path) -> Figures:
    """Store a site twice, and measure it."""
    kept, pages = site.kept, len(site.kept)
    fast, slow = place / f"{site.name}-fast", place / f"{site.name}-slow"
    fast_bytes, slow_bytes = stored(fast, kept, MANY), stored(slow, kept, FEW)
    fast_s, read_s = compressing_s(kept, MANY, is_fast=True)
    slow_s, _ = compressing_s(kept, FEW, is_fast=False)
    began = time.process_time()
    with open_crawl(fast) as crawl:
        links = sum(1 for _ in crawl.links())
    return Figures(
        sum(each.count(b"\0") // 2 for each in kept) / pages,
        sum(map(len, kept)) / pages,
        fast_bytes / pages,
        slow_bytes / pages,
        fast_s / pages * 1e6,
        slow_s / pages * 1e6,
        read_s / pages * 1e6,
        links / (time.process_time() - began),
    )


def least_bytes(spec: WebSpec) -> dict[str, float]:
    """Return the bytes of a page's random choices: texts, targets, and all that is kept."""
    words = Counter(Prose(Random(spec.seed)).vocabulary)
    word = _entropy(words.values())
    tree = 4  # links that are the same for every page
    in_text = (spec.min_links + spec.max_links) / 2 - (spec.sections + 1)
    chosen = {kind: share for kind, share in KINDS.items() if kind != "repeated"}
    more = {"cross_host": spec.hosts, "fragment": len(FRAGMENTS), "tracked": len(CAMPAIGNS)}
    total = sum(KINDS.values())
    # A repeated link is counted as if it took nothing.
    target = _entropy(chosen.values()) * sum(chosen.values()) / total
    target += sum(
        share / total * log2(spec.pages * more.get(kind, 1)) for kind, share in chosen.items()
    )
    is_card = SHARES[BLOCKS.index(card)] / sum(SHARES)
    image = _entropy((is_card, 1 - is_card)) + is_card * log2(1000)
    texts = in_text * (log2(4) + 2.5 * word)  # one to four words
    targets = (in_text - tree - 4) * target  # four more are the same on every page
    described = log2(5) + (5 + 20) * word
    return {
        "texts": texts / 8,
        "targets": targets / 8,
        "all": (texts + targets + in_text * image + described) / 8,
    }


def _entropy(shares: Iterable[float]) -> float:
    """Return the bits of a choice."""
    found = list(shares)
    total = sum(found)
    return -sum(each / total * log2(each / total) for each in found)


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Measure, print a row a site, and leave the figures in `.cache/bench/links.json`."""
    parser = ArgumentParser(prog="python -m bench links")
    parser.add_argument("--hosts", type=int, default=200)
    spec = WebSpec(hosts=parser.parse_args(list(options)).hosts)
    figures: dict[str, dict[str, float]] = {}
    print(
        "                  pages elements   plain    fast    slow     µs     µs   µs read   links/s"
    )
    with temporary() as place:
        for site in sites(spec):
            found = measured(site, place)
            figures[site.name] = found._asdict()
            print(
                f"{site.name:16}{len(site.kept):7,}{found.elements:9.0f}{found.bytes_plain:8,.0f}"
                f"{found.bytes_fast:8,.0f}{found.bytes_slow:8,.0f}{found.us_fast:7.0f}"
                f"{found.us_slow:7.0f}{found.us_read:10.0f}{found.links_per_s:10,.0f}",
                flush=True,
            )
    least = figures["least of the bench web"] = least_bytes(spec)
    print(
        f"\nleast possible on the bench web: {least['all']:.0f} bytes a page, "
        f"{least['texts']:.0f} of them texts of links and {least['targets']:.0f} targets"
    )
    write("links", figures)
    return figures
