"""`pause`, `unpause` and `stop`: from another terminal, on a running crawl and on a stopped one."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.control.steering import DIR, Shell, both, until_requests, window
from tests.crawler.runtime.harness import page_requests, real_pages, url_of
from tests.harness.waiting import eventually

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.control.steering import Said

    from mannerly.demo import Record

pytestmark = pytest.mark.processes

OPTIONS = ("--data-dir", DIR, "--strategy", "fixed", "--max-rate", "unlimited")
PACE = ("--delay", "0.1", "--log-interval", "0.2")
SOON_S = 1.0  # within which an order is obeyed; five times as long on a busy machine
BOTH = pytest.mark.parametrize("processes", [1, 2])


@dataclass
class Halted:
    """What was said and what the servers saw."""

    paused: Said
    while_paused: dict[str, list[Record]]
    status: Said
    facts: dict[str, Any]
    interrupted: Said
    paused_while_stopped: Said | None
    resumed_text: str
    while_resumed: dict[str, list[Record]]
    unpaused: Said
    unpaused_again: Said
    first_after: float
    stop: Said
    stopped: Said
    stop_again: Said
    last: Said
    requested: list[str]
    wanted: list[str]


def tell(processes: int, directory: Path) -> Halted:
    """Pause, Ctrl-C, resume, unpause, stop, resume.

    With one process the crawl is interrupted while it is paused; with two it is unpaused first and
    paused again while it does not run.
    """
    shell = Shell(directory)
    with DemoWeb(plain_sites(4, pages=60)) as web:
        words = ("crawl", *web.seeds(), *OPTIONS, *PACE, "--seeding-strategy", "none")
        with shell.start(*words, "--processes", processes) as run:
            until_requests(web, 8)
            paused = shell.say("pause", DIR)
            eventually(lambda: "Z Paused pages=" in run.text)
            while_paused = window(web, time.monotonic(), 1.0)
            status = shell.say("status", DIR)
            facts = json.loads(shell.say("status", DIR, "--json").out)
            if processes == 2:
                shell.say("unpause", DIR)
                until_requests(web, 8)
            run.interrupt()
            interrupted = run.end()
        paused_while_stopped = shell.say("pause", DIR) if processes == 2 else None
        with shell.start("resume", DIR, *PACE) as run:
            eventually(lambda: "Z Paused pages=" in run.text)
            started = shell.say("status", DIR)
            while_resumed = window(web, started.at - 1.0, 0.5)
            resumed_text = run.text
            before = len(web.log())
            unpaused = shell.say("unpause", DIR)
            eventually(lambda: len(web.log()) > before)
            first_after = web.log()[before].t - unpaused.at
            unpaused_again = shell.say("unpause", DIR)
            stop = shell.say("stop", DIR, "--wait")
            stop_again = shell.say("stop", DIR)
            stopped = run.end()
        with shell.start("resume", DIR, "--delay", "0.01") as run:
            last = run.end()
        requested = [url_of(record) for record in page_requests(web.log())]
        wanted = list(real_pages(web))
    return Halted(
        paused,
        while_paused,
        status,
        facts,
        interrupted,
        paused_while_stopped,
        resumed_text,
        while_resumed,
        unpaused,
        unpaused_again,
        first_after,
        stop,
        stopped,
        stop_again,
        last,
        requested,
        wanted,
    )


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, troubles: object) -> dict[int, Halted]:
    del troubles  # it has begun, and goes on beside this
    return both(tell, tmp_path_factory.mktemp("halting"))


@BOTH
def test_no_request_a_second_after_pause(stories: dict[int, Halted], processes: int) -> None:
    """By the log of the servers, from a second after the crawl has said that it is paused."""
    story = stories[processes]
    assert (story.paused.code, story.paused.out) == (0, "")
    assert story.paused.err == f"Paused {DIR}. To continue: mannerly unpause {DIR}\n"
    assert not any(story.while_paused.values())


@BOTH
def test_status_says_paused(stories: dict[int, Halted], processes: int) -> None:
    """The state, and each worker; the text also says how to go on."""
    story = stories[processes]
    who = "pid " if processes == 1 else f"{processes} workers"
    assert f"{DIR}: paused ({who}" in story.status.out
    assert f"(to continue: mannerly unpause {DIR})" in story.status.out
    assert story.facts["state"] == "paused"
    assert [heartbeat["waits_for"] for heartbeat in story.facts["workers"]] == [
        "paused"
    ] * processes


@BOTH
def test_crawl_that_was_paused_is_resumed_paused_and_says_so(
    stories: dict[int, Halted], processes: int
) -> None:
    """Whether it was paused while it ran or while it did not; the terminal says how to go on."""
    story = stories[processes]
    assert story.interrupted.code == 130
    if story.paused_while_stopped is not None:
        assert "(takes effect when the crawl is resumed)" in story.paused_while_stopped.err
    assert f"This crawl is paused. To continue: mannerly unpause {DIR}" in story.resumed_text
    assert "Z Paused pages=" in story.resumed_text
    assert not any(story.while_resumed.values())


@BOTH
def test_unpaused_crawl_goes_on(stories: dict[int, Halted], processes: int) -> None:
    """Soon; once more is said, but changes nothing."""
    story = stories[processes]
    assert (story.unpaused.code, story.unpaused.err) == (0, f"Continued {DIR}\n")
    assert story.first_after < 5 * SOON_S
    assert (story.unpaused_again.code, story.unpaused_again.err) == (0, f"{DIR} is not paused\n")


@BOTH
def test_stop_ends_the_run_as_sigterm_does(stories: dict[int, Halted], processes: int) -> None:
    """Exit 143, and it can be resumed: an old stop does not end the next run."""
    story = stories[processes]
    assert story.stop.err == f"Stopping {DIR}. To resume it: mannerly resume {DIR}\n"
    assert story.stopped.code == 143
    assert f"  mannerly resume {DIR}\n" in story.stopped.err
    assert story.last.code == 0
    assert "Finished" in story.last.err
    assert "requests kept each host's gap" in story.last.err
    assert sorted(story.requested) == sorted(story.wanted)


@BOTH
def test_stopping_a_crawl_that_does_not_run_is_an_error(
    stories: dict[int, Halted], processes: int
) -> None:
    """A clear sentence, exit 2."""
    story = stories[processes]
    assert story.stop_again.code == 2
    assert story.stop_again.err == f"mannerly: the crawl in {DIR} is not running\n"
