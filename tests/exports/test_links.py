"""Exports of links and metadata: a hostile site writes them, and spreadsheets read them."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from tests.exports.stored_example import SHARDING
from tests.harness.commands import invoke

from mannerly.crawler.model import Candidate, Entry, Fetched, Request, RobotsRecord
from mannerly.crawler.page.harvest import harvest
from mannerly.crawler.page.links import LinkRules
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.base import Batch, Manifest, ShardOptions
from mannerly.crawler.web.recent import Recent

if TYPE_CHECKING:
    from pathlib import Path

SEED = "https://a.example/"
PAGE = """<html lang=en><head><link rel=alternate hreflang=de href="/de/">
<meta property="og:title" content="Shoes"><meta name="tdm-reservation" content="1">
<script type="application/ld+json">{"@type": "Article", "n": [1, 2]}</script>
<script type="application/ld+json">{broken</script></head>
<body><a href="/one">One</a><a href="https://b.example/x" rel=nofollow>=HYPERLINK("http://evil")</a>
<a href="/two">\u202e\x1b]0;x\x07reversed</a></body></html>"""
ROBOTS = b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"
HEADERS = {
    "content-type": "text/html",
    "last-modified": "Sun, 01 Nov 2026 10:00:00 GMT",
    "x-robots-tag": "noai, noimageai",
}


def stored(place: Path, *, robots: bytes = b"") -> Path:
    """Make a crawl of two pages; the second says nothing about itself."""
    settings = CrawlSettings(links=True)
    rules = LinkRules(settings.scope_of([SEED]), "mannerly", 5, keeps_links=True)
    manifest = Manifest.new(
        seeds=[SEED], settings={"links": True}, shards=2, created_at=1_700_000_000.0
    )
    crawl = create_crawl(place, manifest)
    with crawl.claim(SHARDING.shard_of("a.example"), ShardOptions(frontier_limit=9)) as store:
        urls = [SEED, SEED + "plain"]
        new = store.commit(
            Batch(found=[Candidate(url, "a.example", 0, 0, None) for url in urls])
        ).new
        for entry, body, headers in zip(
            new, (PAGE, "<p>x"), (HEADERS, {"content-type": "text/html"}), strict=True
        ):
            found = harvested(entry, body, headers, rules)
            store.commit(
                Batch(
                    pages=[(entry, found.record)],
                    elements={entry.seq: found.elements or b""},
                    robots={SEED[:-1]: RobotsRecord(SEED[:-1], 200, robots, 0.0, 9e9)},
                )
            )
    crawl.close()
    return place


def harvested(entry: Entry, body: str, headers: dict[str, str], rules: LinkRules):  # type: ignore[no-untyped-def]
    request = Request(entry.url, "a.example", 1.0)
    answer = Fetched(request, status=200, headers=headers, body=body.encode())
    return harvest(entry, answer, rules, Recent(), 1_700_000_000.0)


def exported(*arguments: object) -> str:
    ran = invoke("export", *(str(each) for each in arguments))
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def test_links_are_exported_one_a_row(tmp_path: Path) -> None:
    """With source, target, kind, nofollow and text; other hosts included."""
    target = tmp_path / "links.jsonl"

    exported(stored(tmp_path / "crawl"), "-o", f"links:{target}")

    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["target"] for row in rows] == [
        "https://a.example/de/", "https://a.example/one", "https://b.example/x",
        "https://a.example/two",
    ]  # fmt: skip
    assert [row["kind"] for row in rows] == ["hreflang", "a", "a", "a"]
    assert rows[2]["nofollow"] is True
    assert list(rows[0]) == ["source", "target", "kind", "nofollow", "text", "fragment"]


def test_anchor_texts_run_in_no_spreadsheet_and_no_terminal(tmp_path: Path) -> None:
    """A formula gets an apostrophe; control characters and marks of direction are gone."""
    target = tmp_path / "links.csv"

    exported(stored(tmp_path / "crawl"), "-o", f"links:{target}")

    texts = [row["text"] for row in csv.DictReader(target.read_text().splitlines())]
    assert texts[2].startswith("'=HYPERLINK(")
    assert texts[3] == "]0;xreversed"


def test_a_crawl_without_links_says_what_to_do(tmp_path: Path) -> None:
    """An empty file would look like a site without links."""
    crawl = create_crawl(
        tmp_path / "crawl", Manifest.new(seeds=[SEED], settings={}, shards=1, created_at=1.0)
    )
    crawl.close()

    ran = invoke("export", str(tmp_path / "crawl"), "-o", "links:-")

    assert ran.exit_code == 2
    assert "--links" in ran.stderr


def test_metadata_says_what_a_page_says_about_itself(tmp_path: Path) -> None:
    """Languages, Open Graph, JSON-LD that is JSON, and use by machines."""
    first, second = exported(stored(tmp_path / "crawl", robots=ROBOTS), "-o", "-").splitlines()

    signal = {"search": "yes", "ai-train": "no"}
    assert json.loads(first)["metadata"] == {
        "hreflang": {"de": "https://a.example/de/"},
        "open_graph": {"og:title": "Shoes"},
        "json_ld": [{"@type": "Article", "n": [1, 2]}],
        "machine_use": {
            "tdm_reservation": "1",
            "robots": ["noai", "noimageai"],
            "content_signal": signal,
        },
    }
    assert json.loads(second)["metadata"] == {"machine_use": {"content_signal": signal}}


def test_reserved_pages_can_be_left_out(tmp_path: Path) -> None:
    """By the page itself, or for the whole site by its robots.txt."""
    page = exported(stored(tmp_path / "one"), "-o", "-", "--unreserved")
    site = exported(stored(tmp_path / "two", robots=ROBOTS), "-o", "-", "--unreserved")

    assert [json.loads(line)["url"] for line in page.splitlines()] == [SEED + "plain"]
    assert site == ""


def test_a_sitemap_has_the_lastmod_that_the_server_gave(tmp_path: Path) -> None:
    """A page without one has none."""
    target = tmp_path / "sitemap.xml"

    exported(stored(tmp_path / "crawl"), "-o", target)

    namespace = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    lastmods = [each.findtext(f"{namespace}lastmod") for each in ET.parse(target).getroot()]
    assert lastmods == ["2026-11-01T10:00:00Z", None]


@pytest.mark.parametrize("target", ["links:sitemap.xml", "links:links.txt"])
def test_links_go_to_formats_that_can_hold_them(target: str, tmp_path: Path) -> None:
    """The message names those that can."""
    ran = invoke("export", str(stored(tmp_path / "crawl")), "-o", target)

    assert ran.exit_code == 2
    assert ".jsonl" in ran.stderr
