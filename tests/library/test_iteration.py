"""A loop over a crawl gets every page once, and leaves nothing behind however it ends.

That nothing is left is asserted after every test (`tidy` in conftest): no thread, process,
descriptor or temporary directory.
"""

from __future__ import annotations

import gc
import pickle
import signal
import socket
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.runtime.harness import is_still, real_pages
from tests.library.conftest import threads
from tests.library.loops import FAST, Program

import mannerly
from mannerly.crawler.runtime.ending import Ending
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

HTML = "Content-Type: text/html; charset=utf-8"
PROCESSES = pytest.mark.parametrize("processes", [1, 2])


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(3, pages=15, neighbours=1)) as web:
        yield web


# ---------------------------------------------------------------------- what comes


@PROCESSES
def test_every_page_comes_once(web: DemoWeb, processes: int) -> None:
    """All pages that can be reached are delivered, none of them twice."""
    urls = [page.url for page in mannerly.crawl(web.seeds(), processes=processes, **FAST)]

    assert sorted(urls) == sorted(real_pages(web))


def page_web() -> dict[str, bytes]:
    """Return a small site by path."""
    home = (
        '<title>Home  page</title><a href="/moved">m</a><a href="sub/latin">l</a>'
        '<a rel="nofollow" href="/unwanted">n</a><a href="https://elsewhere.example/x">e</a>'
    )
    return {
        "/": answer(home.encode(), "200 OK", HTML, "X-Colour: blue", "Set-Cookie: secret=1"),
        "/moved": answer(b"", "302 Found", "Location: /target"),
        "/target": answer(b"<title>There</title>", "200 OK", HTML),
        "/sub/latin": answer(b"caf\xe9", "200 OK", "Content-Type: text/html; charset=iso-8859-1"),
    }


@PROCESSES
def test_a_page_has_what_was_fetched(processes: int) -> None:
    """Attributes tell address, status, headers, content, links, and how the page was found."""
    with RawServer(routes(page_web())) as server:
        options = FAST | {"processes": processes, "scope": "host"}
        pages = {page.url: page for page in mannerly.crawl(server.url(), **options)}
        home, latin = pages[server.url()], pages[server.url("/sub/latin")]
        moved, target = pages[server.url("/moved")], pages[server.url("/target")]

    assert len(pages) == 4
    assert (home.status, home.title, home.depth, home.parent) == (200, "Home page", 0, None)
    assert (home.error, home.redirect_to) == (None, None)
    assert home.headers["x-colour"] == "blue"
    assert "set-cookie" not in home.headers
    assert home.content_type == "text/html; charset=utf-8"
    assert home.body.startswith(b"<title>Home  page</title>")
    assert home.html == home.body.decode()
    assert home.links == [
        server.url("/moved"),
        server.url("/sub/latin"),
        "https://elsewhere.example/x",
        server.url("/unwanted"),
    ]
    assert 0.0 < home.latency_s < 5.0
    assert (latin.html, latin.links, latin.depth, latin.parent) == ("café", [], 1, home.url)
    assert (moved.status, moved.redirect_to) == (302, target.url)
    assert (target.title, target.parent) == ("There", moved.url)
    assert repr(home) == f"<Page {home.url} 200>"


@PROCESSES
def test_failures_come_as_pages_with_an_error(processes: int) -> None:
    """A page without an answer has no status, an error, no body and no links; 404 is an answer."""
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        home = answer(b'<a href="/gone">g</a>', "200 OK", HTML)
        with RawServer(routes({"/": home})) as server:
            pages = {
                page.url: page
                for page in mannerly.crawl(
                    [server.url(), nowhere],
                    politeness=mannerly.Settings(max_attempts=1),
                    robots_patience=0.1,
                    robots_unreachable="allow",
                    processes=processes,
                    **FAST,
                )
            }
            gone = pages[server.url("/gone")]

    failed = pages[nowhere]
    assert (gone.status, gone.error) == (404, None)
    assert failed.status is None
    assert failed.error
    assert (failed.body, failed.html, failed.links, dict(failed.headers)) == (b"", "", [], {})
    assert repr(failed) == f"<Page {nowhere} {failed.error}>"


@PROCESSES
def test_max_urls_bounds_the_pages(web: DemoWeb, processes: int) -> None:
    """So many pages are delivered and no more, and the result says why it ended."""
    with mannerly.Crawl(web.seeds(), max_urls=7, processes=processes, **FAST) as crawl:
        assert crawl.result is None
        urls = {page.url for page in crawl}
        result = crawl.result

    assert len(urls) == 7
    assert result is not None
    assert (result.ending, result.stats.fetched) == (Ending.MAX_URLS, 7)
    assert result.pending > 0
    assert result.seconds > 0.0


def test_a_page_can_be_sent_to_a_process_pool(web: DemoWeb) -> None:
    """A page survives pickling; acknowledging the copy does nothing."""
    pages = mannerly.crawl(web.seeds(), max_urls=2, **FAST)

    page = next(pages)
    copy = pickle.loads(pickle.dumps(page))
    copy.done()

    assert (copy.url, copy.body, copy.links) == (page.url, page.body, page.links)
    assert dict(copy.headers) == dict(page.headers)
    pages.close()


