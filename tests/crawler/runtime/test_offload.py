"""Parse helpers: long work is done in other processes, and comes back with its tag."""

from __future__ import annotations

import errno
import os
import re
import select
import subprocess
import sys
import threading
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.waiting import eventually

from mannerly.crawler.page.html import parse_page
from mannerly.crawler.page.parsed import HELPER_DIED, LACKED_MEMORY, ParsedPage, ParseFailed
from mannerly.crawler.runtime.helpers import SILENT_S, STARTING_S, STARTS, Role
from mannerly.crawler.runtime.offload import Offload

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.processes


@pytest.fixture
def offload() -> Iterator[Offload[str]]:
    """One helper, closed in the end."""
    offload: Offload[str] = Offload(1)
    yield offload
    offload.close()


def collected(offload: Offload[str], count: int) -> dict[str, object]:
    """Wait on the descriptor until so many results are there."""
    results: dict[str, object] = {}
    while len(results) < count:
        assert select.select([offload.descriptor], [], [], 30.0)[0], "no result in 30 s"
        results.update(offload.collect())
    return results


def test_results_come_back_with_their_tags(offload: Offload[str]) -> None:
    """Whatever order the processes finish in, each page is found under its own tag."""
    for name in ("a", "b", "c"):
        body = f"<title>{name}</title><a href=/{name}>".encode()
        offload.give(name, partial(parse_page, body, "text/html", "http://e/"))
    results = collected(offload, 3)

    assert offload.pending == 0
    assert {
        name: (page.title, page.links)
        for name, page in results.items()
        if isinstance(page, ParsedPage)
    } == {name: (name, [f"/{name}"]) for name in ("a", "b", "c")}


def test_work_and_results_may_be_larger_than_any_buffer(offload: Offload[str]) -> None:
    """Ten megabytes there and twenty back, while the loop waits for neither."""
    began = time.monotonic()
    offload.give("big", partial(bytes.replace, b"x" * 10_000_000, b"x", b"yz"))
    given_s = time.monotonic() - began

    assert collected(offload, 1) == {"big": b"yz" * 10_000_000}
    assert given_s < 5.0


def test_a_helper_that_does_not_start_is_named() -> None:
    """As soon as one that works on a page for too long, and with the time it is given."""
    slow = Role("extract helper", 1, None, 1.0, prepare=partial(time.sleep, 600), is_users=True)
    offload: Offload[str] = Offload(1, code=slow)
    offload.run("page", partial(int, 1), 1, "http://a.example/")

    eventually(lambda: offload.trouble(time.monotonic() + SILENT_S))
    soon = offload.trouble(time.monotonic() - SILENT_S)
    later = offload.trouble(time.monotonic() + SILENT_S) or ""
    offload.close()

    assert soon is None
    assert re.fullmatch(
        rf"extract helper \d+ has been starting for \d+ s; after {STARTING_S:.0f} s it is replaced",
        later,
    )


def test_work_that_fails_comes_back_as_a_failure(offload: Offload[str]) -> None:
    """An exception over there, or a value that cannot be sent, costs that piece and no other."""
    offload.give("bad", partial(int, "no number"))
    offload.give("unpicklable", lambda: 7)
    offload.give("one way", threading.Lock)
    offload.give("good", partial(int, "7"))
    results = collected(offload, 4)

    assert results["bad"] == ParseFailed("ValueError")
    assert isinstance(results["unpicklable"], ParseFailed)
    assert results["one way"] == ParseFailed("TypeError")
    assert results["good"] == 7


