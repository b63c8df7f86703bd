"""Crawls that keep bodies: every answer is archived as it was received, exactly once."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.exports.archive_site import ANSWERS, ROBOTS, Answer, archive_site
from tests.harness.waiting import eventually
from warcio.archiveiterator import ArchiveIterator

from mannerly.crawler.archive.records import read_record, read_records
from mannerly.crawler.crawl import Crawl
from mannerly.crawler.store import open_crawl

if TYPE_CHECKING:
    from mannerly.crawler.archive.records import WarcRecord

FAST = {"delay": 0.001, "start_rate": 1000, "max_rate": 1000, "strategy": "fixed"}


def crawled(url: str, directory: Path, **options: object) -> None:
    with Crawl(url, data_dir=directory, keep_bodies=True, **FAST, **options) as crawl:
        crawl.run()


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("shard-*.warc.gz"))


def archived(directory: Path) -> list[tuple[str, str, bytes]]:
    """Type, URL and payload of every record, as warcio reads them."""
    found = []
    for file in segments(directory):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                url = record.rec_headers.get_header("WARC-Target-URI")
                found.append((record.rec_type, url or "", record.raw_stream.read()))
    return found


def placed(directory: Path) -> dict[str, WarcRecord]:
    """The record at the place of every page."""
    found = {}
    with closing(open_crawl(directory)) as crawl, crawl.read(0) as reader:
        for _, record, place in reader.kept_pages():
            if place is not None:
                with (directory / place.segment).open("rb") as file:
                    found[record.url] = read_record(file, place.offset, place.length)
    return found


def check(*files: Path) -> subprocess.CompletedProcess[str]:
    words = [str(Path(sys.executable).with_name("warcio")), "check", *map(str, files)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.processes
def test_every_answer_is_kept_as_it_was_received(tmp_path: Path) -> None:
    """Byte for byte, whatever its type and encoding; robots.txt, too, and `warcio check` is clean.

    The pages themselves are read as ever: titles of compressed pages are known.
    """
    with archive_site() as site:
        crawled(site.url, tmp_path / "crawl")

        kept = {url: body for kind, url, body in archived(tmp_path / "crawl") if kind == "response"}
        (file,) = segments(tmp_path / "crawl")
        with file.open("rb") as stream:
            records = list(read_records(stream, file.stat().st_size))
        bodies = {site.url + path[1:]: answer.body for path, answer in ANSWERS.items()}
        twice = {site.url + "same-1", site.url + "same-2"}  # whichever came second is a revisit
        bodies.pop(*(twice - kept.keys()))
    kept.pop(site.url + "sitemap.xml")
    assert kept.pop(site.url + "robots.txt") == ROBOTS.body
    assert kept == bodies
    assert check(*segments(tmp_path / "crawl")).returncode == 0
    requests = sorted(record.block for record in records if record.kind == "request")
    assert requests == sorted(site.requests)
    with closing(open_crawl(tmp_path / "crawl")) as crawl, crawl.read(0) as reader:
        titles = {record.url: record.title for _, record in reader.pages()}
    assert titles[site.url + "gzip"] == "gzip"
    assert titles[site.url + "deflate"] == "deflate"


def test_same_payload_is_kept_once(tmp_path: Path) -> None:
    """The second page is a revisit of the first, and has the place of its payload."""
    with archive_site() as site:
        crawled(site.url, tmp_path / "crawl")

    kinds = Counter(kind for kind, _, _ in archived(tmp_path / "crawl"))
    pages = placed(tmp_path / "crawl")

    assert kinds["revisit"] == 1
    bodies = [pages[site.url + name].http()[2] for name in ("same-1", "same-2")]
    assert bodies == [ANSWERS["/same-1"].body] * 2


@pytest.mark.processes
def test_segments_rotate(tmp_path: Path) -> None:
    """All of them are sound, and every page is found in its own."""
    with archive_site() as site:
        crawled(site.url, tmp_path / "crawl", segment_size=4000)

    files = segments(tmp_path / "crawl")
    pages = placed(tmp_path / "crawl")

    assert len(files) > 3
    assert check(*files).returncode == 0
    assert pages[site.url + "image.png"].http()[2] == ANSWERS["/image.png"].body


def test_bodies_that_are_cut_are_marked(tmp_path: Path) -> None:
    """At max_bytes: the beginning is kept, and the reason."""
    answers = {"/": Answer(b"<html><title>long</title>" + b"x" * 5000)}
    with archive_site(answers) as site:
        crawled(site.url, tmp_path / "crawl", max_bytes=1000)

    (page,) = placed(tmp_path / "crawl").values()

    assert page.headers["warc-truncated"] == "length"
    assert page.http()[2] == answers["/"].body[:1000]


def test_crawl_without_bodies_has_no_segments(tmp_path: Path) -> None:
    """Nothing is kept unless it is asked for."""
    with archive_site() as site, Crawl(site.url, data_dir=tmp_path / "crawl", **FAST) as crawl:
        crawl.run()

    assert segments(tmp_path / "crawl") == []


def test_program_gets_decoded_pages(tmp_path: Path) -> None:
    """Iterating and keeping bodies go together: the page is archived when it is acknowledged."""
    with (
        archive_site() as site,
        Crawl(site.url, data_dir=tmp_path / "crawl", keep_bodies=True, **FAST) as crawl,
    ):
        texts = {page.url: page.html for page in crawl}

    assert "<title>gzip</title>" in texts[site.url + "gzip"]
    assert placed(tmp_path / "crawl").keys() == texts.keys()


_KILLED = """
import sys
from mannerly.crawler.crawl import Crawl
with Crawl(sys.argv[1], data_dir=sys.argv[2], keep_bodies=True, delay=0.005, start_rate=200,
           max_rate=200, strategy="fixed", segment_size=20000) as crawl:
    crawl.run()
