"""`mannerly warm`, judged by the log of the site behind the cache."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from bench.web.slow_site import UNCACHED, SlowSite
from tests.harness.commands import run_at
from tests.warming.site_of_a_cache import cache

import mannerly

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

FAST = ("--max-rate", "unlimited", "--start-rate", "30", "--processes", "1")


def warm(directory: Path, *words: str) -> dict[str, Any]:
    """Warm, and return the result."""
    done = run_at(directory, "warm", *words, *FAST, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    warmth: dict[str, Any] = json.loads(done.stdout)["warmth"]
    return warmth


def test_every_cacheable_page_is_in_the_cache_and_the_next_run_finds_it_there(
    tmp_path: Path,
) -> None:
    """From no page to all; the second run asks the site for nothing that can be cached."""
    with SlowSite(pages=20, page_s=0.2) as site:  # more than a busy machine adds
        first = warm(tmp_path, site.url)
        asked = len(site.log)
        second = warm(tmp_path, site.url)
        later = site.log[asked:]

    assert first["hit_rate_before"] == 0.0
    assert first["hit_rate_after"] == 1.0
    assert first["cacheable"] == 16  # and the home page; five pages are private
    assert first["uncacheable"] == 5
    assert second["hit_rate_before"] == 1.0
    assert [each.path for each in later if not each.is_hit and UNCACHED not in each.path] == []
    assert max(Counter(each.path for each in later).values()) == 1  # no second look
    assert second["first_byte_before_ms"] < first["first_byte_before_ms"]


@pytest.mark.parametrize("kind", ["nginx", "varnish"])
def test_real_cache_is_filled(kind: str, tmp_path: Path) -> None:
    """Behind nginx and Varnish: hit rate 0, then at least 99 %; the second run finds them warm."""
    with (
        SlowSite(pages=24, cached=False) as site,
        cache(kind, site.port, tmp_path) as url,
    ):
        first = warm(tmp_path, url)
        asked = len(site.log)
        second = warm(tmp_path, url)
        later = [each.path for each in site.log[asked:] if UNCACHED not in each.path]

    assert first["hit_rate_before"] == 0.0
    assert first["hit_rate_after"] >= 0.99
    assert first["cacheable"] == 19
    assert second["hit_rate_before"] >= 0.99
    assert later == []


def test_pages_go_in_the_order_of_their_priority_and_links_are_not_followed(
    tmp_path: Path,
) -> None:
    """The site's log: falling priority (in tenths), no page that only a link leads to."""
    with SlowSite(pages=22, page_s=0.001) as site:
        warm(tmp_path, site.url, "--per-host", "1")
        paths = list(dict.fromkeys(each.path for each in site.log))
        ranks = [round(10 * site.paths.index(path) / 21) for path in paths[1:]]

    assert paths[0] == "/"
    assert ranks == sorted(ranks, reverse=True)
    assert "/linked" not in paths


def test_links_are_followed_on_request(tmp_path: Path) -> None:
    """A page that no sitemap lists is warmed, too."""
    with SlowSite(pages=3, page_s=0.001) as site:
        warm(tmp_path, site.url, "--follow")

    assert "/linked" in {each.path for each in site.log}


def test_sitemap_can_be_named_and_no_other_is_read(tmp_path: Path) -> None:
    """The home page of its host is asked for, too."""
    with SlowSite(pages=5, page_s=0.001) as site:
        named = warm(tmp_path, f"{site.url}sitemap.xml")
        site.log.clear()
        absent = run_at(tmp_path, "warm", f"{site.url}other-sitemap.xml", *FAST)

    assert named["pages"] == 6
    assert absent.returncode == 0
    assert {each.path for each in site.log} == {"/"}


def test_run_in_a_temporary_directory_names_no_way_to_resume_it(tmp_path: Path) -> None:
    """Stopped by a limit, without --data-dir: nothing of it is there any more."""
    with SlowSite(pages=5, page_s=0.001, cached=False) as site:
        done = run_at(tmp_path, "warm", site.url, "--max-urls", "2", *FAST)

    assert done.returncode == 0
    assert "Stopped at --max-urls 2" in done.stderr
    assert "mannerly resume" not in done.stderr
    assert "Kept in" not in done.stderr
    assert "2 pages without a sign of a cache" in done.stderr


