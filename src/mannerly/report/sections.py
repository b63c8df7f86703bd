"""Status, indexability and times of directories and depths; slow and large pages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from mannerly.crawler.web.charset import media_type
from mannerly.crawler.web.patterns import section_of

from .pages import is_ok, status_class, why_not_indexed
from .table import Cell, Column, CsvFile, Phone, ReportTable, Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.model import PageRecord

    from .facts import CrawlFacts

_FIELDS = ("section", "pages", "2xx", "3xx", "4xx", "5xx", "indexable", "main_reason_why_not")
_DEPTH_FIELDS = ("depth", "pages", "2xx", "3xx", "4xx", "5xx", "indexable")
_COLUMNS = (
    Column("Section", width="narrow"),
    Column("Pages", Cell.NUMBER),
    Column("Share by status", Cell.SHARE, phone=Phone.UNDER),
    Column("2xx", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("3xx", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("4xx", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("5xx", Cell.NUMBER, phone=Phone.HIDDEN),
    Column("Indexable", Cell.PERCENT),
    Column("Main reason why not", Cell.QUIET, phone=Phone.HIDDEN),
)
MOST_SECTIONS = 200  # a site whose pages all lie in directories of their own has no sections
OTHERS = "everything else"
_DEPTHS = 10  # shown in the chart, one by one


@dataclass(slots=True)
class Tally:
    """The pages of a directory, or of a depth."""

    pages: int = 0
    classes: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)

    def add(self, page: PageRecord) -> None:
        """Count a page."""
        self.pages += 1
        self.classes[status_class(page)] += 1
        if reason := why_not_indexed(page):
            self.reasons[reason] += 1
        if is_ok(page):
            self.latencies_ms.append(page.latency_ms)

    def merge(self, other: Tally) -> None:
        """Add the pages of another one."""
        self.pages += other.pages
        self.classes += other.classes
        self.reasons += other.reasons
        self.latencies_ms += other.latencies_ms

    @property
    def indexable(self) -> float:
        """Return the share of pages that may be listed, in per cent."""
        return 100.0 * (self.pages - self.reasons.total()) / self.pages

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of pages with 2xx, 3xx, 4xx and 5xx."""
        two, three, four, five = (self.classes[each] for each in (2, 3, 4, 5))
        return two, three, four, five

    @property
    def main_reason(self) -> str:
        """Return the most frequent reason why a page is not listed."""
        return max(sorted(self.reasons), key=self.reasons.__getitem__, default="")


def by_section(facts: CrawlFacts) -> dict[str, Tally]:
    """Return the directories, the largest first; small ones of very many are put together."""
    found: dict[str, Tally] = {}
    main = facts.main_host
    for url, page in facts.pages.items():
        name = section_of(url)
        if name.startswith(main + "/"):
            name = name[len(main) :]
        tally = found.get(name)
        if tally is None:
            tally = found[name] = Tally()
        tally.add(page)
    ordered = sorted(found.items(), key=lambda each: (-each[1].pages, each[0]))
    others = Tally()
    for _, tally in ordered[MOST_SECTIONS:]:
        others.merge(tally)
    return dict(ordered[:MOST_SECTIONS]) | ({OTHERS: others} if others.pages else {})


def section(tallies: dict[str, Tally]) -> Section:
    """Return the section of directories."""
    rows = [
        Row((name, each.pages, each.counts, *each.counts, each.indexable, each.main_reason))
        for name, each in tallies.items()
    ]
    return Section(
        "sections",
        "Status by section",
        len(rows),
        "and what can be indexed",
        empty="No page was fetched yet.",
        table=ReportTable(_COLUMNS, rows, "sections", sort=1, first=10),
        csv=CsvFile("sections.csv", _FIELDS, lambda: _csv(tallies)),
        extra={"legend": True},
    )


def _csv(tallies: dict[str, Tally]) -> Iterator[tuple[object, ...]]:
    for name, each in tallies.items():
        share = round(each.indexable, 2)
        yield (name, each.pages, *each.counts, share, each.main_reason or None)


def depth_section(facts: CrawlFacts) -> Section:
    """Return the section with the pages by their distance from a seed."""
    tallies: dict[int, Tally] = {}
    for page in facts.pages.values():
        tallies.setdefault(page.depth, Tally()).add(page)
    bars: list[tuple[str, int, float]] = []
    rest = Tally()
    for depth in sorted(tallies):
        if depth < _DEPTHS:
            bars.append((str(depth), tallies[depth].pages, tallies[depth].indexable))
        else:
            rest.merge(tallies[depth])
    if rest.pages:
        bars.append((f"{_DEPTHS}+", rest.pages, rest.indexable))
    values = [
        (depth, each.pages, *each.counts, round(each.indexable, 2))
        for depth, each in sorted(tallies.items())
    ]
    return Section(
        "depth",
        "Clicks from the start page",
        max(tallies, default=0),
        empty="No page was fetched yet.",
        extra={"bars": bars} if bars else {},
        csv=CsvFile("depth.csv", _DEPTH_FIELDS, lambda: values),
        half=True,
        nav="Clicks from the start",
    )


