"""Measure the time of one page in each stage without I/O, next to other libraries.

    python -m bench stages
    python -m bench stages --kind forum     pages of another kind (`bench/web/manners.py`)

The pages are those of the web that whole crawlers are compared on (`bench/web`): 20 of each of two
hosts. All candidates of a stage take turns in short rounds of one run (`_rounds.py`). *As shipped*
is the crawler's own function with everything it does; the rows below it are the bare libraries,
which do less (`parsers.py`, `resolvers.py`), ours among them. The memory of hrefs starts empty in
every round, as it does on a site that was never visited.

The filter and the set know half a million URLs, including those of the pages, because nearly every
link of a crawl is known. The answer of the set is final. A URL that the filter may know is looked
up in the store, once for a whole batch of pages (`python -m bench store`).

The links found are compared too, because speed is worth nothing if they are wrong: on these pages,
and on markup and hrefs that libraries are known to read differently. The table names these cases.
The first library of each list is the crawler's, and the others are compared with it.
"""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tests.crawler.page import lexbor

from mannerly.crawler.page import HrefMemory, ParsedPage, parse_page, resolve_links
from mannerly.crawler.page import tree as turbo
from mannerly.crawler.store.sqlite.maybe_known import SeenFilter, fingerprints
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.scope import Scope

from . import _figures
from ._rounds import Rounds
from .parsers import ODD_PAGES, PARSERS
from .resolvers import ODD_HREFS, ODD_HREFS_AT, RESOLVERS, Join, resolve
from .web import WebSpec, ensure
from .web.manners import MANNERS
from .web.tree import file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HOSTS = 2
PORT = 18086
PAGES = 20
ROUNDS = 15
KNOWN = 500_000
SHIPPED = "as shipped"
HTML = "text/html; charset=utf-8"

Case = TypeVar("Case")


class Sample(NamedTuple):
    """One page with the input of each stage."""

    url: str
    body: bytes
    page: ParsedPage
    urls: list[str]


class Hrefs(NamedTuple):
    """The links of a page, and their base URL."""

    base: str
    texts: Sequence[str]


def samples(web: WebSpec) -> list[Sample]:
    """Return the first pages of the first hosts, with the input of each stage."""
    root = ensure(web) / "hosts"
    made = []
    for host in range(HOSTS):
        for number in range(PAGES):
            url = web.origin(host) + web.path(number)
            body = (root / web.address(host) / file_of(web.path(number))).read_bytes()
            page = parse_page(body, HTML, url)
            assert isinstance(page, ParsedPage)
            made.append(Sample(url, body, page, resolve_links(page).urls))
    return made


def each_page(work: Callable[[Sample], object], pages: Sequence[Sample]) -> Callable[[int], float]:
    """A measure: seconds a page, over all pages once."""

    def measure(_: int) -> float:
        start = perf_counter()
        for page in pages:
            work(page)
        return (perf_counter() - start) / len(pages)

    return measure


def parsing(pages: Sequence[Sample]) -> dict[str, Callable[[int], float]]:
    def bare(parse: Callable[[bytes], list[str]]) -> Callable[[int], float]:
        return each_page(lambda page: parse(page.body), pages)

    return {
        SHIPPED: each_page(lambda page: parse_page(page.body, HTML, page.url), pages),
        "as shipped, by the tree": each_page(
            lambda page: parse_page(page.body, HTML, page.url, reader=turbo.read), pages
        ),
        "as shipped, on selectolax": each_page(
            lambda page: parse_page(page.body, HTML, page.url, reader=lexbor.read), pages
        ),
        **{name: bare(parse) for name, parse in PARSERS.items()},
    }


def resolving(pages: Sequence[Sample]) -> dict[str, Callable[[int], float]]:
    def shipped(number: int) -> float:
        memory = HrefMemory()

        def work(page: Sample) -> None:
            links = resolve_links(page.page, memory=memory)
            memory.passed_on(links, links.urls)

        return each_page(work, pages)(number)

    def bare(on_page: Callable[[str], Join]) -> Callable[[int], float]:
        return each_page(lambda page: resolve(on_page(page.url), page.page.links), pages)

    return {
        SHIPPED: shipped,
        "as shipped, every link known": each_page(known(pages), pages),
        "as shipped, without memory": each_page(lambda page: resolve_links(page.page), pages),
        **{name: bare(on_page) for name, on_page in RESOLVERS.items()},
    }


def known(pages: Sequence[Sample]) -> Callable[[Sample], object]:
    """Resolve links that were all met before, as most are in a crawl."""
    memory, recent = HrefMemory(), Recent()
    for page in pages:
        found = resolve_links(page.page, memory=memory, met=recent)
        memory.passed_on(found, found.urls)
        for url in found.urls:
            recent.add(url)
    return lambda page: resolve_links(page.page, memory=memory, met=recent)


def scoping(pages: Sequence[Sample], web: WebSpec) -> dict[str, Callable[[int], float]]:
    scope = Scope(tuple(web.homes()[:HOSTS]))
    return {SHIPPED: each_page(lambda page: scope.sort(page.urls, 1, page_url=page.url), pages)}


