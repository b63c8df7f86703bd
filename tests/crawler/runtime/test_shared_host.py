"""Crawls in processes of their own, on one host: the server's log has one pace, all get pages."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import Crawler, kept, modest
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.host_view import HostStatus
from mannerly.crawler.store.base import StoreError
from mannerly.demo import DemoWeb, by_host, plain_sites, smallest_gap_s
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import LeaseTimes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

NOTED_LATE_S = 0.06  # by a server on a busy machine
# Stops the process the third time that it comes to this method, which is given the time.
STOPS_ITSELF = """
import os, signal
from mannerly.{module} import {name}
original, calls = {name}.{method}, []
def stopped(*arguments):
    calls.append(None)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    return original(*arguments)
{name}.{method} = stopped
"""
GAP_S = 0.4
BRIEF = LeaseTimes(lease_s=3.0, heartbeat_s=0.5, silent_s=2.0, grace_s=2.0, turn_s=1.5, round_s=6.0)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A memory of hosts with short leases and turns."""
    path = tmp_path / "hosts.sqlite"
    open_host_memory(path, times=BRIEF).close()
    return path


def test_two_crawls_on_one_host_send_as_one(tmp_path: Path, memory: Path) -> None:
    settings = modest(delay_s=GAP_S, duration_s=9.0, memory=str(memory))
    with DemoWeb(plain_sites(1, pages=200)) as web:
        seeds = web.seeds()
        with (
            Crawler(settings, seeds, tmp_path / "one") as one,
            Crawler(settings, seeds, tmp_path / "two") as two,
        ):
            eventually(lambda: shared(tmp_path / "one") | shared(tmp_path / "two"))
            endings = {one.left().ending, two.left().ending}
        (log,) = by_host(web.log()).values()

    pages = [len(kept(tmp_path / name).pages) for name in ("one", "two")]
    assert endings == {"duration"}
    assert smallest_gap_s(log) >= GAP_S - NOTED_LATE_S
    assert min(pages) >= 2, pages
    assert sum(pages) >= 8, pages


def shared(data_dir: Path) -> set[str]:
    """Return the crawls that hold a host of another one, as `mannerly hosts` shows it."""
    try:
        with mannerly.open(data_dir) as crawl:
            hosts = crawl.hosts()
    except StoreError:  # it has not begun
        return set()
    return {host.held_by for host in hosts if host.state is HostStatus.SHARED}


def test_the_other_goes_on_after_kill_9(tmp_path: Path, memory: Path) -> None:
    settings = modest(delay_s=GAP_S, memory=str(memory))
    with DemoWeb(plain_sites(1, pages=200)) as web:
        seeds = web.seeds()
        with Crawler(settings, seeds, tmp_path / "one") as one:
            eventually(lambda: len(web.log()) >= 3)
            with Crawler(settings, seeds, tmp_path / "two") as two:
                time.sleep(0.5)
                one.kill()
                before = len(web.log())
                eventually(lambda: len(web.log()) >= before + 4, within_s=30.0)
                two.kill()
        (log,) = by_host(web.log()).values()

    assert smallest_gap_s(log) >= GAP_S - NOTED_LATE_S


def sent_by(web: DemoWeb, name: str) -> int:
    """Return how many requests a crawl has sent."""
    return sum(record.user_agent.startswith(name) for record in web.log())


def test_a_crawl_that_was_stopped_while_it_asked_for_a_host_takes_it_from_nobody(
    tmp_path: Path, memory: Path
) -> None:
    """It has read its clock before the holder's next sign of life, and asks after it."""
    stops = STOPS_ITSELF.format(module="hosts.file", name="HostFile", method="claim")
    one, two = (
        modest(delay_s=GAP_S, memory=str(memory), user_agent=name) for name in ("one", "two")
    )
    with DemoWeb(plain_sites(1, pages=200)) as web:
        seeds = web.seeds()
        with Crawler(one, seeds, tmp_path / "one") as first:
            eventually(lambda: sent_by(web, "one") >= 2)
            with Crawler(two, seeds, tmp_path / "two", before=stops) as second:
                eventually(lambda: second.is_stopped)
                before = sent_by(web, "one")
                eventually(lambda: sent_by(web, "one") >= before + 3)
                second.tell(signal.SIGCONT)
                eventually(lambda: sent_by(web, "two") >= 2)
                first.kill()
        (log,) = by_host(web.log()).values()

    assert smallest_gap_s(log) >= GAP_S - NOTED_LATE_S


def test_a_holder_that_was_stopped_when_its_request_was_about_to_leave_does_not_send_it(
    tmp_path: Path, memory: Path
) -> None:
    """Another crawl has taken the host over: the request is judged when its bytes leave."""
    stops = STOPS_ITSELF.format(module="crawler.fetch.curl", name="CurlFetcher", method="_leaves")
    one, two = (
        modest(delay_s=GAP_S, memory=str(memory), user_agent=name) for name in ("one", "two")
    )
    with DemoWeb(plain_sites(1, pages=200)) as web:
        seeds = web.seeds()
        with Crawler(one, seeds, tmp_path / "one", before=stops) as first:
            eventually(lambda: first.is_stopped)
            with Crawler(two, seeds, tmp_path / "two"):
                eventually(lambda: sent_by(web, "two") >= 3)
                first.tell(signal.SIGCONT)
                eventually(lambda: sent_by(web, "one") >= 4)
        (log,) = by_host(web.log()).values()

    assert smallest_gap_s(log) >= GAP_S - NOTED_LATE_S


def test_a_killed_crawl_is_resumed_at_once(tmp_path: Path) -> None:
    """Its own lease does not keep it waiting, although it would last for ten minutes more."""
    memory = tmp_path / "hosts.sqlite"
    open_host_memory(memory, times=LeaseTimes(lease_s=600.0, silent_s=500.0)).close()
    settings = modest(delay_s=0.1, memory=str(memory))
    with DemoWeb(plain_sites(1, pages=20)) as web:
        with Crawler(settings, web.seeds(), tmp_path / "one") as one:
            eventually(lambda: len(web.log()) >= 3)
            one.kill()
        with Crawler(settings, web.seeds(), tmp_path / "one") as again:
            ending = again.left().ending

    assert ending == "finished"
