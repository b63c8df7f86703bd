"""The content of pages in exports: html, text and Markdown, from kept bodies."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.exports.archive_site import Answer, archive_site
from tests.exports.duck import ask
from tests.exports.stored_example import PAGES, make_crawl

from mannerly.crawler.crawl import Crawl
from mannerly.crawler.page.content import content_of
from mannerly.crawler.web.choices import Content
from mannerly.exports import ExportError, export, read_target
from mannerly.exports.folder import file_name, front_matter
from mannerly.exports.rows import page_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAST = {"delay": 0.001, "start_rate": 1000, "max_rate": 1000, "strategy": "fixed"}
WORDS = "Many words that belong to the page itself and are worth keeping. " * 4
PAGE = f"""<html><head><title>A</title><base href="/deep/"></head><body>
<nav><a href="/">Menu</a></nav>
<main><h1 id="top">Head<a class="headerlink" href="#top">¶</a></h1><p>{WORDS}</p>
<p><a href="b?utm_source=x#part">link</a> <img src="/i.png" alt="picture"></p>
<script>evil()</script><pre>code  here</pre></main>
<footer>Imprint</footer></body></html>"""
HOSTILE_PATHS = ["/..%2F..%2Fetc%2Fpasswd", "/CON", "/a%00b", "/" + "x" * 1500, "/=cmd()"]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    links = "".join(f'<a href="{path}">x</a>' for path in HOSTILE_PATHS)
    answers = {path: Answer(PAGE.encode()) for path in HOSTILE_PATHS}
    answers["/"] = Answer(PAGE.replace("</main>", links + "</main>").encode())
    answers["/CON"] = Answer(b"=1+1\n" * 9, "text/plain")
    directory = tmp_path_factory.mktemp("content") / "crawl"
    with archive_site(answers) as site:
        with Crawl(site.url, data_dir=directory, keep_bodies=True, **FAST) as run:
            run.run()
        yield directory, site.url


def test_markdown_is_the_main_part_with_absolute_links() -> None:
    """Menus, scripts, footers and marks of anchors are left out."""
    text = content_of(PAGE.encode(), "text/html", "https://a.example/x/", Content.MARKDOWN)

    assert text is not None
    assert text.startswith("# Head\n")
    assert "[link](https://a.example/deep/b#part)" in text
    assert "![picture](https://a.example/i.png)" in text
    assert "code  here" in text
    assert not any(word in text for word in ("Menu", "Imprint", "evil", "¶"))


def test_text_is_the_main_part_without_markup() -> None:
    """The same words, without links."""
    text = content_of(PAGE.encode(), "text/html", "https://a.example/", Content.TEXT)

    assert text is not None
    assert "Head" in text
    assert "](" not in text
    assert "Menu" not in text


def test_html_is_the_page_as_text() -> None:
    """Decoded by its charset."""
    body = "<html><title>é</title>".encode("latin-1")

    text = content_of(body, "text/html; charset=latin1", "https://a.example/", Content.HTML)

    assert text == "<html><title>é</title>"


@pytest.mark.parametrize("landmark", ["<main></main>", "<main>Loading…</main>", ""])
def test_page_without_a_filled_landmark_keeps_its_words(landmark: str) -> None:
    """A landmark that a script would fill is passed over."""
    page = f"<body>{landmark}<div><h2>One</h2><p>{WORDS}</p><table><tr><td>cell</table></div>"

    text = content_of(page.encode(), "text/html", "https://a.example/", Content.TEXT)

    assert text is not None
    assert all(word in text for word in ("One", "worth keeping", "cell"))


def test_content_that_is_no_text_is_none() -> None:
    """An image has none; text and JSON are returned as they are."""
    assert content_of(b"\x89PNG", "image/png", "https://a.example/", Content.TEXT) is None
    json_text = content_of(b'{"a":1}', "application/json", "https://a.example/", Content.MARKDOWN)
    assert json_text == '{"a":1}'


def test_jsonl_has_the_content_of_every_page(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """Plain and compressed hold the same lines."""
    directory, url = crawl
    for name in ("pages.jsonl", "pages.jsonl.gz"):
        export(directory, str(tmp_path / name), content=Content.MARKDOWN)

    lines = (tmp_path / "pages.jsonl").read_bytes()
    rows = {row["url"]: row for row in map(json.loads, lines.splitlines())}
    assert gzip.decompress((tmp_path / "pages.jsonl.gz").read_bytes()) == lines
    assert rows.keys() >= {url + path[1:] for path in HOSTILE_PATHS}
    assert rows[url]["content"].startswith("# Head\n")


def test_pages_that_are_errors_have_no_content(tmp_path: Path) -> None:
    """The text of a 404 or of a redirect is not what was asked for."""
    links = b'<main><a href="/moved">m</a><a href="/missing">x</a></main>'
    answers = {"/": Answer(links), "/moved": Answer(b"see there", status=302, location="/")}
    answers["/missing"] = Answer(b"<h1>Not here</h1>", status=404)
    with archive_site(answers) as site:
        with Crawl(site.url, data_dir=tmp_path / "crawl", keep_bodies=True, **FAST) as run:
            run.run()
        export(tmp_path / "crawl", str(tmp_path / "pages.jsonl"), content=Content.TEXT)

    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {row["status"]: row["content"] is not None for row in rows} == {
        200: True,
        302: False,
        404: False,
    }


def test_names_in_a_folder_are_readable_and_safe(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """A name has words of the URL and a digest, and the index says which page each is."""
    directory, _ = crawl
    folder = tmp_path / "pages"

    outcome = export(directory, f"{folder}/", content=Content.TEXT)

    index = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    index = [row for row in index if row["file"] is not None]
    names = {row["file"] for row in index}
    found = {str(file.relative_to(folder)) for file in folder.rglob("*.txt")}
    assert outcome.files == len(found) == len(index) >= len(HOSTILE_PATHS)
    assert names == found
    assert all(re.fullmatch(r"[a-z0-9-]{1,65}/[a-z0-9-]{1,77}\.txt", name) for name in names)
    assert any("/etc-passwd-" in name for name in names)
    assert {row["file"] for row in index} == {file_name(row["url"], Content.TEXT) for row in index}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://docs.example.com/library/json.html", "docs-example-com/library-json-"),
        ("https://example.com/", "example-com/index-"),
        ("https://example.com/caf%C3%A9?id=7", "example-com/cafe-id-7-"),
        ("http://con/..%2F..%2F", "con-host/index-"),
        ("https://example.com/日本", "example-com/index-"),
    ],
)
def test_a_file_is_called_like_its_url(url: str, name: str) -> None:
    """Its words, then sixteen digits that tell it from others with the same words."""
    found = file_name(url, Content.MARKDOWN)

    assert found.startswith(name)
    assert re.fullmatch(r"[0-9a-f]{16}\.md", found.removeprefix(name))


@given(st.text(), st.text())
def test_names_stay_apart_and_inside(one: str, two: str) -> None:
    """Whatever URLs are: other ones have other names, in a folder inside the folder."""
    first, second = (file_name(f"https://a.example/{text}", Content.TEXT) for text in (one, two))

    assert (first == second) == (one == two)
    assert re.fullmatch(r"a-example/[a-z0-9-]{1,77}\.txt", first)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_front_matter_is_read_back(title: str) -> None:
    """YAML gives back the title that the record has, whatever is in it."""
    row = page_row(PAGES[0]._replace(title=title, status=200, lang=None))

    head = front_matter(row)

    assert head.startswith("---\n")
    assert head.endswith("\n---\n\n")
    read = yaml.safe_load(head.removesuffix("---\n\n"))
    assert (read["title"], read["status"], read["url"]) == (title, 200, PAGES[0].url)
    assert "lang" not in read


def test_markdown_files_begin_with_front_matter(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """The URL, title and time are in the file itself; then comes the content."""
    directory, url = crawl

    export(directory, f"{tmp_path / 'pages'}/", content=Content.MARKDOWN)

    text = (tmp_path / "pages" / file_name(url, Content.MARKDOWN)).read_text()
    _, head, content = text.split("---\n", maxsplit=2)
    assert yaml.safe_load(head)["url"] == url
    assert yaml.safe_load(head)["title"] == "A"
    assert content.startswith("\n# Head\n")


def test_second_export_leaves_no_file_of_the_first(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """Files that the new index does not name are removed; what others have put there stays."""
    directory, _ = crawl
    folder = tmp_path / "pages"
    export(directory, f"{folder}/", content=Content.HTML)
    (folder / "notes.txt").write_text("mine")
    with (folder / "index.jsonl").open("a") as index:
        index.write('{"file":"../victim.md"}\n{"file":"notes.txt"}\nno json\n')
    (tmp_path / "victim.md").write_text("as it was")

    export(directory, f"{folder}/", content=Content.MARKDOWN)

    suffixes = {path.suffix for path in folder.glob("*/*")}
    assert suffixes == {".md"}
    assert (folder / "notes.txt").exists()
    assert (tmp_path / "victim.md").exists()


def test_folder_does_not_follow_a_link(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """A link in place of a subfolder would lead elsewhere."""
    directory, url = crawl
    folder, elsewhere = tmp_path / "pages", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / file_name(url, Content.HTML).partition("/")[0]).symlink_to(elsewhere)

    with pytest.raises(ExportError, match="is a link"):
        export(directory, f"{folder}/")
    assert list(elsewhere.iterdir()) == []


def test_parquet_has_the_records_with_their_types(tmp_path: Path) -> None:
    """DuckDB reads the file in one line; text stays text."""
    directory = make_crawl(tmp_path / "crawl")
    target = tmp_path / "pages.parquet"

    export(directory, str(target))

    found = ask(f"SELECT url, status, latency_ms, noindex, title FROM '{target}'")
    wanted = [(each.url, each.status, each.latency_ms, each.noindex, each.title) for each in PAGES]
    assert sorted(found) == sorted(wanted)
    kinds = dict(ask(f"SELECT column_name, column_type FROM (DESCRIBE '{target}')"))
    assert (kinds["status"], kinds["noindex"]) == ("BIGINT", "BOOLEAN")
    assert kinds["fetched_at"] == "TIMESTAMP WITH TIME ZONE"


def test_parquet_folder_has_only_parts_of_the_last_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is whole, and parts of a longer export before are gone."""
    monkeypatch.setattr("mannerly.exports.parquet.PART", 2)
    directory = make_crawl(tmp_path / "crawl")
    folder = tmp_path / "pages.parquet"
    folder.mkdir()
    (folder / "part-99999.parquet").write_bytes(b"old")

    outcome = export(directory, f"{folder}/")

    ((count,),) = ask(f"SELECT count(*) FROM '{folder}/*.parquet'")
    assert count == outcome.records == len(PAGES)
    assert outcome.files == len(list(folder.iterdir())) == -(-len(PAGES) // 2)


def test_parquet_with_content(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """One more column."""
    directory, url = crawl
    target = tmp_path / "pages.parquet"

    export(directory, str(target), content=Content.TEXT)

    ((text,),) = ask(f"SELECT content FROM '{target}' WHERE url = '{url}'")
    assert text.startswith("Head")


@pytest.mark.parametrize(
    ("name", "line"),
    [("x.parquet", r"\.\[parquet\]"), ("x.wacz", r"\.\[archive\]")],
)
def test_missing_package_is_named_with_its_install_line(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the crawl, not after it."""
    monkeypatch.setattr("mannerly.exports.target.find_spec", lambda _: None)

    with pytest.raises(ExportError, match=f"pip install '{line}'"):
        read_target(str(tmp_path / name))


def test_items_have_tables_only(tmp_path: Path) -> None:
    """A sitemap of items makes no sense, and the message says what does."""
    with pytest.raises(ExportError, match=r"use \.jsonl, \.jsonl\.gz, \.csv or \.parquet"):
        read_target(f"items:{tmp_path / 'items.xml'}")


def test_content_is_only_for_formats_that_have_it(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """CSV has the columns that it always has, and the export says so."""
    directory, _ = crawl

    done = export(directory, str(tmp_path / "pages.csv"), content=Content.TEXT)

    assert "Use .jsonl, .parquet or a folder/" in done.described()[1]
    with (tmp_path / "pages.csv").open() as file:
        assert "content" not in next(csv.reader(file))


def test_page_whose_record_is_gone_has_no_content(crawl: tuple[Path, str], tmp_path: Path) -> None:
    """A damaged segment costs its pages their content, not the export."""
    directory, _ = crawl
    (segment,) = directory.glob("*.warc.gz")
    whole = segment.read_bytes()
    segment.write_bytes(os.urandom(len(whole)))
    try:
        export(directory, str(tmp_path / "pages.jsonl"), content=Content.TEXT)
    finally:
        segment.write_bytes(whole)

    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {row["content"] for row in rows} == {None}
