"""Programs with a client of their own share hosts with each other, by one argument."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.waiting import eventually

from mannerly.database.errors import StoreAway, StoreError
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import Holder, LeaseTimes
from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.errors import HostUnavailable, PolitenessError
from mannerly.politeness.model import Now, Reason, Wait
from mannerly.politeness.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

URL = "http://a.example/"
TIMES = LeaseTimes(lease_s=2.0, heartbeat_s=0.5, silent_s=1.4, grace_s=0.4, turn_s=0.8, round_s=2.4)
GAP_S = 0.1
PACE = Settings(strategy="fixed", delay_s=GAP_S, max_rate="unlimited", seed=1)

HOLDER = """
import sys, time
from mannerly.politeness import Settings
from mannerly.politeness.drivers.threads import ThreadedPoliteness
politeness = ThreadedPoliteness(Settings(strategy="fixed", delay_s=0.1), memory=sys.argv[1])
while True:
    with politeness.slot("http://a.example/") as slot:
        slot.sent()
        print(time.monotonic(), flush=True)
        slot.report(status=200)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file of hosts with short leases."""
    path = tmp_path / "hosts.sqlite"
    open_host_memory(path, times=TIMES).close()
    return path


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as started:
        yield started


def known_of(place: Path) -> object:
    memory = open_host_memory(place)
    try:
        return memory.budgets(["a.example"], now()).get("a.example")
    finally:
        memory.close()


def now() -> Now:
    return Now(time.monotonic(), time.time())


def test_drivers_of_both_kinds_take_turns_and_keep_one_gap(place: Path) -> None:
    """A program of threads and one of asyncio send in turns, never closer than the gap."""
    log: list[tuple[float, str]] = []
    end = time.monotonic() + 5.0

    def send() -> None:
        with ThreadedPoliteness(PACE, memory=place) as politeness:
            while time.monotonic() < end:
                with politeness.slot(URL) as slot:
                    slot.sent()
                    log.append((time.monotonic(), "threads"))
                    slot.report(status=200)

    async def send_too() -> None:
        async with AsyncPoliteness(PACE, memory=place) as politeness:
            while time.monotonic() < end:
                async with politeness.slot(URL) as slot:
                    slot.sent()
                    log.append((time.monotonic(), "asyncio"))
                    slot.report(status=200)

    thread = threading.Thread(target=send)
    thread.start()
    asyncio.run(send_too())
    thread.join()

    senders = [name for _, name in sorted(log)]
    assert {"threads", "asyncio"} == set(senders)
    assert sum(one != other for one, other in pairwise(senders)) >= 2
    times = sorted(at for at, _ in log)
    assert min(after - before for before, after in pairwise(times)) >= 0.9 * GAP_S


def test_hosts_of_a_killed_program_are_free_after_its_lease(place: Path) -> None:
    """`kill -9` of a holder: the next one sends when the lease is over, with the gap kept."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, place], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with ThreadedPoliteness(PACE, memory=place) as politeness:
        with pytest.raises(TimeoutError, match="in use by"), politeness.slot(URL, deadline_s=0.3):
            pass

        process.send_signal(signal.SIGKILL)
        last_at = float(process.communicate()[0].split()[-1])
        with politeness.slot(URL, deadline_s=60.0) as slot:
            slot.sent()
            sent_at = time.monotonic()
            slot.report(status=200)

    assert sent_at - last_at >= GAP_S
    assert process.returncode == -signal.SIGKILL


def test_a_pause_and_what_was_learned_outlive_the_program(place: Path) -> None:
    """The next program waits for the Retry-After of the one before, and begins at its pace."""
    with ThreadedPoliteness(Settings(seed=1), memory=place) as politeness:
        for status in (200, 200, 200, 429):
            with politeness.slot(URL) as slot:
                headers = {"retry-after": "50"} if status == 429 else {}
                slot.report(status=status, headers=headers)
    stored = known_of(place)

    with ThreadedPoliteness(Settings(seed=1), memory=place) as politeness:
        with pytest.raises(TimeoutError), politeness.slot(URL, deadline_s=1.5):
            pass
        ready_in_s = politeness.ready_at(URL) - time.monotonic()

    assert stored.lesson is not None
    assert 30.0 < ready_in_s < 60.0


def test_a_host_is_not_asked_before_its_lease_is_there(place: Path) -> None:
    """A program that holds one host knows nothing of the holder of another one yet."""
    other = "http://b.example/"
    with (
        ThreadedPoliteness(PACE, memory=place) as first,
        ThreadedPoliteness(PACE, memory=place) as second,
    ):
        with first.slot(URL) as slot:
            slot.report(status=200)
        with second.slot(other) as slot:
            slot.report(status=200)

        decision = first.try_slot(other)

    assert isinstance(decision, Wait)
    assert decision.reason is Reason.SHARED