_SLOW_DIRECTORY_FIELDS = ("section", "pages", "median_ms", "p95_ms")
_SLOW_DIRECTORY_COLUMNS = (
    Column("Section", width="wide"),
    Column("Median", Cell.BAR, unit="s"),
    Column("95 % within", Cell.SECONDS, unit="s"),
    Column("Pages", Cell.NUMBER, phone=Phone.HIDDEN),
)


def slow_directories(tallies: dict[str, Tally]) -> Section:
    """Return the section with the answer times of directories."""
    timed = [
        (name, *times(each.latencies_ms), len(each.latencies_ms))
        for name, each in tallies.items()
        if each.latencies_ms
    ]
    timed.sort(key=lambda each: (-each[1], each[0]))
    rows = [Row((name, mid / 1000, p95 / 1000, count)) for name, mid, p95, count in timed]
    values = [(name, count, round(mid, 1), round(p95, 1)) for name, mid, p95, count in timed]
    return Section(
        "slow-sections",
        "Answer times by section",
        len(rows),
        "by the median of their pages",
        empty="No page was fetched yet.",
        table=ReportTable(_SLOW_DIRECTORY_COLUMNS, rows, "sections", sort=1),
        csv=CsvFile(
            "slow-sections.csv",
            _SLOW_DIRECTORY_FIELDS,
            lambda: values,
        ),
    )


def times(latencies_ms: list[float]) -> tuple[float, float]:
    """Return the median, and the time within which 95 % answered."""
    ordered = sorted(latencies_ms)
    return median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


SLOW_MS = 1000.0
LARGE_BYTES = 2_000_000

_SLOW_FIELDS = ("url", "first_byte_ms", "whole_page_ms", "bytes")
_SLOW_COLUMNS = (
    Column("Page", Cell.URL, width="wide"),
    Column("First byte", Cell.BAR, unit="s"),
    Column("Whole page", Cell.SECONDS, unit="s", phone=Phone.HIDDEN),
    Column("Size", Cell.BYTES, phone=Phone.HIDDEN),
)
_LARGE_FIELDS = ("url", "content_type", "bytes")
_LARGE_COLUMNS = (
    Column("Page", Cell.URL, width="wide"),
    Column("Type", Cell.QUIET, phone=Phone.HIDDEN),
    Column("Size", Cell.BYTES),
)


def slow_pages(facts: CrawlFacts) -> Section:
    """Return the section of slow pages: those over one second."""
    shown = [each for each in facts.pages.values() if is_ok(each) and each.latency_ms > SLOW_MS]
    shown.sort(key=lambda page: (-page.latency_ms, page.url))
    rows = [
        Row((page.url, page.latency_ms / 1000, page.total_ms / 1000, page.bytes)) for page in shown
    ]
    values = [(page.url, page.latency_ms, page.total_ms, page.bytes) for page in shown]
    return Section(
        "slow",
        "Slow pages",
        len(shown),
        f"{len(shown):,} over 1 s",
        "Time to the first byte, without connecting." if shown else "",
        empty="No page took longer than 1 s to its first byte.",
        table=ReportTable(_SLOW_COLUMNS, rows, "pages", sort=1),
        csv=CsvFile("slow.csv", _SLOW_FIELDS, lambda: values),
    )


def large_pages(facts: CrawlFacts) -> Section:
    """Return the section of large pages: those over 2 MB."""
    shown = [each for each in facts.pages.values() if is_ok(each) and each.bytes > LARGE_BYTES]
    shown.sort(key=lambda page: (-page.bytes, page.url))
    rows = [Row((page.url, media_type(page.content_type) or None, page.bytes)) for page in shown]
    values = [(page.url, page.content_type, page.bytes) for page in shown]
    return Section(
        "large",
        "Large pages",
        len(shown),
        f"{len(shown):,} over 2 MB",
        empty="No page is larger than 2 MB.",
        table=ReportTable(_LARGE_COLUMNS, rows, "pages", sort=2),
        csv=CsvFile("large.csv", _LARGE_FIELDS, lambda: values),
    )