"""


@pytest.mark.processes
def test_every_page_is_archived_once_whatever_is_killed(tmp_path: Path) -> None:
    """Kill -9 four times: each URL has one record and one answer in the archive."""
    answers = {
        f"/{number}": Answer(
            b"<html><title>%d</title>%s" % (number, os.urandom(600).hex().encode())
        )
        for number in range(120)
    }
    links = "".join(f'<a href="{path}">x</a>' for path in answers)
    answers["/"] = Answer(f"<html>{links}</html>".encode())
    directory = tmp_path / "crawl"
    with archive_site(answers) as site:
        for kill in range(1, 5):
            words = [sys.executable, "-c", _KILLED, site.url, str(directory)]
            process = subprocess.Popen(words)
            eventually(lambda wanted=kill: len(site.requests) >= 25 * wanted)
            process.kill()
            process.wait()
        crawled(site.url, directory)

    kept = Counter(url for kind, url, _ in archived(directory) if kind in ("response", "revisit"))
    pages = placed(directory)

    assert len(pages) == len(answers)
    wanted = {site.url + path[1:] for path in answers}
    assert {url: kept[url] for url in wanted} == dict.fromkeys(wanted, 1)
    assert all(page.headers["warc-target-uri"] == url for url, page in pages.items())
    assert check(*segments(directory)).returncode == 0


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_broken_encoding_costs_the_page_its_content(tmp_path: Path, encoding: str) -> None:
    """It has a record with the reason, and its bytes are kept."""
    answers = {"/": Answer(b"not compressed", encoding=encoding)}
    with archive_site(answers) as site:
        crawled(site.url, tmp_path / "crawl")

    with closing(open_crawl(tmp_path / "crawl")) as crawl, crawl.read(0) as reader:
        errors = [record.error for _, record in reader.pages()]
    (page,) = placed(tmp_path / "crawl").values()

    assert errors == ["bad_encoding"]
    assert page.http()[2] == b"not compressed"


def test_compressed_body_that_ends_early_is_asked_for_once_more(tmp_path: Path) -> None:
    """Its transfer ends as it should, so only the decoder can tell; then its record says so."""
    whole = gzip.compress(b"<html><title>half</title>" + bytes(range(256)) * 40, mtime=0)
    with archive_site({"/": Answer(whole[: len(whole) // 2], encoding="gzip")}) as site:
        crawled(site.url, tmp_path / "crawl")
        asked = [request for request in site.requests if request.startswith(b"GET / ")]

    with closing(open_crawl(tmp_path / "crawl")) as crawl, crawl.read(0) as reader:
        (record,) = (record for _, record in reader.pages())

    assert len(asked) == 2
    assert (record.status, record.error, record.attempts) == (200, "truncated", 2)
