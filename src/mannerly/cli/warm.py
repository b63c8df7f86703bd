"""`mannerly warm`: ask for every page of a site's sitemaps, so that the cache in front has it.

A run of warming is a crawl with its own defaults (`crawler.settings.warming`): links are not
followed, each page is asked for until the cache has it, and the pace yields to latency early.

0    finished, or --max-urls or --duration reached
1    too many requests failed (--max-error-rate), or as for crawl
2    usage, configuration or file error     3    no seed could be fetched
4    data directory in use or damaged       130, 143   stopped
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from mannerly.crawler.options.declared import WARMING

from .command_line import (
    Argument,
    GivenOptions,
    OptionsOfCrawl,
)
from .config import resolve
from .crawl import RunPlan, carry_out, finish, prepare, print_summary
from .stored import named_or_temporary
from .terminal import failing_clearly, note, safe_term, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.crawler.options.values import Value
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.report.warmth import WarmthRow

EXAMPLES = """\
Examples:
  mannerly warm https://example.com/                              what its sitemaps list
  mannerly warm https://example.com/blog-sitemap.xml              one sitemap
  mannerly warm example.com --variant mobile --variant 'Accept-Language: de'
  mannerly warm example.com --follow --max-rate unlimited         your own site: links, too
"""

_SITEMAP = re.compile(r"(?:[^/]*sitemap[^/]*|[^/]*\.xml)(?:\.gz)?", re.IGNORECASE)


OPTIONS = OptionsOfCrawl(
    left_out=("warm", "links", "anchors", "text_digest"),  # warming decides them itself
    helps={
        "data_dir": "Keep the run in this directory, so that it can be resumed (default: a "
        "temporary one).",
        "header": "Send this header, as NAME: VALUE, or HOST=NAME: VALUE; repeatable. Several "
        "values of one name are variants: each is asked for.",
    },
    defaults=WARMING,
)


def warm(
    *,
    urls: Annotated[
        list[str] | None,
        Argument(
            "URL|SITEMAP|FILE|-",
            "A URL, a host, the URL of a sitemap, a file with one URL per line, or - for "
            "standard input.",
        ),
    ] = None,
    options: Annotated[GivenOptions, OPTIONS],
) -> None:
    """Fill the cache in front of a site.

    Every page that the site's sitemaps list is asked for, so that its cache has it, those with the
    highest priority first. A page that the cache did not have is asked for again, to see that it
    has it now. The pace yields when the site becomes slower. The hit rate and the time to the first
    byte, before and after, are printed by section.
    """
    with failing_clearly(), named_or_temporary(urls, options, "warm") as (location, is_kept):
        options["data_dir"] = location
        _take_headers_as_variants(options)
        arguments = _take_sitemaps(urls or [], options)
        configuration = resolve(options, environment=os.environ, directory=Path.cwd())
        plan = prepare(arguments, configuration, base=_base())._replace(is_kept=is_kept)
        result = carry_out(plan, fresh=bool(configuration.value("fresh")) or _is_done(location))
        code = finish(plan, result, _described(result), _print)
    raise click.exceptions.Exit(code)


def _base() -> CrawlSettings:
    from mannerly.crawler.options.table import cores
    from mannerly.crawler.settings import CrawlSettings, warming

    return warming(CrawlSettings(processes=cores()))


def _take_sitemaps(arguments: list[str], given: dict[str, Value]) -> list[str]:
    """Move URLs of sitemaps to --sitemap; the home page of each is a seed, for the scope.

    If nothing else is given, no other sitemap is read.
    """
    from mannerly.crawler.web.urls import canonical

    seeds: list[str] = []
    sitemaps: list[str] = []
    for argument in arguments:
        url = canonical(argument if "://" in argument else f"https://{argument}")
        place = "" if url is None else url.partition("?")[0].rpartition("/")[2]
        if url is not None and not Path(argument).exists() and _SITEMAP.fullmatch(place):
            sitemaps.append(url)
            seeds.append(url[: url.index("/", 8) + 1])
        else:
            seeds.append(argument)
    named = given.get("sitemap", [])
    if sitemaps and len(sitemaps) == len(arguments):
        given.setdefault("seeding_strategy", "none")
    if sitemaps:
        given["sitemap"] = [*(named if isinstance(named, list) else []), *map(str, sitemaps)]
    return list(dict.fromkeys(seeds))


def _take_headers_as_variants(given: dict[str, Value]) -> None:
    """Let several values of one header be variants: Accept-Language: de, Accept-Language: en."""
    texts = given.get("header", [])
    headers = [str(text) for text in texts] if isinstance(texts, list) else [str(texts)]
    names = [text.partition(":")[0].strip().lower() for text in headers]
    several = [text for text, name in zip(headers, names, strict=True) if names.count(name) > 1]
    if several:
        variants = given.get("variant", [])
        given["variant"] = [*map(str, variants if isinstance(variants, list) else []), *several]
        given["header"] = [text for text in headers if text not in several]


def _is_done(location: str) -> bool:
    """Return whether an earlier run has finished: the next one begins anew."""
    from mannerly.crawler.store import exists
    from mannerly.crawler.stored import open_crawl

    if not exists(location):
        return False
    with open_crawl(location) as crawl:
        return not crawl.status().total["pending"]


def _described(result: CrawlResult) -> dict[str, object]:
    from mannerly.report.warmth import described

    return {"warmth": described(result.stats)}


def _print(plan: RunPlan, result: CrawlResult) -> None:
    """Print the table, and how the run ended."""
    from mannerly.report.warmth import sections, variants

    rows = sections(result.stats)
    others = variants(result.stats)
    for line in [*_table("section", rows), *(["", *_table("variant", others)] if others else [])]:
        show(line)
    if result.ending.value != "finished":
        print_summary(plan, result)
    for line in _sentences(rows[-1], result):
        note(line)


def _table(title: str, rows: list[WarmthRow]) -> list[str]:
    wide = max(len(title), *(len(safe_term(row.name)) for row in rows))
    lines = [
        f"{title:{wide}}  {'pages':>7}  {'hits':>7}  {'then':>7}  {'first byte':>10}  {'then':>8}"
    ]
    for row in rows:
        cells = (
            f"{row.pages:>7,}",
            f"{_share(row.hit_rate_before):>7}",
            f"{_share(row.hit_rate_after):>7}",
            f"{_ms(row.first_byte_before_ms):>10}",
            f"{_ms(row.first_byte_after_ms):>8}",
        )
        lines.append("  ".join((f"{safe_term(row.name):{wide}}", *cells)))
    return lines


def _sentences(whole: WarmthRow, result: CrawlResult) -> Iterator[str]:
    from mannerly.crawler.web.words import many, span

    cold = whole.cacheable - round((whole.hit_rate_after or 0.0) * whole.cacheable)
    had, has = _share(whole.hit_rate_before), _share(whole.hit_rate_after)
    cached = f": the cache had {had} of those that can be cached, and has {has}"
    yield (
        f"{many(whole.pages, 'page')} in {span(result.seconds)}{cached if whole.cacheable else ''}"
    )
    if cold:
        yield f"{many(cold, 'page')} not in the cache after a second request"
    if whole.uncacheable:
        yield f"{many(whole.uncacheable, 'page')} that the site or its cache does not let be cached"
    if whole.unknown:
        yield (
            f"{many(whole.unknown, 'page')} without a sign of a cache: no Age, X-Cache, "
            "CF-Cache-Status or Cache-Status header was sent"
        )
    if whole.failed:
        yield f"{many(whole.failed, 'page')} failed"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _ms(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f} ms" if number >= 10 else f"{number:.1f} ms"
