"""Measure Markdown and Parquet: the words that are kept, and the time a page takes.

    python -m bench content                          both; a million rows, some minutes
    python -m bench content --only markdown
    python -m bench content --only select
    python -m bench content --only parquet --rows 100000

markdown    pages of three documentation sites, as Debian packages bring them (python3-doc: Sphinx;
            postgresql-doc: DocBook; git-doc: AsciiDoc). Beside each page's Markdown stands the part
            that its own generator marks as content; the share of its words that are kept is
            counted. The time is CPU time of one process.
select      elements that selectors find on 22 pages of two manuals, next to html5lib (bench group)
parquet     the export of a stored crawl without content: rows a CPU second, and peak memory
"""

from __future__ import annotations

import random
import re
import resource
import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.model import Candidate
from mannerly.crawler.page.content import content_of
from mannerly.crawler.page.html import page_text
from mannerly.crawler.page.tree import parse_text
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.contract.values import page as page_record
from mannerly.crawler.web.choices import Content
from mannerly.exports import export

from ._figures import write
from .scale import temporary

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGES = 67  # of each site: 201 in all
ENOUGH = 0.9
# Where the documents are, and what each generator puts the content of a page into.
SITES = {
    "python3-doc": ("/usr/share/doc/python3*/html", "[role=main]"),
    "postgresql-doc": ("/usr/share/doc/postgresql-doc-*/html", "body"),
    "git-doc": ("/usr/share/doc/git/html", "#content"),
}
_FRAME = "script, style, noscript, template, nav, .navheader, .navfooter, a.headerlink"
_WORD = re.compile(r"\w+")


def kept_share(body: bytes, landmark: str) -> tuple[float, float]:
    """Return the share of a page's words that its Markdown has, and the seconds that it took."""
    began = time.process_time()
    text = content_of(body, "text/html", "http://docs.example/page.html", Content.MARKDOWN)
    seconds = time.process_time() - began
    document = parse_text(page_text(body, "text/html"))
    marked = document.select_one(landmark) or document
    for element in marked.select(_FRAME):
        element.decompose()
    wanted, got = Counter(_WORD.findall(marked.text)), Counter(_WORD.findall(text or ""))
    total = sum(wanted.values())
    kept = sum(min(count, got[word]) for word, count in wanted.items())
    return (kept / total if total else 1.0), seconds


def markdown() -> dict[str, float]:
    """Return the share of pages whose words are kept, and milliseconds a page."""
    shares: list[float] = []
    seconds: list[float] = []
    for name, (pattern, landmark) in SITES.items():
        roots = sorted(Path("/").glob(pattern.lstrip("/")))
        files = sorted({file.resolve() for root in roots for file in root.rglob("*.html")})
        if not files:
            print(f"{name} is not installed: apt install {name}")
            continue
        random.Random(1).shuffle(files)
        found = [kept_share(file.read_bytes(), landmark) for file in files[:PAGES]]
        good = sum(share >= ENOUGH for share, _ in found)
        print(f"{name:15} {good} of {len(found)} pages, {mean(s for _, s in found) * 1e3:.2f} ms")
        shares += [share for share, _ in found]
        seconds += [each for _, each in found]
    figures = {
        "pages": float(len(shares)),
        "kept": sum(share >= ENOUGH for share in shares) / max(1, len(shares)),
        "ms_a_page": mean(seconds) * 1e3 if seconds else 0.0,
    }
    print(f"kept on {figures['kept']:.1%} of pages, {figures['ms_a_page']:.2f} ms a page")
    return figures


def select() -> dict[str, float]:
    """Return on how many pages selectors find what html5lib finds, and the elements."""
    import html5lib
    from tests.crawler.page.test_formatting import MANUALS, SELECTORS, counts

    files = [root / f"{name}.html" for root, names in MANUALS.items() for name in names.split()]
    installed = [file for file in files if file.is_file()]
    equal = elements = 0
    for file in installed:
        html = file.read_text()
        tree = html5lib.parse(html, namespaceHTMLElements=False)
        wanted = {name: sum(1 for _ in tree.iter(name)) for name in SELECTORS}
        equal += counts(html) == wanted
        elements += sum(wanted.values())
    print(f"select: the same on {equal} of {len(installed)} pages, {elements:,} elements")
    return {"pages": float(len(installed)), "equal": float(equal), "elements": float(elements)}


def parquet(rows: int) -> dict[str, float]:
    """Return the rows that are exported in a second, and the growth of peak memory."""
    with temporary() as place:
        _fill(place / "crawl", rows)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()  # other load on the machine does not count
        export(place / "crawl", str(place / "pages.parquet"))
        seconds = time.process_time() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{rows:,} rows: {rows / seconds:,.0f} a CPU second, {grown / 1024:.0f} MB more memory")
    return {"rows_a_second": rows / seconds, "grown_mb": grown / 1024}


def _fill(directory: Path, rows: int) -> None:
    """Make a crawl with as many pages."""
    with closing(create_crawl(directory, new_manifest(1))) as crawl:
        assert Sharding(1).shard_of("a.example") == 0
        with crawl.claim(0, ShardOptions(frontier_limit=rows + 1)) as store:
            for start in range(0, rows, 5000):
                urls = (f"https://a.example/{n}" for n in range(start, min(start + 5000, rows)))
                new = store.commit(
                    Batch(found=[Candidate(url, "a.example", 1, 1, None) for url in urls])
                ).new
                store.commit(Batch(pages=[(entry, page_record(entry)) for entry in new]))


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Measure, print, and leave the figures in `.cache/bench/content.json`."""
    parser = ArgumentParser(prog="python -m bench content")
    parser.add_argument("--only", choices=["markdown", "select", "parquet"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args(list(options))
    figures = {}
    if given.only in (None, "markdown"):
        figures["markdown"] = markdown()
    if given.only in (None, "select"):
        figures["select"] = select()
    if given.only in (None, "parquet"):
        figures["parquet"] = parquet(given.rows)
    write("content", figures)
    return figures
