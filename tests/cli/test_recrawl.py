"""A recrawl on real sockets: 304s, changes, sitemaps that lie, and a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.crawler.store.valkey_server import shared_url
from tests.harness.commands import invoke, run
from tests.harness.sites import Request, serving
from tests.harness.waiting import eventually

import mannerly
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.model import PageRecord

COUNT = 40
NOW = "Wed, 03 Jun 2026 10:00:00 GMT"
PACE = Settings(strategy="fixed", delay_s=0.001, max_rate="unlimited", max_attempts=1)


class Site:
    """A site of some pages, of which each can change, vanish and fail."""

    def __init__(self) -> None:
        self.versions = dict.fromkeys([f"/p{n}" for n in range(COUNT)], 1)
        self.has_etags = True
        self.last_modified = ""
        self.nonce = 0  # is in every page, but not in its text
        self.statuses: dict[str, int] = {}  # of pages that are not 200
        self.lastmods: dict[str, str] | None = None  # None: there is no sitemap
        self.gate = threading.Event()  # pages are answered when it is set
        self.gate.set()
        self.log: list[tuple[str, int, int]] = []  # path, status, bytes of the body
        self._open = ExitStack()
        self.url = self._open.enter_context(serving(self._respond))

    def _respond(self, request: Request) -> None:
        if request.path in self.versions:
            self.gate.wait(60)
        status, body, etag = self.answer(request.path, request.headers.get("If-None-Match"))
        self.log.append((request.path, status, len(body)))
        tags = {"ETag": etag, "Last-Modified": self.last_modified}
        sent = {name: value for name, value in tags.items() if value}
        # One moment: so a test can send the time of the answer as Last-Modified.
        request.date_time_string = lambda *_: NOW
        request.answer(status, body, {"Content-Type": "text/html", **sent})

    def answer(self, path: str, known: str | None) -> tuple[int, bytes, str]:
        if path == "/sitemap.xml" and self.lastmods is not None:
            rows = "".join(
                f"<url><loc>{self.url}{page}</loc><lastmod>{when}</lastmod></url>"
                for page, when in self.lastmods.items()
            )
            return 200, f"<urlset>{rows}</urlset>".encode(), ""
        if path == "/":
            links = "".join(f'<a href="{page}">Page {page}</a>' for page in self.versions)
            body = f"<title>Home</title><script>n={self.nonce}</script>{links}"
            return 200, body.encode(), ""
        if path not in self.versions or path in self.statuses:
            return self.statuses.get(path, 404), b"", ""
        etag = f'"{self.versions[path]}-{self.nonce}"' if self.has_etags else ""
        if etag and etag == known:
            return 304, b"", etag
        text = f"<h1>{path}</h1><p data-n={self.nonce}>Version {self.versions[path]}</p>"
        return 200, f'<meta name=csrf content="{self.nonce}">{text}'.encode(), etag

    def asked(self) -> Counter[str]:
        """Return how often each page was asked for since the last call."""
        log, self.log = self.log, []
        return Counter(path for path, _, _ in log if path in self.versions)

    def close(self) -> None:
        self.gate.set()
        self._open.close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def crawl(site: Site, place: Path, **options: object) -> None:
    with mannerly.Crawl(site.url, data_dir=place, politeness=PACE, **options) as crawling:  # type: ignore[arg-type]
        crawling.start().wait(60)


def recrawl(place: Path) -> dict[str, PageRecord]:
    """Recrawl as a program does; return the records by their paths."""
    with mannerly.Crawl(data_dir=place) as crawling:
        crawling.again().start().wait(60)
    return records(place)


def records(place: Path) -> dict[str, PageRecord]:
    with mannerly.open(place) as stored:
        return {record.url[record.url.index("/", 8) :]: record for record in stored.pages()}


def seen(record: PageRecord) -> tuple[object, ...]:
    return record.status, record.title, record.h1, record.digest, record.links


def changes(found: dict[str, PageRecord]) -> dict[str | None, set[str]]:
    """Return the paths of pages by their change, without the home page."""
    by_change: dict[str | None, set[str]] = {}
    for path, record in found.items():
        if path != "/":
            by_change.setdefault(record.change, set()).add(path)
    return by_change


def test_an_unchanged_site_is_asked_once_and_sends_no_body(site: Site, tmp_path: Path) -> None:
    """Every page answers 304; records and links stay, and say what was seen before."""
    place = tmp_path / "crawl"
    crawl(site, place, links=True)
    before = records(place)
    with mannerly.open(place) as stored:
        links = sorted(stored.links())
    site.asked()

    found = recrawl(place)

    pages = [each for each in site.log if each[0] in site.versions]
    assert {(status, size) for _, status, size in pages} == {(304, 0)}
    assert site.asked() == dict.fromkeys(site.versions, 1)
    assert changes(found) == {"same": set(site.versions)}
    assert {
        path: (each.status, each.title, each.h1, each.digest) for path, each in found.items()
    } == {path: (each.status, each.title, each.h1, each.digest) for path, each in before.items()}
    assert {each.previous_fetched_at for each in found.values()} == {
        each.fetched_at for each in before.values()
    }
    with mannerly.open(place) as stored:
        assert sorted(stored.links()) == links
        assert stored.status().total["fetched"] == len(before)


def test_a_summary_counts_what_came(site: Site, tmp_path: Path) -> None:
    """Pages that answered 304 are named so, and their bytes are not counted again."""
    place = tmp_path / "crawl"
    crawl(site, place)

    ran = invoke("recrawl", str(place), "--json")
    result = json.loads(ran.stdout)

    assert ran.exit_code == 0, ran.output
    assert result["statuses"]["304"] == COUNT
    assert result["bytes"] == sum(size for path, _, size in site.log[-COUNT - 3 :] if path == "/")


def test_an_unchanged_page_keeps_its_archived_answer(site: Site, tmp_path: Path) -> None:
    """A 304 has no body: the content of an export is that of the last whole answer."""
    place, out = tmp_path / "crawl", tmp_path / "pages.jsonl"
    crawl(site, place, keep_bodies=True)
    site.versions["/p3"] = 2
    recrawl(place)

    ran = invoke("export", str(place), "-o", str(out), "--content", "html")

    assert ran.exit_code == 0, ran.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    contents = {row["url"].removeprefix(site.url): row["content"] for row in rows}
    assert "Version 1" in contents["/p1"]
    assert "Version 2" in contents["/p3"]


def test_exactly_the_changed_pages_are_changed(site: Site, tmp_path: Path) -> None:
    """Of forty pages two change, one vanishes, one fails and one is new."""
    place = tmp_path / "crawl"
    crawl(site, place)
    site.versions |= {"/p3": 2, "/p5": 2, "/new": 1}
    site.statuses = {"/p7": 404, "/p9": 503}

    found = recrawl(place)

    same = {path for path in site.versions if path not in ("/p3", "/p5", "/new", "/p7", "/p9")}
    assert changes(found) == {
        "changed": {"/p3", "/p5"}, "removed": {"/p7"}, "new": {"/new"}, None: {"/p9"},
        "same": same,
    }  # fmt: skip
    assert (found["/p9"].status, found["/p9"].error) == (200, "http_503")
    assert (found["/p7"].status, found["/p7"].previous_status) == (404, 200)
    assert found["/p3"].previous_digest not in (None, found["/p3"].digest)


@pytest.mark.parametrize("has_etags", [False, True])
def test_a_changed_nonce_is_no_change(site: Site, tmp_path: Path, has_etags: bool) -> None:
    """The visible text decides, with an ETag of the whole body and without one."""
    site.has_etags = has_etags
    place = tmp_path / "crawl"
    crawl(site, place)
    site.nonce += 1
    site.versions["/p3"] = 2

    found = recrawl(place)

    assert changes(found) == {"changed": {"/p3"}, "same": set(site.versions) - {"/p3"}}


def test_a_page_that_is_modified_with_every_answer_is_digested(site: Site, tmp_path: Path) -> None:
    """A Last-Modified header that is the time of the answer says nothing about the page."""
    site.last_modified = NOW
    place = tmp_path / "crawl"
    crawl(site, place)
    site.nonce += 1
    site.versions["/p3"] = 2

    found = recrawl(place)

    assert changes(found) == {"changed": {"/p3"}, "same": set(site.versions) - {"/p3"}}


def test_a_page_that_cannot_be_compared_is_unclear(site: Site, tmp_path: Path) -> None:
    """Other bytes, the same Last-Modified, no digest of the text: the summary counts such pages."""
    site.last_modified = "Mon, 01 Jun 2026 10:00:00 GMT"
    place = tmp_path / "crawl"
    crawl(site, place)
    site.nonce += 1

    ran = invoke("recrawl", str(place))
    first = changes(records(place))
    site.nonce += 1
    second = changes(recrawl(place))

    assert first == {"unclear": {*site.versions}}
    assert f"{COUNT + 1} unclear (other bytes" in ran.stderr  # with the home page
    assert second == {"same": set(site.versions)}


def test_a_file_that_was_modified_is_changed(site: Site, tmp_path: Path) -> None:
    """Of a page with a Last-Modified header the server tells; its bytes are others, too."""
    site.last_modified = "Mon, 01 Jun 2026 10:00:00 GMT"
    place = tmp_path / "crawl"
    crawl(site, place)
    site.last_modified = "Tue, 02 Jun 2026 10:00:00 GMT"
    site.versions = dict.fromkeys(site.versions, 2)

    found = recrawl(place)

    assert changes(found) == {"changed": set(site.versions)}


def test_a_sitemap_that_tells_the_truth_spares_requests(site: Site, tmp_path: Path) -> None:
    """From the second recrawl on only changed pages and one in twenty are asked for."""
    place = tmp_path / "crawl"
    site.lastmods = dict.fromkeys(site.versions, "2026-01-01")
    crawl(site, place)
    recrawl(place)
    site.asked()
    site.versions["/p3"] = 2
    site.lastmods["/p3"] = "2026-02-02"

    found = recrawl(place)

    asked = site.asked()
    assert "/p3" in asked
    assert sum(asked.values()) < COUNT / 2
    assert changes(found) == {"changed": {"/p3"}, "same": set(site.versions) - {"/p3"}}


def test_a_sitemap_that_lies_is_not_believed(site: Site, tmp_path: Path) -> None:
    """Its lastmod never changes and the pages do: every page is asked for, every change found."""
    place = tmp_path / "crawl"
    site.lastmods = dict.fromkeys(site.versions, "2026-01-01")
    crawl(site, place)
    liars = [f"/p{n}" for n in range(0, COUNT, 4)]
    for _ in range(2):
        site.versions |= {path: site.versions[path] + 1 for path in liars}
        site.asked()

        found = recrawl(place)

        assert site.asked() == dict.fromkeys(site.versions, 1)
        assert changes(found)["changed"] == set(liars)


def test_pace_and_robots_are_kept(site: Site, tmp_path: Path) -> None:
    """What a host taught is not learned again, and its robots.txt is not asked for again."""
    place = tmp_path / "crawl"
    with mannerly.Crawl(site.url, data_dir=place, start_rate=50, max_rate=100) as crawling:
        crawling.start().wait(60)
    with mannerly.open(place) as stored:
        (before,) = stored.hosts()
    site.log.clear()

    recrawl(place)

    with mannerly.open(place) as stored:
        (after,) = stored.hosts()
    assert "/robots.txt" not in {path for path, _, _ in site.log}
    assert after.record.fetched == before.record.fetched
    assert after.record.allowance >= before.record.allowance * 0.8
    assert after.record.concurrency >= before.record.concurrency


@pytest.mark.processes
def test_a_killed_recrawl_goes_on_where_it_was(site: Site, tmp_path: Path) -> None:
    """After kill -9 no page is asked for again that was committed, and none is left out."""
    place = tmp_path / "crawl"
    crawl(site, place)
    site.asked()
    site.versions["/p3"] = 2
    command = [sys.executable, "-m", "mannerly", "recrawl", str(place), "--quiet"]
    process = subprocess.Popen([*command, "--delay", "0.05", "--max-rate", "20"])
    eventually(lambda: sum(each.change is not None for each in records(place).values()) > 5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    done = {path for path, each in records(place).items() if each.change is not None}

    ended = subprocess.run(command, timeout=120, check=False)

    again = [path for path, count in site.asked().items() if count > 1]
    assert ended.returncode == 0
    assert not done & set(again)
    found = records(place)
    assert changes(found) == {"changed": {"/p3"}, "same": set(site.versions) - {"/p3"}}


def test_the_command_says_what_changed_and_exports_it(site: Site, tmp_path: Path) -> None:
    """`recrawl` counts the changes, `export --changed` writes the new and changed pages."""
    place, out = tmp_path / "crawl", tmp_path / "changed.jsonl"
    crawl(site, place)
    site.versions |= {"/p3": 2, "/new": 1}

    ran = invoke("recrawl", str(place))
    exported = invoke("export", str(place), "-o", str(out), "--changed")

    assert ran.exit_code == exported.exit_code == 0, ran.output + exported.output
    assert "1 new, 2 changed, 0 removed, 39 same" in ran.stderr
    paths = {
        json.loads(line)["url"].removeprefix(site.url) for line in out.read_text().splitlines()
    }
    assert paths == {"/", "/p3", "/new"}


def _lose_an_answer(place: Path, lost: str) -> None:
    """Damage the answer of one page in its segment, and repair the crawl."""
    with mannerly.open(place) as stored, stored.view() as opened:
        places = {
            record.url: at for reader in opened.readers for _, record, at in reader.kept_pages()
        }
    at = next(at for url, at in places.items() if url.endswith(lost))
    assert at is not None
    with (place / at.segment).open("r+b") as file:
        file.seek(at.offset + 20)
        file.write(b"\0" * 8)
    repaired = invoke("doctor", "--repair", str(place))
    assert repaired.exit_code == 0, repaired.output


def test_a_page_whose_answer_is_lost_is_asked_for_as_a_whole(site: Site, tmp_path: Path) -> None:
    """A 304 would not bring it back; all other pages are asked for as always."""
    place = tmp_path / "crawl"
    crawl(site, place, keep_bodies=True)
    _lose_an_answer(place, "/p3")
    site.log.clear()

    found = recrawl(place)

    statuses = {path: status for path, status, _ in site.log if path in site.versions}
    assert statuses == dict.fromkeys(site.versions, 304) | {"/p3": 200}
    assert found["/p3"].change == "same"
    with mannerly.open(place) as stored:
        assert list(stored.missing()) == []


def test_a_lost_answer_that_comes_back_changes_nothing_else(site: Site, tmp_path: Path) -> None:
    """What the last recrawl has found about the page stays, whichever change that was."""
    place = tmp_path / "crawl"
    crawl(site, place, keep_bodies=True)
    site.versions |= {"/p3": 2}
    before = recrawl(place)["/p3"]
    _lose_an_answer(place, "/p3")
    site.log.clear()

    retried = invoke("retry", str(place), "--missing", "-q")

    assert retried.exit_code == 0, retried.output
    assert [(path, status) for path, status, _ in site.log] == [("/p3", 200)]
    after = records(place)["/p3"]
    assert (after.change, after.previous_digest) == ("changed", before.previous_digest)
    assert after.fetched_at > before.fetched_at


def test_a_lost_answer_of_a_first_crawl_leaves_its_page_new(site: Site, tmp_path: Path) -> None:
    """Also if the request fails: then the record is as it was, with the error."""
    place = tmp_path / "crawl"
    crawl(site, place, keep_bodies=True)
    for path in ("/p3", "/p5"):
        _lose_an_answer(place, path)
    site.statuses = {"/p5": 503}

    invoke("retry", str(place), "--missing", "-q")

    found = records(place)
    assert (found["/p3"].change, found["/p3"].previous_status) == ("new", None)
    kept = found["/p5"]
    assert (kept.status, kept.error, kept.change) == (200, "http_503", "new")
    with mannerly.open(place) as stored:
        assert [url.removeprefix(site.url) for url in stored.missing()] == ["/p5"]


# ---------------------------------------------------------------------- in a server

SERVED = ("--delay", "0.001", "--strategy", "fixed", "--max-rate", "unlimited", "--quiet")


@pytest.mark.processes
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_crawl_in_a_server_is_recrawled(site: Site, tmp_path: Path, is_shared: bool) -> None:
    """By the worker that has all records, or by another one with the same shared storage."""
    url, name = shared_url(), f"again-{uuid4().hex[:8]}"
    where = ["--crawl", name, "--data-dir", tmp_path / "one"]
    segments = ["--segments", tmp_path / "shared"] if is_shared else []
    if is_shared:
        (tmp_path / "shared").mkdir()
    first = run("crawl", site.url, "--redis-url", url, *where, *segments, *SERVED)
    assert first.returncode == 0, first.stderr
    site.versions |= {"/p3": 2, "/p5": 2}
    site.asked()

    if is_shared:
        where[-1] = tmp_path / "two"
    ran = run("recrawl", url, *where, *segments)

    assert ran.returncode == 0, ran.stderr
    assert "2 changed" in ran.stderr
    pages = [each for each in site.log if each[0] in site.versions]
    assert Counter(status for _, status, _ in pages) == {304: COUNT - 2, 200: 2}
    folder = tmp_path / ("shared" if is_shared else "one")
    told = run("export", url, "--crawl", name, "--data-dir", folder, "--changed", "-o", "-")
    assert told.returncode == 0, told.stderr
    found = {json.loads(line)["url"].removeprefix(site.url) for line in told.stdout.splitlines()}
    assert found >= {"/p3", "/p5"}
    assert len(found & site.versions.keys()) == 2


@pytest.mark.processes
def test_a_recrawl_without_its_shared_storage_is_refused(site: Site, tmp_path: Path) -> None:
    """It names the option, and nothing is ordered; so does one without a name."""
    url, name = shared_url(), f"again-{uuid4().hex[:8]}"
    (tmp_path / "shared").mkdir()
    where = ["--crawl", name, "--data-dir", tmp_path / "one", "--segments", tmp_path / "shared"]
    run("crawl", site.url, "--redis-url", url, *where, *SERVED)
    site.asked()

    other = run("recrawl", url, "--crawl", name, "--data-dir", tmp_path / "two")
    nameless = run("recrawl", url)
    unknown = run("recrawl", url, "--crawl", "no-such-crawl")

    assert (other.returncode, nameless.returncode, unknown.returncode) == (2, 2, 2)
    assert f"{COUNT + 1} records of pages are on shared storage" in other.stderr
    assert "--segments" in other.stderr
    assert "--crawl" in nameless.stderr
    assert not site.asked()


@pytest.mark.processes
def test_pages_of_another_worker_are_recrawled_in_full_and_compared_by_an_export(
    site: Site, tmp_path: Path
) -> None:
    """The record of each is on another machine: an export with both directories has the change."""
    url, name = shared_url(), f"again-{uuid4().hex[:8]}"
    one, two = (["--data-dir", tmp_path / each] for each in ("one", "two"))
    run("crawl", site.url, "--redis-url", url, "--crawl", name, *one, *SERVED)
    site.versions |= {"/p3": 2, "/p5": 2, "/p40": 1}
    site.statuses["/p7"] = 404
    site.asked()

    ran = run("recrawl", url, "--crawl", name, *two)

    asked, log = Counter(path for path, _, _ in site.log if path in site.versions), site.log
    both, alone = (
        run("export", url, "--crawl", name, *each, "-o", "-") for each in ((*one, *two), two)
    )
    assert ran.returncode == 0, ran.stderr
    assert f"{COUNT + 1} pages have their record on another machine" in ran.stderr
    assert asked == dict.fromkeys(site.versions, 1)
    assert 304 not in {status for _, status, _ in log}
    changes = _changes(both, site)
    assert {path for path, change in changes.items() if change == "changed"} == {"/", "/p3", "/p5"}
    assert (changes["/p40"], changes["/p7"]) == ("new", "removed")
    assert Counter(changes.values())["same"] == COUNT - 3
    assert _changes(alone, site).keys() == changes.keys()
    assert {path for path, change in _changes(alone, site).items() if change} == {"/p40"}


@pytest.mark.processes
def test_a_recrawl_has_the_pages_of_max_urls_again(site: Site, tmp_path: Path) -> None:
    """The first crawl has used them all; a joiner is not told to change what cannot be changed."""
    url, name = shared_url(), f"again-{uuid4().hex[:8]}"
    where = ["--crawl", name, "--data-dir", tmp_path / "one"]
    run("crawl", site.url, "--redis-url", url, *where, *SERVED, "--max-urls", 5)
    site.log.clear()

    ran = run("recrawl", url, *where)

    asked = [path for path, _, _ in site.log if path in site.versions or path == "/"]
    other = run("crawl", site.url, "--redis-url", url, *where, "--delay", 3)
    reported = run("report", url, "--crawl", name, "-o", tmp_path / "report.html")
    assert ran.returncode == 0, ran.stderr
    assert len(asked) == len(set(asked)) == 5
    assert other.returncode == 2
    assert "leave it out" in other.stderr
    assert "mannerly set" not in other.stderr
    assert reported.returncode == 1
    assert "records of pages are missing: give the data directory" in reported.stderr


def _changes(exported: subprocess.CompletedProcess[str], site: Site) -> dict[str, str | None]:
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    return {row["url"].removeprefix(site.url): row["change"] for row in rows}


@pytest.mark.processes
def test_a_worker_is_recrawled_by_its_directory(site: Site, tmp_path: Path) -> None:
    """As `resume` joins its crawl again."""
    url, name, home = shared_url(), f"again-{uuid4().hex[:8]}", tmp_path / "one"
    run("crawl", site.url, "--redis-url", url, "--crawl", name, "--data-dir", home, *SERVED)
    site.asked()

    ran = run("recrawl", home)

    assert ran.returncode == 0, ran.stderr
    assert site.asked() == dict.fromkeys(site.versions, 1)
    assert f"--crawl {name} --data-dir {home}" in ran.stderr
