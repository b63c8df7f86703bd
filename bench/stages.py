"""What one page costs in each pure stage, next to what the usual libraries would take.

    python -m bench.stages

One page of 45 KB with 90 links is generated (a menu of 20 root-relative links, 60 relative ones of
which a third have a query, some absolute, some tracked, some that are no pages). The best of
several rounds is printed, since noise only ever adds. All rows come from one run on one machine:
compare them with each other, and only then with another day's.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit, urlunsplit

from mannerly.crawl.dedup import SeenFilter, fingerprints
from mannerly.crawl.parse import HrefMemory, Page, lexbor, parse_page, resolve_links
from mannerly.crawl.scope import Scope
from mannerly.crawl.urls import LinkBase

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE_URL = "https://example.com/section/page-7.html"
PAGE_BYTES = 45_000
WORDS = ("as", "fast", "each", "site", "allows", "never", "faster", "able", "prove", "own", "log")


def hrefs() -> list[str]:
    """Ninety links in the proportions of an ordinary site."""
    menu = [f"/section/{n}/" for n in range(20)]
    relative = [f"../item/{n}" + (f"?page={n}&sort=new" if n % 3 == 0 else "") for n in range(60)]
    absolute = [f"https://example.com/tag/{n}#top" for n in range(5)]
    tracked = [f"/offer/{n}?utm_source=home&id={n}" for n in range(3)]
    return [*menu, *relative, *absolute, *tracked, "mailto:me@example.com", "javascript:void(0)"]


def generate(links: list[str], seed: int = 1) -> bytes:
    """A page of about 45 KB around these links."""
    rng = random.Random(seed)
    words_per_link = PAGE_BYTES // len(links) // 7
    rows = []
    for number, href in enumerate(links):
        words = " ".join(rng.choices(WORDS, k=words_per_link))
        escaped = href.replace("&", "&amp;")
        rows.append(
            f'<div class="card" id="c{number}"><p class="t">{words} <b>bold</b></p>'
            f'<a class="more" href="{escaped}">More</a><img src="/i/{number}.png" alt=""></div>'
        )
    head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page 7</title></head>'
    return f"{head}<body><main>{''.join(rows)}</main></body></html>".encode()


def best_us(work: Callable[[], object], rounds: int = 15, repeats: int = 40) -> float:
    """Microseconds of one call: the best round of several."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        best = min(best, time.perf_counter() - start)
    return best / repeats * 1e6


def normalise_with_urllib(links: list[str]) -> list[str]:
    """The same job as far as the standard library goes: no WHATWG rules, no IDNA."""
    urls = {}
    for href in links:
        scheme, netloc, path, query, _ = urlsplit(urljoin(PAGE_URL, href))
        if scheme in ("http", "https"):
            urls[urlunsplit((scheme, netloc.lower(), path, query, ""))] = None
    return list(urls)


def run() -> dict[str, float]:
    """Measure every stage, print a table, and return microseconds a page by stage."""
    links = hrefs()
    body = generate(links)
    page = parse_page(body, "text/html", PAGE_URL)
    assert isinstance(page, Page)
    urls = resolve_links(page).urls
    memory = HrefMemory()
    scope = Scope(("https://example.com/",))
    seen = SeenFilter(expected=1_000_000)
    seen.update(fingerprints([f"https://example.com/{n}" for n in range(200_000)], 1))
    base = LinkBase(PAGE_URL)
    stages: dict[str, Callable[[], object]] = {
        "parse: turbohtml": lambda: parse_page(body, "text/html", PAGE_URL),
        "parse: selectolax + scan": lambda: parse_page(
            body, "text/html", PAGE_URL, reader=lexbor.read
        ),
        "normalise: url-py": lambda: resolve_links(page),
        "normalise: url-py + memory": lambda: resolve_links(page, memory=memory),
        "normalise: bare resolve": lambda: [base.resolve(href) for href in page.links],
        "normalise: urllib.parse": lambda: normalise_with_urllib(links),
        "scope: same host": lambda: scope.sort(urls, 1, page_url=PAGE_URL),
        "dedup: fingerprints": lambda: fingerprints(urls, 1),
        "dedup: sift": lambda: seen.sift(fingerprints(urls, 1)),
    }
    print(f"{len(body):,} bytes, {len(page.links)} links, {len(urls)} URLs\n")
    print(f"{'stage':<30}{'µs a page':>12}{'µs a link':>12}")
    costs = {}
    for name, work in stages.items():
        costs[name] = best_us(work)
        print(f"{name:<30}{costs[name]:>12.1f}{costs[name] / len(links):>12.3f}")
    return costs


if __name__ == "__main__":
    run()
