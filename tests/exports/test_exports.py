from __future__ import annotations

import csv
import errno
import io
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exports.stored_example import (
    LISTED,
    NASTY_TITLE,
    PAGES,
    SEED,
    SKIPPED,
    make_crawl,
    page,
)
from tests.harness.commands import invoke

from mannerly.crawler.model import PageRecord, Skipped
from mannerly.crawler.stored import open_crawl as open_stored
from mannerly.exports import Choice, ExportError, Format, check_target, export
from mannerly.exports.export import page_rows
from mannerly.exports.rows import FIELDS, page_row, write_csv, write_jsonl
from mannerly.exports.sitemap import write_sitemap
from mannerly.exports.whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = [
    *("url", "status", "depth", "parent", "title", "content_type", "bytes", "latency_ms"),
    *("fetched_at", "attempts", "links", "canonical", "redirect_to", "error", "host", "digest"),
    *("cache_status", "age", "total_ms", "noindex", "description", "h1", "lang", "in_sitemap"),
    *("lastmod", "etag", "last_modified", "text_digest", "change", "previous_status"),
    *("previous_digest", "previous_fetched_at", "rendered", "requests", "render_s"),
    *("render_error", "render_refused"),
]
METADATA = "metadata"  # only in formats that can hold it
LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl")


def locations(path: Path) -> list[str]:
    return [str(each.text) for each in ET.parse(path).iter(LOC)]


def test_jsonl_holds_every_page_once_with_the_fields_of_the_contract(
    crawl: Path, tmp_path: Path
) -> None:
    """Names and order are those that outside tools rely on."""
    target = tmp_path / "pages.jsonl"

    outcome = export(crawl, str(target))

    lines = [json.loads(line) for line in target.read_bytes().splitlines()]
    assert [list(line) for line in lines] == [[*CONTRACT, METADATA]] * len(PAGES)
    assert sorted(line["url"] for line in lines) == sorted(each.url for each in PAGES)
    assert (outcome.records, outcome.format) == (len(PAGES), Format.JSONL)


def test_jsonl_instants_are_iso_8601_in_utc(crawl: Path, tmp_path: Path) -> None:
    """A reader needs no epoch and no time zone."""
    target = tmp_path / "pages.jsonl"

    export(crawl, str(target))

    first = json.loads(target.read_bytes().splitlines()[0])
    assert first["fetched_at"] == "2023-11-14T22:13:20.250Z"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_jsonl_line_is_one_line_to_everybody(title: str) -> None:
    """Whatever a title holds, `str.splitlines` and a JSON parser see one record."""
    file = io.BytesIO()

    write_jsonl([page_row(page(SEED, title=title))], file)

    (line,) = file.getvalue().decode("utf-8").splitlines()
    assert json.loads(line)["title"] == title


def test_skipped_urls_come_last_once_and_with_their_reason(crawl: Path, tmp_path: Path) -> None:
    """Those of every shard follow the pages."""
    target = tmp_path / "all.jsonl"

    export(crawl, str(target), choice=Choice(include_skipped=True))

    lines = [json.loads(line) for line in target.read_bytes().splitlines()]
    skipped = {line["url"]: line["skipped"] for line in lines[len(PAGES) :]}
    assert skipped == SKIPPED
    assert len(lines) == len(PAGES) + len(SKIPPED)


def test_csv_has_the_same_columns_and_reads_back(crawl: Path, tmp_path: Path) -> None:
    """Quotes, line ends and commas in a title are a reader's to undo."""
    target = tmp_path / "pages.csv"

    export(crawl, str(target), choice=Choice(include_skipped=True))

    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*CONTRACT, "skipped", "given_up"]
    titles = {row["url"]: row["title"] for row in rows}
    assert titles["https://a.example/nasty"] == "'" + NASTY_TITLE
    assert len(rows) == len(PAGES) + 2


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_csv_cell_is_never_a_formula(title: str) -> None:
    """No text cell begins with what a spreadsheet would run."""
    file = io.BytesIO()

    write_csv([page_row(page(SEED, title=title))], FIELDS, file)

    rows = list(csv.reader(io.StringIO(file.getvalue().decode("utf-8"), newline="")))
    cell = rows[1][CONTRACT.index("title")]
    assert not cell.lstrip("\u200b\ufeff\x00\x1f ").startswith(("=", "+", "-", "@"))
    assert not cell.startswith(("\t", "\r", "\n"))
    assert cell in (title, "'" + title)


