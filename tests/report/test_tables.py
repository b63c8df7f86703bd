"""Every table of the report against a site with planted faults: all found, none invented."""

from __future__ import annotations

import csv
import socket
from typing import TYPE_CHECKING

from tests.report.conftest import crawl_of
from tests.report.site import Planted, html, served

from mannerly.crawler.stored import open_crawl
from mannerly.report import find
from mannerly.report.table import write_csv_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.conftest import Crawled

    from mannerly.report.table import Section


def section(faulty: Crawled, name: str) -> Section:
    return next(each for each in faulty.findings.sections if each.id == name)


def cells(faulty: Crawled, name: str) -> list[list[object]]:
    """The rows of a table, with URLs without their origin and badges as words."""
    table = section(faulty, name).table
    assert table is not None
    return [[plain(faulty, cell) for cell in row.cells] for row in table.rows]


def plain(faulty: Crawled, cell: object) -> object:
    if isinstance(cell, str):
        return cell.removeprefix(faulty.server.home)
    if isinstance(cell, tuple) and len(cell) == 2 and isinstance(cell[0], str):
        return plain(faulty, cell[0])
    return cell


def test_a_broken_link_has_all_its_sources_and_their_texts(faulty: Crawled) -> None:
    """Three pages link to it, one of them twice: directly, and by a redirect."""
    table = section(faulty, "broken").table
    assert table is not None
    gone, *_ = table.rows
    home = faulty.server.home

    assert cells(faulty, "broken") == [
        ["/gone", "404", 3],
        ["/failing", "500", 1],
        ["/loop-1", "redirect loop", 1],
    ]
    assert gone.details is not None
    assert gone.details.total == 3
    assert sorted(gone.details.lines) == [
        (f"{home}/", "first text"),
        (f"{home}/docs/a", "second text"),
        (f"{home}/docs/b", "moved"),
        (f"{home}/docs/b", "third text"),
    ]
    assert faulty.findings.sentence == (
        "3 links are broken on 3 of 18 pages, and 1 redirect never ends"
    )


def test_chains_and_loops_are_told_from_single_redirects(faulty: Crawled) -> None:
    """`/old` and `/was` are redirected once, and are not listed."""
    home = faulty.server.home
    rows = cells(faulty, "redirects")

    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("loop", "never ends", 1),
        ("2 hops", "ends 200", 1),
    ]
    assert rows[1][1] == [(f"{home}/v1", 301), (f"{home}/v2", 302), (f"{home}/v3", 0)]


def test_sections_add_up_to_all_pages(faulty: Crawled) -> None:
    """By directory, by status, and with the reason why pages are not listed."""
    rows = {row[0]: row for row in cells(faulty, "sections")}

    assert rows["/docs/"][3:] == [5, 0, 0, 0, 60.0, "canonical elsewhere"]
    assert rows["/"][3:7] == [5, 6, 1, 1]
    bars = section(faulty, "depth").extra["bars"]
    assert isinstance(bars, list)
    assert bars[0] == ("0", 1, 100.0)
    assert sum(pages for _, pages, _ in bars) == 18


def test_noindex_and_canonicalised_pages_are_listed(faulty: Crawled) -> None:
    """With the page that is named instead, and how that one answered."""
    assert sorted(cells(faulty, "indexing")) == [
        ["canonical elsewhere", "/docs/copy", "/docs/c", "200", 1],
        ["noindex", "/docs/hidden", None, None, 1],
    ]


def test_slow_and_large_pages_come_first(faulty: Crawled) -> None:
    """One page takes more than a second, one has more than 2 MB."""
    slow, large = section(faulty, "slow"), section(faulty, "large")

    assert slow.count == 1  # the others answer in milliseconds
    assert cells(faulty, "slow")[0][0] == "/slow"
    assert (large.count, cells(faulty, "large")[0][0]) == (1, "/large")
    assert {row[0] for row in cells(faulty, "slow-sections")} == {"/", "/docs/"}


def test_proof_counts_what_the_server_saw(faulty: Crawled) -> None:
    """Every request of its log, robots.txt and sitemap included."""
    (row,) = cells(faulty, "proof")

    assert row[0] == faulty.server.host
    assert row[1] == len(faulty.server.log)
    assert faulty.findings.numbers.proof.is_kept
    assert sum(each.requests for each in faulty.findings.facts.traffic) == len(faulty.server.log)


def test_sections_without_data_say_so(faulty: Crawled) -> None:
    """In one plain sentence."""
    assert section(faulty, "given-up").empty == "No host was given up."
    assert "first crawl" in section(faulty, "changes").empty