def test_work_is_done_again_when_its_helper_dies(
    offload: Offload[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first death costs nothing but time."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    die_first = import_module("child_tasks").die_first

    offload.give("again", partial(die_first, tmp_path / "once"))
    offload.give("other", partial(int, "7"))

    assert collected(offload, 2) == {"again": "survived", "other": 7}


def test_work_that_kills_two_helpers_is_a_failure(offload: Offload[str]) -> None:
    """It is not tried a third time, and the next piece finds a new helper."""
    offload.give("deadly", partial(os._exit, 9))
    offload.give("other", partial(int, "7"))

    assert collected(offload, 2) == {"deadly": HELPER_DIED, "other": 7}


@pytest.mark.parametrize(("deaths", "expected"), [(STARTS - 1, 7), (99, LACKED_MEMORY)])
def test_helpers_that_die_while_they_start_do_not_count_against_their_work(
    deaths: int, expected: object, offload: Offload[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work was not read yet. But helpers that never start end in a failure, not in a circle."""
    start, started = subprocess.Popen, []

    def start_and_kill(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = start(*arguments, **options)
        started.append(process)
        if len(started) <= deaths:
            process.kill()
        return process

    monkeypatch.setattr("subprocess.Popen", start_and_kill)

    offload.give("work", partial(int, "7"))

    assert collected(offload, 1) == {"work": expected}
    assert len(started) == min(deaths, STARTS) + 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_the_memory_of_a_helper_is_limited() -> None:
    """A page that needs more fails alone; it is no failure of the parser, so it is tried twice."""
    offload: Offload[str] = Offload(1, max_bytes=1024)

    offload.give("huge", partial(bytearray, 1 << 30))
    offload.give("other", partial(len, b"x" * 10_000_000))
    results = collected(offload, 2)
    offload.close()

    assert results == {"huge": LACKED_MEMORY, "other": 10_000_000}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_page_of_nul_bytes_is_read_within_the_memory_of_a_helper() -> None:
    """Ten megabytes of them, ten kilobytes when compressed, took half a gigabyte."""
    body = b"<title>t</title><a href=/x>" + bytes(10_000_000)
    offload: Offload[str] = Offload(1, max_bytes=len(body))

    offload.give("nul", partial(parse_page, body, "text/html", "http://e/"))
    page = collected(offload, 1)["nul"]
    offload.close()

    assert isinstance(page, ParsedPage)
    assert (page.title, page.links) == ("t", ["/x"])


def test_no_more_helpers_than_allowed(tmp_path: Path) -> None:
    """Ten pieces of work, and at most two processes for them."""
    offload: Offload[str] = Offload(2)

    for number in range(10):
        offload.give(str(number), os.getpid)
    pids = set(collected(offload, 10).values())
    offload.close()

    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids


def test_an_idle_helper_gives_its_memory_back() -> None:
    """After a while without work it ends, and the next piece starts another."""
    offload: Offload[str] = Offload(1, idle_s=0.1)

    offload.give("first", os.getpid)
    first = collected(offload, 1)["first"]
    eventually(lambda: not Path(f"/proc/{first}").exists(), within_s=10.0)
    offload.give("second", os.getpid)
    second = collected(offload, 1)["second"]
    offload.close()

    assert first != second


def test_closing_drops_what_is_under_way() -> None:
    """Neither a thread nor a process is left behind, however long the work would take."""
    before = threading.active_count()
    offload: Offload[str] = Offload(2)
    offload.give("pid", os.getpid)
    pid = collected(offload, 1)["pid"]
    offload.give("long", partial(time.sleep, 600.0))
    offload.give("long too", partial(time.sleep, 600.0))

    began = time.monotonic()
    offload.close()
    offload.close()

    assert time.monotonic() - began < 5.0
    assert threading.active_count() == before
    assert not Path(f"/proc/{pid}").exists()


def test_work_is_done_here_when_no_process_can_be_started(
    offload: Offload[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without descriptors or memory loses no page."""
    monkeypatch.setattr("subprocess.Popen", _no_process)

    offload.give("pid", os.getpid)

    assert collected(offload, 1) == {"pid": os.getpid()}


def _no_process(*_arguments: object, **_options: object) -> None:
    raise OSError(errno.EMFILE, "too many open files")