def test_sitemap_lists_only_pages_that_stand_for_themselves(crawl: Path, tmp_path: Path) -> None:
    """No error, no redirect, no copy, no document that is not HTML; and it is XML."""
    target = tmp_path / "sitemap.xml"

    outcome = export(crawl, str(target))

    assert sorted(locations(target)) == sorted(LISTED)
    assert outcome.records == len(LISTED)


def test_sitemap_is_split_by_number_behind_an_index(tmp_path: Path) -> None:
    """Past the limit the name becomes an index, and the parts hold each URL once."""
    target = tmp_path / "sitemap.xml"
    urls = [f"https://a.example/{number}" for number in range(5)]

    outcome = write_sitemap(map(page, urls), target, max_urls=2)

    parts = [f"https://a.example/sitemap-{number}.xml" for number in (1, 2, 3)]
    assert outcome == (5, 3)
    assert locations(target) == parts
    found = [locations(tmp_path / part.rpartition("/")[2]) for part in parts]
    assert found == [urls[:2], urls[2:4], urls[4:]]


def test_sitemap_part_stays_below_its_bytes(tmp_path: Path) -> None:
    """The limit is on the file as it is on disk."""
    target = tmp_path / "sitemap.xml"

    _, parts = write_sitemap(
        (page(f"https://a.example/{number}") for number in range(50)), target, max_bytes=600
    )

    assert parts > 1
    assert all(part.stat().st_size <= 600 for part in tmp_path.glob("sitemap-*.xml"))


def test_file_that_fails_halfway_leaves_the_earlier_one(tmp_path: Path) -> None:
    """A reader of the name never sees half a file, and no rubbish stays."""
    target = tmp_path / "pages.jsonl"
    target.write_bytes(b"earlier")

    with suppress(InterruptedError), whole_file(target) as file:
        file.write(b"half")
        raise InterruptedError

    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("pages.tar.gz", 'unknown export format ".gz"'),
        ("pages.db", r'unknown export format "\.db": use \.jsonl, \.jsonl\.gz, \.csv, \.parquet'),
        ("/nowhere/at/all/pages.csv", "there is no directory /nowhere/at/all"),
        ("/tmp", "is a directory"),
    ],
)
def test_target_that_cannot_be_is_refused_before_anything_is_written(
    target: str, words: str
) -> None:
    """The sentence says what is wrong with it."""
    with pytest.raises(ExportError, match=words):
        check_target(target)


def test_sitemap_needs_a_name() -> None:
    """It may be several files, which standard output is not."""
    with pytest.raises(ExportError, match="cannot go to standard output"):
        check_target("-", Format.XML)


def test_records_are_read_beside_the_owner(crawl: Path) -> None:
    """An export may run while the crawl does."""
    with open_stored(crawl) as first, open_stored(crawl) as second:
        assert len(list(first.pages())) == len(list(second.pages())) == len(PAGES)


@pytest.mark.parametrize(
    "title", ["＝1+1", "\u200b=1+1", "\ufeff@x", "﹢1", "⁻1", "\n=1", " =1", "－1", "\x0b=1"]
)
def test_csv_knows_the_other_forms_of_a_formula(title: str) -> None:
    """Full width, small and superscript signs, and signs behind what cannot be seen."""
    file = io.BytesIO()

    write_csv([page_row(page(SEED, title=title))], FIELDS, file)

    rows = list(csv.reader(io.StringIO(file.getvalue().decode("utf-8"), newline="")))
    assert rows[1][CONTRACT.index("title")] == "'" + title


