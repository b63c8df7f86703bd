"""Processes that share hosts, die and hand over at random: nobody ever sends too early.

The file and the memory in this process are asked the same; they give the same answers. Often one
process is alone, so that its part in the file is a journal: the answers must not show it.
"""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from mannerly.crawler.model import Now
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import (
    Granted,
    Holder,
    HolderLost,
    HostBudget,
    HostMemory,
    LeaseTimes,
)

TIMES = LeaseTimes()
HOSTS = ("a.example", "b.example")
NAMES = count()


class Process:
    """A sender that keeps the rules of the contract."""

    def __init__(self, holder: Holder, gap_s: float, now: float) -> None:
        self.holder, self.gap_s = holder, gap_s
        self.beat_at = now
        self.next_at: dict[str, float] = {}  # of the hosts that it holds
        self.sent_at: dict[str, float] = {}

    def may_send(self, host: str, now: float) -> bool:
        is_heard = now < self.beat_at + TIMES.silent_s
        return is_heard and host in self.next_at and now >= self.next_at[host]

    def budget(self, host: str, now: float) -> HostBudget:
        sent_at = self.sent_at.get(host)
        return HostBudget(
            host,
            gap_s=self.gap_s,
            sent_s_ago=None if sent_at is None else now - sent_at,
            next_in_s=max(0.0, self.next_at[host] - now),
        )


class SharedHosts(RuleBasedStateMachine):
    processes = Bundle("processes")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="mannerly-test-")
        path = Path(self.folder.name) / "hosts.sqlite"
        self.memories: tuple[HostMemory, ...] = (
            open_host_memory(f"memory:model-{next(NAMES)}"),
            open_host_memory(path, boot="one"),
        )
        self.mono, self.wall = 1000.0, 1_750_000_000.0
        self.living: list[Process] = []
        self.not_before: dict[str, float] = {}  # as the servers see it

    @property
    def now(self) -> Now:
        return Now(self.mono, self.wall)

    @rule(target=processes, crawl=st.sampled_from("xyz"), gap_s=st.sampled_from((0.5, 4.0, 40.0)))
    def start(self, crawl: str, gap_s: float) -> Process:
        """A crawl has one process for each host: the earlier one of it has ended."""
        for earlier in [each for each in self.living if each.holder.crawl == crawl]:
            self.living.remove(earlier)
        number = next(NAMES)
        process = Process(Holder(f"id-{number}", crawl, crawl, str(number)), gap_s, self.mono)
        for memory in self.memories:
            memory.join(process.holder, self.now)
        self.living.append(process)
        return process

    @rule(
        process=processes,
        hosts=st.sets(st.sampled_from(HOSTS), min_size=1),
        stopped_s=st.sampled_from((0.0, 0.0, 0.0, 2.0, 16.0)),
    )
    def claim(self, process: Process, hosts: set[str], stopped_s: float) -> None:
        """It may have been stopped after it read its clock."""
        if process not in self.living:
            return
        now = Now(self.mono - stopped_s, self.wall - stopped_s)
        asked = dict.fromkeys(sorted(hosts), process.gap_s)
        answers = []
        for memory in self.memories:
            try:
                answers.append(memory.claim(process.holder.id, asked, now))
            except HolderLost:
                answers.append({})
        assert answers[0] == answers[1]
        if not answers[0]:
            self.lose(process)
        for host, answer in answers[0].items():
            if isinstance(answer, Granted) and host not in process.next_at:
                next_in_s = 0.0 if answer.budget is None else answer.budget.next_in_s
                process.next_at[host] = self.mono + next_in_s

    @rule(process=processes, host=st.sampled_from(HOSTS), pause_s=st.sampled_from((0, 0, 30, 600)))
    def send(self, process: Process, host: str, pause_s: int) -> None:
        """An answer may ask for a pause, which is written before anything else happens."""
        if process not in self.living or not process.may_send(host, self.mono):
            return
        assert self.mono >= self.not_before.get(host, 0.0) - 1e-6
        process.sent_at[host] = self.mono
        process.next_at[host] = self.mono + max(process.gap_s, pause_s)
        self.not_before[host] = self.mono + max(process.gap_s, pause_s)
        if pause_s:
            for memory in self.memories:
                budget = process.budget(host, self.mono)
                memory.write(process.holder.id, [budget], self.now)

    @rule(process=processes)
    def renew(self, process: Process) -> None:
        if process not in self.living:
            return
        budgets = [process.budget(host, self.mono) for host in process.next_at]
        lost = []
        for memory in self.memories:
            try:
                memory.renew(process.holder.id, budgets, self.now)
                lost.append(False)
            except HolderLost:
                lost.append(True)
        assert lost[0] == lost[1]
        if lost[0]:
            self.lose(process)
        else:
            process.beat_at = self.mono

    @rule(process=processes)
    def hand_over(self, process: Process) -> None:
        if process not in self.living:
            return
        wanted = [memory.wanted(process.holder.id, self.now) for memory in self.memories]
        assert wanted[0] == wanted[1]
        for host in wanted[0].keys() & process.next_at.keys():
            budget = process.budget(host, self.mono)
            for memory in self.memories:
                memory.release(process.holder.id, [budget], self.now)
            del process.next_at[host]

    @rule(process=consumes(processes), is_clean=st.booleans())
    def end(self, process: Process, is_clean: bool) -> None:
        if process not in self.living:
            return
        self.living.remove(process)
        if is_clean:
            budgets = [process.budget(host, self.mono) for host in process.next_at]
            for memory in self.memories:
                memory.leave(process.holder.id, budgets, self.now)

    @rule(seconds=st.sampled_from((0.25, 1.0, 3.0, 8.0, 20.0)), step_s=st.sampled_from((0, 9e4)))
    def wait(self, seconds: float, step_s: float) -> None:
        """Time passes; a wall clock that steps changes nothing."""
        self.mono += seconds
        self.wall += seconds + step_s

    @rule(crawl=st.sampled_from(("", "x")))
    def look(self, crawl: str) -> None:
        """A command reads what is known and who sends."""
        known, users = (
            [memory.budgets(HOSTS, self.now) for memory in self.memories],
            [memory.in_use(HOSTS, self.now, besides=crawl) for memory in self.memories],
        )
        assert known[0].keys() == known[1].keys()
        for host, budget in known[0].items():
            assert budget.next_in_s == pytest.approx(known[1][host].next_in_s)
            assert budget.gap_s == known[1][host].gap_s
        assert users[0] == users[1]

    def lose(self, process: Process) -> None:
        """It has been told that it is dead: it ends, and another one may start."""
        self.living.remove(process)

    @invariant()
    def one_sender_a_host(self) -> None:
        for host in HOSTS:
            heard = [
                each
                for each in self.living
                if host in each.next_at and self.mono < each.beat_at + TIMES.silent_s
            ]
            assert len(heard) <= 1

    def teardown(self) -> None:
        for memory in self.memories:
            memory.close()
        self.folder.cleanup()


TestSharedHosts = SharedHosts.TestCase
TestSharedHosts.settings = settings(max_examples=40, stateful_step_count=30)