def test_each_variant_is_warmed(tmp_path: Path) -> None:
    """A phone, two languages (one header, two values) and an encoding are requests of their own."""
    with SlowSite(pages=4, page_s=0.001) as site:
        done = warm(
            tmp_path, site.url, "--variant", "mobile", "--variant", "identity",
            "--header", "Accept-Language: de", "--header", "Accept-Language: fr",
        )  # fmt: skip
        languages = {each.language for each in site.log}
        agents = {each.agent for each in site.log}

    assert {each["name"]: each["pages"] for each in done["variants"]} == {
        "mobile": 5,
        "identity": 5,
        "Accept-Language: de": 5,
        "Accept-Language: fr": 5,
        "plain": 5,
    }
    assert languages == {"", "de", "fr"}
    assert any("Mobile" in agent and agent.startswith("mannerly/") for agent in agents)
    assert done["hit_rate_after"] == 1.0


def test_too_many_errors_end_the_run(tmp_path: Path) -> None:
    """Exit code 1 with the reason, long before all pages were asked for."""
    go_on = ("--host-failure-limit", "1000", "--breaker-open", "0.1", "--breaker-open-max", "0.1")
    go_on += ("--strategy", "fixed", "--delay", "0.02")
    with SlowSite(pages=400, page_s=0.001, fails_from=42, workers=16) as site:
        done = run_at(tmp_path, "warm", site.url, *FAST, *go_on)
        asked = len({each.path for each in site.log})

    assert done.returncode == 1
    assert "Stopped at --max-error-rate 0.2: too many requests fail" in done.stderr
    assert asked < 200


def test_result_is_a_table_by_section(tmp_path: Path) -> None:
    """On standard output; sentences go to the other one. The records have the cache's words."""
    with SlowSite(pages=8, page_s=0.001) as site:
        done = run_at(tmp_path, "warm", site.url, *FAST, "-o", "pages.jsonl")
    records = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}

    assert done.returncode == 0
    assert rows["section"] == ["pages", "hits", "then", "first", "byte", "then"]
    assert rows["/blog/"][:5] == ["2", "0.0", "%", "100.0", "%"]
    assert rows["/account/"][:3] == ["2", "-", "-"]
    assert rows["all"][0] == "9"
    assert "9 pages in" in done.stderr
    assert "2 pages that the site or its cache does not let be cached" in done.stderr
    assert {each["cache_status"] for each in records if UNCACHED not in each["url"]} == {
        "demo; hit"
    }
    assert all(each["age"] is not None for each in records if UNCACHED not in each["url"])


def test_run_that_was_kept_is_begun_anew_when_it_is_done(tmp_path: Path) -> None:
    """The same directory twice: the second run looks at all pages again."""
    with SlowSite(pages=4, page_s=0.001) as site:
        first = warm(tmp_path, site.url, "--data-dir", "kept")
        second = warm(tmp_path, site.url, "--data-dir", "kept")

    assert (first["hit_rate_before"], second["hit_rate_before"]) == (0.0, 1.0)
    assert second["pages"] == 5


def test_wrong_variant_is_refused(tmp_path: Path) -> None:
    """With what is allowed, before anything is asked for."""
    done = run_at(tmp_path, "warm", "http://127.0.0.1:9/", "--variant", "tablet")

    assert done.returncode == 2
    assert "--variant" in done.stderr
    assert "mobile, gzip, br, zstd, identity" in done.stderr


def test_program_can_warm_too(tmp_path: Path) -> None:
    """The keywords are those of the command."""
    with SlowSite(pages=4, page_s=0.001) as site:
        options: dict[str, Any] = {"warm": True, "follow": False, "start_rate": 50}
        with mannerly.Crawl(site.url, max_rate="unlimited", variant="br", **options) as crawl:
            result = crawl.start().wait(120)

    assert result.stats.variants["br"].hits_after == 4
    assert result.stats.variants["plain"].uncacheable == 1