@pytest.mark.parametrize(
    "title", ["A page", "“Quoted”", "«x»", "(1)", "日本", "#1", "é", "* * *", ""]
)
def test_csv_leaves_other_text_as_it_is(title: str) -> None:
    """Nothing is put before text that no program takes for a formula."""
    file = io.BytesIO()

    write_csv([page_row(page(SEED, title=title))], FIELDS, file)

    rows = list(csv.reader(io.StringIO(file.getvalue().decode("utf-8"), newline="")))
    assert rows[1][CONTRACT.index("title")] == title


def test_jsonl_has_no_control_character() -> None:
    """Escape sequences, C1 controls and marks of direction are escaped; the text is the same."""
    title = "\x1b[31m\x9b2J\x7f\u202eabc\u2066é"
    file = io.BytesIO()

    write_jsonl([page_row(page(SEED, title=title))], file)

    text = file.getvalue().decode()
    assert text.rstrip("\n").isprintable()
    assert json.loads(text)["title"] == title


def test_a_page_marked_noindex_is_not_in_the_sitemap(tmp_path: Path) -> None:
    """It is in the other exports, with the mark."""
    marked = page("https://a.example/hidden", noindex=True)
    crawl = make_crawl(tmp_path / "crawl", [page(SEED), marked])

    export(crawl, str(tmp_path / "sitemap.xml"))
    export(crawl, str(tmp_path / "pages.jsonl"))

    assert "hidden" not in (tmp_path / "sitemap.xml").read_text()
    lines = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {line["url"]: line["noindex"] for line in lines} == {SEED: False, marked.url: True}


def test_a_link_in_the_place_of_an_export_is_replaced(crawl: Path, tmp_path: Path) -> None:
    """The file that it points to is not touched."""
    precious, target = tmp_path / "precious", tmp_path / "pages.jsonl"
    precious.write_text("mine")
    target.symlink_to(precious)

    export(crawl, str(target))

    assert precious.read_text() == "mine"
    assert not target.is_symlink()
    assert target.read_text().count("\n") == len(PAGES)


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o666), (0o022, 0o644), (0o077, 0o600)])
def test_an_export_has_the_mode_that_the_umask_allows(
    crawl: Path, tmp_path: Path, umask: int, mode: int
) -> None:
    """And is the owner's alone as long as it is not complete."""
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "a.jsonl"):
            (part,) = tmp_path.glob(".a.jsonl*")
            meanwhile = part.stat().st_mode & 0o777
        export(crawl, str(tmp_path / "b.jsonl"))
    finally:
        os.umask(before)

    assert meanwhile == 0o600
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a.jsonl", "b.jsonl")] == [
        mode
    ] * 2


def test_one_output_that_fails_does_not_cost_the_others(crawl: Path, tmp_path: Path) -> None:
    """The message names the file, and the exit code is 2."""
    (tmp_path / "full").mkdir()
    targets = [tmp_path / "one.csv", tmp_path / "full" / "pages.jsonl", tmp_path / "two.jsonl"]
    arguments = [str(each) for target in targets for each in ("-o", target)]
    with pytest.MonkeyPatch.context() as patch:
        real = os.open

        def refuse(path: object, *rest: int, **named: int) -> int:
            if "full" in str(path):
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            return real(path, *rest, **named)  # type: ignore[arg-type]

        patch.setattr("mannerly.exports.whole.os.open", refuse)
        outcome = invoke("export", str(crawl), *arguments)

    assert outcome.exit_code == 2
    assert f"cannot write {targets[1]}: No space left on device" in outcome.stderr
    assert [target.exists() for target in targets] == [True, False, True]


def test_a_url_that_changes_its_state_meanwhile_is_exported_once() -> None:
    """A failed page that is tried again and given up while the export runs keeps its record."""
    broken = page("https://a.example/broken", status=None, error="timeout")

    class Changing:
        def metadata(self) -> list[tuple[PageRecord, dict[str, object]]]:
            return [(page(SEED), {}), (broken, {})]

        def skipped(self) -> list[Skipped]:
            return []

        def given_up(self) -> list[Skipped]:
            return [Skipped(broken.url, "host_retired: x", 1, None)]

    choice = Choice(include_skipped=True)
    rows = list(page_rows(Changing(), choice))  # type: ignore[arg-type]

    assert [row["url"] for row in rows] == [SEED, broken.url]