def knowing(
    pages: Sequence[Sample], known: list[str]
) -> tuple[dict[str, Callable[[int], float]], dict[str, float]]:
    """The measures, and bytes a known URL."""
    filtered, exact = SeenFilter(expected=len(known)), set(known)
    filtered.update(fingerprints(known, 1))
    sizes = {
        SHIPPED: filtered.approx_bytes / len(known),
        "set of str": (sys.getsizeof(exact) + sum(map(sys.getsizeof, known))) / len(known),
    }

    def ask_filter(page: Sample) -> list[int]:
        new = [fp for fp in fingerprints(page.urls, 1) if not filtered.maybe_seen(fp)]
        filtered.update(new)
        return new

    def ask_set(page: Sample) -> list[str]:
        new = [url for url in page.urls if url not in exact]
        exact.update(new)
        return new

    return {
        SHIPPED: fresh(ask_filter, pages),
        "set of str": fresh(ask_set, pages),
    }, sizes


def fresh(work: Callable[[Sample], object], pages: Sequence[Sample]) -> Callable[[int], float]:
    """Like `each_page`, with new URL objects each time: a `str` remembers its hash."""

    def measure(number: int) -> float:
        again = [page._replace(urls=[url.encode().decode() for url in page.urls]) for page in pages]
        return each_page(work, again)(number)

    return measure


def show(stage: str, measures: Mapping[str, Callable[[int], float]]) -> dict[str, object]:
    """Measure one stage and print its rows."""
    gc.collect()
    gc.freeze()
    rounds = Rounds(measures, ROUNDS)
    gc.unfreeze()
    print(f"\n{stage:<32}{'µs a page':>12}{'× shipped':>12}")
    rows: dict[str, object] = {}
    for name in measures:
        cost, ratio = rounds.microseconds(name), rounds.ratio(name, SHIPPED)
        rows[name] = {"us_a_page": cost, "to_shipped": ratio}
        print(f"{name:<32}{cost:>12.1f}{ratio:>12.2f}")
    return rows


def differences(
    readers: Mapping[str, Callable[[Case], list[str]]], cases: Mapping[str, Case]
) -> dict[str, list[str]]:
    """For each reader the names of the cases that it reads differently from the first one."""
    first, *others = readers
    expected = {name: readers[first](case) for name, case in cases.items()}
    return {
        other: [name for name, case in cases.items() if readers[other](case) != expected[name]]
        for other in others
    }


def resolving_with(on_page: Callable[[str], Join]) -> Callable[[Hrefs], list[str]]:
    return lambda hrefs: resolve(on_page(hrefs.base), hrefs.texts)


def compare_links(pages: Sequence[Sample]) -> Mapping[str, Mapping[str, list[str]]]:
    """Print which libraries find other links than ours, and in which cases."""
    resolvers = {name: resolving_with(on_page) for name, on_page in RESOLVERS.items()}
    odd_pages = {name: text.encode() for name, text in ODD_PAGES.items()}
    odd_hrefs = {href: Hrefs(ODD_HREFS_AT, [href]) for href in ODD_HREFS}
    found: dict[str, Mapping[str, list[str]]] = {
        "pages": differences(PARSERS, {page.url: page.body for page in pages}),
        "odd markup": differences(PARSERS, odd_pages),
        "links of pages": differences(
            resolvers, {page.url: Hrefs(page.url, page.page.links) for page in pages}
        ),
        "odd hrefs": differences(resolvers, odd_hrefs),
    }
    totals = (len(pages), len(odd_pages), len(pages), len(odd_hrefs))
    for (kind, by_reader), total in zip(found.items(), totals, strict=True):
        print(f"\n{kind}, {total}, of which read differently:")
        for reader, names in by_reader.items():
            print(f"  {reader:<30}{len(names):>4}  {'; '.join(names) if 'odd' in kind else ''}")
    return found


def run(options: Sequence[str] = ()) -> None:
    """Measure every stage, compare the links, print tables and write the figures."""
    parser = ArgumentParser(prog="python -m bench stages")
    parser.add_argument("--kind", choices=MANNERS, default="pages")
    web = WebSpec.of_kind(parser.parse_args(list(options)).kind, hosts=8, port=PORT)
    pages = samples(web)
    links = sum(len(page.page.links) for page in pages)
    size = sum(len(page.body) for page in pages)
    print(f"{len(pages)} pages of {size // len(pages):,} bytes with {links // len(pages)} links")
    known = [f"{web.origin(n % 200)}/section-{n % 7}/page-{n}.html?id={n}" for n in range(KNOWN)]
    dedup, bytes_a_url = knowing(pages, known)
    figures: dict[str, object] = {
        "parse": show("parse", parsing(pages)),
        "links": show("links to canonical URLs", resolving(pages)),
        "scope": show("scope", scoping(pages, web)),
        "dedup": show("seen before?", dedup),
        "bytes a known URL": bytes_a_url,
    }
    print("bytes a known URL: ", ", ".join(f"{n} {size:.1f}" for n, size in bytes_a_url.items()))
    figures["read differently"] = compare_links(pages)
    print(f"\nwritten to {_figures.write('stages', figures)}")


if __name__ == "__main__":
    run()