def test_csv_files_have_every_row(faulty: Crawled, tmp_path: Path) -> None:
    """Broken links one row a link; each file has the header of its table."""
    written = write_csv_files(faulty.findings, tmp_path)

    with (tmp_path / "broken.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert written["broken.csv"] == len(rows) == 6
    assert {row["text"] for row in rows if row["target"].endswith("/gone")} == {
        "first text", "second text", "third text", "moved"
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == set(written)


def test_sitemap_and_links_are_compared_both_ways(faulty: Crawled) -> None:
    """An orphan, unlisted pages, and listed ones that should not be."""
    rows = cells(faulty, "sitemap-pages")
    facts = dict(section(faulty, "sitemap").extra["facts"])  # type: ignore[call-overload]

    assert [row[:2] for row in rows if row[0] != "not in the sitemap"] == [
        ["linked from nowhere", "/orphan"],
        ["should not be listed", "/docs/hidden"],
        ["should not be listed", "/old"],
    ]
    assert {row[1] for row in rows if row[0] == "not in the sitemap"} == {
        "/docs/c", "/v3", "/slow", "/large"
    }  # fmt: skip
    assert list(facts.values()) == [3, 1, 4, 2]


def test_duplicates_are_found_by_title_and_by_text(faulty: Crawled) -> None:
    """Twins have a title in common; a copy has both."""
    rows = cells(faulty, "duplicates")

    assert [row[:3] for row in rows] == [["Twins", "title", 2], ["C", "title and text", 2]]


def test_hosts_that_were_given_up_are_listed_with_the_reason(tmp_path: Path) -> None:
    """A host behind a closed port: what could not be fetched of it, and why."""
    with socket.create_server(("127.0.0.9", 0)) as taken:
        closed = f"127.0.0.9:{taken.getsockname()[1]}"
    with served({"/": Planted(html("here", "Home"))}) as server:
        place = crawl_of(server, tmp_path / "crawl", also=f"http://{closed}/x", robots_patience=0.1)
        with open_crawl(place) as crawl:
            found = find(crawl)
    (given_up,) = [each for each in found.sections if each.id == "given-up"]

    assert given_up.table is not None
    ((host, why, urls, fetched),) = [row.cells for row in given_up.table.rows]
    assert (host, urls, fetched) == (closed, 2, 0)  # the page and the usual sitemap
    assert "robots.txt" in str(why)


GOOD = "A title that is neither too short nor too long"
SAID = "A description that tells what the page is about, in a sentence that a list can show whole."
FILL = f"<h1>Head</h1><p>{'Some words to read. ' * 120}</p>"


def described(body: str = FILL, title: str = GOOD, said: str = SAID, head: str = "") -> Planted:
    return Planted(html(body, title, f'<meta name="description" content="{said}">{head}'))


LISTED = {
    "/": described(
        FILL + "".join(f'<a href="/{name}">x</a>' for name in "abcdefgh"), "Home" + GOOD, "H" + SAID
    ),
    "/a": Planted(html(FILL, "")),
    "/b": described(title="Short", said="Short"),
    "/c": described(title="c" * 61, said="c" * 156),
    "/d": described(
        title="D " + GOOD,
        said="D " + SAID,
        head='<link rel="alternate" hreflang="en" href="/h">',
    ),
    "/e": described(title="D " + GOOD, said="D " + SAID),
    "/f": described(
        FILL.replace("h1", "h2")
        + '<img src="/x.png"><img src="/y.png" alt=""><a href="/"><img src=/z>'
        "</a>",
        "F " + GOOD,
        "F " + SAID,
    ),
    "/g": described(
        "<h1>Head</h1>",
        "G " + GOOD,
        "G " + SAID,
        '<link rel="alternate" hreflang="de" href="/h">'
        '<link rel="alternate" hreflang="fr" href="/d">',
    ),
    "/h": described(
        title="H " + GOOD,
        said="X " + SAID,
        head='<link rel="alternate" hreflang="en" href="/g">',
    ),
}


def test_titles_and_descriptions_are_judged(tmp_path: Path) -> None:
    """Every planted problem is found on its pages, and no other."""
    with served(LISTED) as server:
        crawl_of(server, tmp_path / "crawl")
        with open_crawl(tmp_path / "crawl") as crawl:
            (found,) = [each for each in find(crawl).sections if each.id == "listing"]

    assert found.table is not None
    lines = {
        row.cells[0]: [
            (url.removeprefix(server.home), text.removeprefix(server.home))
            for url, text in (row.details.lines if row.details else [])
        ]
        for row in found.table.rows
    }
    assert {name: [url for url, _ in pages] for name, pages in lines.items()} == {
        "Title missing": ["/a"],
        "Title short": ["/b"],
        "Title long": ["/c"],
        "Title on several pages": ["/d", "/e"],
        "Description missing": ["/a"],
        "Description short": ["/b"],
        "Description long": ["/c"],
        "Description on several pages": ["/d", "/e"],
        "No h1": ["/f"],
        "Images without alt": ["/f"],
        "hreflang without return link": ["/d", "/g"],
        "Thin page": ["/g"],
    }
    assert lines["Images without alt"] == [("/f", "2 images")]
    assert lines["hreflang without return link"] == [("/d", "/h"), ("/g", "/d")]


def test_fast_pages_are_not_listed_as_slow(tmp_path: Path) -> None:
    """Nor small ones as large: a site without either has no such rows."""
    with served({"/": Planted(html("small and fast"))}) as server:
        crawl_of(server, tmp_path / "crawl")
        with open_crawl(tmp_path / "crawl") as crawl:
            rows = {each.id: each.table.rows for each in find(crawl).sections if each.table}

    assert (rows["slow"], rows["large"]) == ([], [])
