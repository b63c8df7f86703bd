"""`Crawl` runs a crawl in the background and steers it; `open` looks at one that is stored."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import is_still, page_requests, real_pages
from tests.harness.waiting import eventually
from tests.library.conftest import threads
from tests.library.loops import FAST, requests_of

import mannerly
from mannerly.crawler.inspection.status import State
from mannerly.crawler.runtime.ending import Ending
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PROCESSES = pytest.mark.parametrize("processes", [1, 2])


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(3, pages=10, neighbours=1)) as web:
        yield web


@PROCESSES
def test_start_and_wait(web: DemoWeb, processes: int, tmp_path: Path) -> None:
    """A crawl in the background records its pages; the result and the store tell them."""
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "c", processes=processes, **FAST) as crawl:
        assert not crawl.is_running
        assert crawl.start() is crawl
        result = crawl.wait()
        assert crawl.result is result
        assert not crawl.is_running
        status = crawl.status()

    assert (result.ending, result.pending) == (Ending.FINISHED, 0)
    assert result.stats.fetched == 30
    assert (status.state, status.total["fetched"]) == (State.FINISHED, 30)
    stored = mannerly.open(tmp_path / "c")
    assert sorted(record.url for record in stored.pages()) == sorted(real_pages(web))
    assert list(stored.skipped()) == []
    stored.close()


@PROCESSES
def test_pause_unpause_and_stop(web: DemoWeb, processes: int, tmp_path: Path) -> None:
    """Paused, nothing is sent; stopped, it ends and can be resumed; `wait` has a time limit."""
    options = FAST | {"processes": processes}
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "c", delay=0.2, **options) as crawl:
        crawl.start()
        eventually(lambda: len(page_requests(web.log())) > 3)
        crawl.pause()
        eventually(lambda: crawl.status().state is State.PAUSED)
        eventually(lambda: is_still(web))
        with pytest.raises(TimeoutError, match=r"has not ended after 0\.01 s"):
            crawl.wait(timeout_s=0.01)
        paused = len(web.log())
        crawl.unpause()
        eventually(lambda: len(web.log()) > paused)
        crawl.stop()
        result = crawl.wait()

    assert result.ending is Ending.STOPPED
    assert result.pending > 0
    with mannerly.Crawl(data_dir=tmp_path / "c", delay=0.01, **options) as again:
        assert again.is_resumed
        assert again.start().wait().pending == 0
    assert set(requests_of(web).values()) == {1}


@PROCESSES
def test_add_seeds_while_it_runs(web: DemoWeb, processes: int) -> None:
    """What is added is fetched in the same run, and is delivered to the loop as well."""
    first, second = web.seeds()[:2]
    options = FAST | {"scope": "host", "processes": processes, "max_depth": 0}
    urls = []
    with mannerly.Crawl(first, **options) as crawl:
        for page in crawl:
            urls.append(page.url)
            if len(urls) == 1:
                crawl.add([second])
                eventually(lambda: crawl.explain(second).state != "unknown")

    assert urls == [first, second]


@PROCESSES
def test_seeds_that_were_added_before_the_end_are_fetched(web: DemoWeb, processes: int) -> None:
    """A crawl does not finish with an order that it has not read: add, then wait, is enough."""
    first, second = web.seeds()[:2]
    options = FAST | {"scope": "host", "processes": processes, "max_depth": 0}
    with mannerly.Crawl(first, **options) as crawl:
        crawl.start()
        crawl.add(second)
        result = crawl.wait()

    assert (result.ending, result.stats.fetched, result.pending) == (Ending.FINISHED, 2, 0)


def test_hosts_and_explain(web: DemoWeb) -> None:
    """What is known of a host and of a URL can be asked for at any time."""
    with mannerly.Crawl(web.seeds(), **FAST) as crawl:
        pages = iter(crawl)
        page = next(pages)
        assert {line.record.host for line in crawl.hosts()} <= set(web.hosts)
        assert crawl.explain(page.url).url == page.url
        with pytest.raises(mannerly.OptionError, match="sort is 'size'; allowed: queued"):
            crawl.hosts(sort="size")
        for _ in pages:
            pass
        lines = crawl.hosts(sort="fetched", limit=2)
        assert [line.record.fetched for line in lines] == [10, 10]
        host = crawl.host(page.url)
        assert host.name == web.hosts[web.seeds().index(page.url)]
        shown = host.show()
        assert shown is not None
        assert shown.record.fetched == 10
        assert crawl.host("unknown.example").show() is None


def test_a_host_is_steered(web: DemoWeb) -> None:
    """A paused host gets no request until it is resumed; a pace that is set is kept."""
    with mannerly.Crawl(web.seeds(), delay=0.2, **FAST) as crawl:
        host = crawl.host(web.hosts[0])
        host.pause()
        crawl.start()
        eventually(lambda: requests_of(web)[web.seeds()[1]])
        eventually(lambda: len(page_requests(web.log_of("plain-1"))) == 10)
        assert page_requests(web.log_of("plain-0")) == []
        host.set(delay_s=0.05)
        host.resume()
        assert crawl.wait().pending == 0
        assert len(page_requests(web.log_of("plain-0"))) == 10
        with pytest.raises(mannerly.OptionError, match="give delay_s, max_rate or per_host"):
            host.set()
        with pytest.raises(mannerly.OptionError, match="delay"):
            host.set(delay_s=-1.0)


def test_options_of_a_running_crawl_are_set(web: DemoWeb) -> None:
    """max_urls ends it where it is set to; others than the changeable ones are refused."""
    with mannerly.Crawl(web.seeds(), delay=0.1, **FAST) as crawl:
        crawl.start()
        crawl.set(max_urls=6)
        result = crawl.wait()
        assert (result.ending, result.stats.fetched) == (Ending.MAX_URLS, 6)
        with pytest.raises(mannerly.OptionError, match="scope cannot be changed; allowed"):
            crawl.set(scope="site")
        with pytest.raises(mannerly.OptionError, match="did you mean max_rate"):
            crawl.set(max_rat=3)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="is not an http or https URL"):
            crawl.add("mailto:x")


def test_every_thread_may_look_while_the_crawl_runs(web: DemoWeb) -> None:
    """Four threads ask for everything all the time; the crawl goes on, and nobody gets an error."""
    errors: list[BaseException] = []
    is_over = threading.Event()

    def look(crawl: mannerly.Crawl) -> None:
        try:
            while not is_over.is_set():
                crawl.status()
                crawl.hosts()
                crawl.explain(web.seeds()[0])
            crawl.exclude("*/nothing/*")
        except BaseException as error:  # noqa: BLE001 - it is looked at below
            errors.append(error)

    with mannerly.Crawl(web.seeds(), delay=0.05, **FAST) as crawl:
        lookers = [threading.Thread(target=look, args=(crawl,)) for _ in range(4)]
        for looker in lookers:
            looker.start()
        urls = [page.url for page in crawl]
        is_over.set()
        for looker in lookers:
            looker.join()

    assert errors == []
    assert len(urls) == 30


def test_leaving_the_block_stops_the_crawl(web: DemoWeb) -> None:
    """Also by an exception, which comes out."""

    def program() -> None:
        with mannerly.Crawl(web.seeds(), delay=5.0, **FAST) as crawl:
            crawl.start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program()

    assert not threads()


def test_a_handle_can_be_used_after_its_loop(web: DemoWeb) -> None:
    """Within the block status, pages and result are there, also of a temporary crawl."""
    with mannerly.Crawl(web.seeds(), max_urls=5, **FAST) as crawl:
        for _ in crawl:
            pass
        assert crawl.status().total["fetched"] == 5
        assert len(list(crawl.pages())) == 5


def test_wait_without_start_is_an_error(web: DemoWeb) -> None:
    """It would wait for ever."""
    with (
        mannerly.Crawl(web.seeds(), **FAST) as crawl,
        pytest.raises(RuntimeError, match=r"call start\(\) first"),
    ):
        crawl.wait()


@PROCESSES
def test_no_signal_handler_is_touched(web: DemoWeb, processes: int) -> None:
    """Before, during and after a crawl they are the program's own."""
    numbers = sorted(signal.valid_signals())
    before = [signal.getsignal(number) for number in numbers]

    for _ in mannerly.crawl(web.seeds(), processes=processes, max_urls=3, **FAST):
        assert [signal.getsignal(number) for number in numbers] == before

    assert [signal.getsignal(number) for number in numbers] == before


