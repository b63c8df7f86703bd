"""Hosts that were given up, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.web.urls import host_key_of

from .table import Cell, Column, CsvFile, Phone, ReportTable, Row, Section, rows_of

if TYPE_CHECKING:
    from .facts import CrawlFacts

_FIELDS = ("host", "why", "urls", "fetched", "refused", "failed")
_COLUMNS = (
    Column("Host", width="wide"),
    Column("Why", Cell.QUIET, phone=Phone.UNDER),
    Column("URLs not fetched", Cell.NUMBER),
    Column("Pages fetched", Cell.NUMBER, phone=Phone.HIDDEN),
)


def section(facts: CrawlFacts) -> Section:
    """Return the section of hosts that were given up."""
    urls: Counter[str] = Counter()
    whys: dict[str, str] = {}
    for each in facts.given_up:
        host = host_key_of(each.url)
        urls[host] += 1
        whys.setdefault(host, skip_words(each.reason))
    known = {record.host: record for record in facts.hosts}
    whys |= {host: error_words(each.retired) for host, each in known.items() if each.retired}
    values = []
    for host, why in sorted(whys.items(), key=lambda each: (-urls[each[0]], each[0])):
        record = known.get(host)
        counts = (record.fetched, record.refused, record.failed) if record else (0, 0, 0)
        values.append((host, why, urls[host], *counts))
    rows = [Row((host, why, count, fetched)) for host, why, count, fetched, _, _ in values]
    return Section(
        "given-up",
        "Hosts given up",
        len(rows),
        f"{len(rows):,}",
        "mannerly retry DIR tries them again." if rows else "",
        empty="No host was given up.",
        table=ReportTable(_COLUMNS, rows, "hosts", sort=2) if rows else None,
        csv=CsvFile("given-up.csv", _FIELDS, lambda: rows_of(_FIELDS, values)),
    )