def test_a_pause_is_written_before_the_program_can_die(tmp_path: Path) -> None:
    """A 429 with Retry-After is in the memory at once, not with the next sign of life."""
    place = tmp_path / "hosts.sqlite"
    rarely = LeaseTimes(lease_s=3600.0, heartbeat_s=1200.0, silent_s=3000.0)
    open_host_memory(place, times=rarely).close()
    with ThreadedPoliteness(PACE, memory=place) as politeness:
        with politeness.slot(URL) as slot:
            slot.report(status=429, headers={"retry-after": "50"})

        eventually(
            lambda: (known := known_of(place)) is not None and known.next_in_s > 30.0, within_s=20
        )


def test_a_program_that_was_stopped_sends_nothing_when_it_wakes(place: Path) -> None:
    """Between its slot and its bytes a process may lose the lease: the slot says so."""
    clock = FakeClock()
    with ThreadedPoliteness(PACE, memory=place, clock=clock) as politeness:
        with politeness.slot(URL) as slot:
            slot.report(status=200)
        clock.advance(GAP_S)
        slot = politeness.try_slot(URL)
        clock.advance(60.0)

        with pytest.raises(HostUnavailable) as raised, slot:
            slot.sent()

    assert raised.value.reason is Reason.SHARED
    assert politeness.snapshot().requests == 1  # it never left, so it costs no gap


def test_nothing_is_sent_while_the_server_is_away(server: LocalServer) -> None:
    """Callers wait, and are told why; when the server is back they go on."""
    with ThreadedPoliteness(PACE, memory=server.url) as politeness:
        with politeness.slot(URL) as slot:
            slot.report(status=200)
        server.kill()
        eventually(lambda: politeness.memory_error is not None, within_s=60)

        with (
            pytest.raises(TimeoutError, match="cannot be reached"),
            politeness.slot(URL, deadline_s=0.1),
        ):
            pass
        server.start()

        with politeness.slot(URL, deadline_s=60.0) as slot:
            slot.report(status=200)
        assert politeness.snapshot().requests == 2


def test_hosts_are_given_back_at_the_end(place: Path) -> None:
    """After `close`, also without one at the end of the process, another may send at once."""
    script = HOLDER.replace("while True", "for _ in range(2)")
    subprocess.run([sys.executable, "-c", script, place], check=True, capture_output=True)

    memory = open_host_memory(place)
    memory.join(Holder("x", "x", "x", "x"), now())
    holders = memory.in_use(["a.example"], now())
    memory.close()

    assert holders == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_child_cannot_send_with_the_leases_of_its_parent(place: Path) -> None:
    """It gets an error that says what to do."""
    script = f"""
import os
from mannerly.politeness.drivers.threads import ThreadedPoliteness
politeness = ThreadedPoliteness(memory={str(place)!r})
with politeness.slot("http://a.example/") as slot:
    slot.report(status=200)
if os.fork() == 0:
    try:
        politeness.try_slot("http://a.example/")
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert "PolitenessError" in done.stdout
    assert "after the fork" in done.stdout


def test_a_place_that_cannot_be_used_is_an_error_at_once(tmp_path: Path) -> None:
    """A wrong path, a server that is not there and a user without a file are told apart."""
    (tmp_path / "text").write_text("no database")

    with pytest.raises(StoreError, match=r"text.*memory=PATH in a program"):
        ThreadedPoliteness(memory=tmp_path / "text")
    with pytest.raises(StoreError, match=r'"none" is no place.*leave memory= out'):
        ThreadedPoliteness(memory="none")
    with pytest.raises(StoreAway, match="cannot be reached"):
        ThreadedPoliteness(memory="redis://127.0.0.1:1")


def test_user_is_the_file_that_crawls_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`memory="user"` is the file of the user, or what MANNERLY_MEMORY says."""
    monkeypatch.delenv("MANNERLY_MEMORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ThreadedPoliteness(memory="user").close()
    monkeypatch.setenv("MANNERLY_MEMORY", "none")

    with pytest.raises(StoreError, match="MANNERLY_MEMORY is none"):
        ThreadedPoliteness(memory="user")
    (tmp_path / "text").write_text("no directory")
    monkeypatch.delenv("MANNERLY_MEMORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "text"))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(StoreError, match="no directory in which this user can write"):
        ThreadedPoliteness(memory="user")

    assert (tmp_path / "mannerly" / "hosts.sqlite").exists()


def test_a_driver_that_is_closed_refuses_callers(place: Path) -> None:
    """As one without a shared memory; its thread is gone."""
    politeness = ThreadedPoliteness(PACE, memory=place)
    with politeness.slot(URL) as slot:
        slot.report(status=200)
    politeness.close()

    with pytest.raises(PolitenessError, match="closed"):
        politeness.try_slot(URL)
    assert "mannerly-hosts" not in {each.name for each in threading.enumerate()}