def test_open_tells_that_there_is_none(tmp_path: Path) -> None:
    """A path without a crawl is a StoreError."""
    with pytest.raises(mannerly.StoreError, match="no-crawl"):
        mannerly.open(tmp_path / "no-crawl")


def test_a_stored_crawl_steers_one_that_runs_elsewhere(web: DemoWeb, tmp_path: Path) -> None:
    """A second handle, as another process has it, stops the run."""
    with mannerly.Crawl(web.seeds(), data_dir=tmp_path / "c", delay=5.0, **FAST) as crawl:
        crawl.start()
        eventually(lambda: crawl.status().workers)
        with mannerly.open(tmp_path / "c") as other:
            other.stop()
            assert other.status().data_dir == str(tmp_path / "c")
        assert crawl.wait().ending is Ending.TERMINATED


def test_data_dir_is_meant_from_where_the_crawl_was_made(
    web: DemoWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may change its working directory in the loop."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with mannerly.Crawl(web.seeds(), data_dir="crawl", max_urls=5, **FAST) as crawl:
        for _ in crawl:
            monkeypatch.chdir(tmp_path / "elsewhere")
        assert crawl.status().total["fetched"] == 5

    assert (tmp_path / "crawl" / "crawl.json").exists()
    assert not list((tmp_path / "elsewhere").iterdir())