def test_seeds_are_checked_when_the_crawl_is_made() -> None:
    """A wrong URL is told at the call, not at the first page, and leaves nothing behind."""
    with pytest.raises(ValueError, match="'ftp://x/' is not an http or https URL"):
        mannerly.crawl("ftp://x/")
    with pytest.raises(ValueError, match="at least one URL"):
        mannerly.crawl([])
    with pytest.raises(ValueError, match="is not an http or https URL"):
        mannerly.acrawl("example")


# ---------------------------------------------------------------------- however it ends


@PROCESSES
def test_break_stops_the_crawl(web: DemoWeb, processes: int) -> None:
    """After a break nothing runs any more, while the variables are still there."""
    for page in mannerly.crawl(web.seeds(), processes=processes, **FAST):
        assert page.status == 200
        break

    assert not threads()


@PROCESSES
def test_an_exception_comes_out_as_it_is(web: DemoWeb, processes: int) -> None:
    """The error of the loop's body is not wrapped, and the crawl is stopped."""
    error = KeyError("mine")

    def loop() -> None:
        for _ in mannerly.crawl(web.seeds(), processes=processes, **FAST):
            raise error

    with pytest.raises(KeyError) as caught:
        loop()

    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None


@PROCESSES
def test_ctrl_c_ends_the_loop(web: DemoWeb, processes: int) -> None:
    """SIGINT is Python's own: KeyboardInterrupt in the loop, or while it waits for a page."""

    def loop() -> None:
        for _ in mannerly.crawl(web.seeds(), processes=processes, **FAST):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        loop()


@PROCESSES
def test_an_unfinished_iterator_ends_with_its_last_reference(web: DemoWeb, processes: int) -> None:
    """Garbage collection stops the crawl."""
    pages = mannerly.crawl(web.seeds(), processes=processes, **FAST)
    next(pages)
    assert threads()

    del pages
    gc.collect()

    assert not threads()


@PROCESSES
def test_an_iterator_that_was_never_started_leaves_nothing(
    web: DemoWeb, processes: int, tidy: Path
) -> None:
    """Without a first page no thread is started, and the directory goes with the iterator."""
    pages = mannerly.crawl(web.seeds(), processes=processes, **FAST)
    assert not threads()
    assert len(list(tidy.iterdir())) == 1

    del pages
    gc.collect()

    assert not list(tidy.iterdir())
    assert not web.log()


def test_pages_can_be_kept(web: DemoWeb, tidy: Path) -> None:
    """Pages outlive the crawl and its directory; `done` is harmless then."""
    pages = list(mannerly.crawl(web.seeds(), max_urls=5, **FAST))

    assert not list(tidy.iterdir())
    for page in pages:
        page.done()
        assert page.html


def test_done_after_a_break_of_a_temporary_crawl_is_harmless(web: DemoWeb, tidy: Path) -> None:
    """The directory is gone, and is not made again."""
    pages = mannerly.crawl(web.seeds(), **FAST)
    page = next(pages)
    pages.close()

    page.done()

    assert not list(tidy.iterdir())


@PROCESSES
def test_a_program_with_an_unfinished_iterator_ends(
    web: DemoWeb, processes: int, tmp_path: Path
) -> None:
    """The interpreter's exit stops the crawl: it does not hang, complain or leave anything."""
    text = """
        pages = mannerly.crawl(seeds, **options)
        say(next(pages).status)
    """

    program = Program(text, web, tmp_path / "out", processes=processes)

    assert program.end() == ["200"]
    assert not list(program.temporary.iterdir())


@PROCESSES
def test_a_program_with_a_started_crawl_ends(web: DemoWeb, processes: int, tmp_path: Path) -> None:
    """A crawl that was started in the background and forgotten is stopped at the exit."""
    text = """
        crawl = mannerly.Crawl(seeds, delay=0.2, **options).start()
        while not list(crawl.pages()):
            time.sleep(0.01)
        say("begun")
    """

    program = Program(text, web, tmp_path / "out", processes=processes)

    assert program.end() == ["begun"]
    assert not list(program.temporary.iterdir())
    assert is_still(web)  # a request that was broken off is never answered


def test_a_crawl_runs_once(web: DemoWeb) -> None:
    """Iterating a second time is an error that says what to do."""
    with mannerly.Crawl(web.seeds(), max_urls=1, **FAST) as crawl:
        assert len(list(crawl)) == 1
        with pytest.raises(RuntimeError, match="make another Crawl with its data_dir"):
            next(iter(crawl))


def test_an_error_of_the_crawl_is_raised_by_the_loop(web: DemoWeb, tmp_path: Path) -> None:
    """A crawl that cannot go on says so, after the pages that it had."""
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "crawl", **FAST) as crawl:
        (tmp_path / "crawl" / "control.db").unlink()
        with pytest.raises(mannerly.StoreError, match="is missing"):
            list(crawl)
