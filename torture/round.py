"""One round: a random web, a random command, a plan of faults; in the end it is judged."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from mannerly.demo import DemoWeb

from .command import Command, ask, status
from .judge import Case, Violation, judge
from .metronome import NAME, Metronome
from .nemesis import CODES, Act, Nemesis, plan
from .web import random_sites

if TYPE_CHECKING:
    from pathlib import Path

    from .nemesis import Step

GAP_S = 0.5
MEMORY_BYTES = 450 * 1000 * 1000
SILENCE_S = 30.0
DRAIN_S = 30.0  # of a first signal: the grace, a commit, five times the room
AT_ONCE_S = 10.0  # of a second signal, with room for a busy machine
ROUND_S = 420.0  # to the end of a round, at most


@dataclass
class Report:
    """What a round brought."""

    seed: str
    words: list[str]
    acts: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    requests: int = 0
    pages: int = 0
    runs: int = 0
    peak_bytes: int = 0
    longest_silence_s: float = 0.0
    seconds: float = 0.0


class Round:
    """Runs one round in a directory of its own."""

    def __init__(self, seed: str, directory: Path) -> None:
        self.rng = Random(seed)
        self.directory = directory
        self.data_dir = directory / "crawl"
        self.export = directory / "pages.jsonl"
        self.log = directory / "output.txt"
        self.processes = self.rng.choice((1, 2))
        self.workers = self.rng.choice((8, 16, 32))
        self.report = Report(seed, [])
        self._last_request_at = 0.0
        self._requests = 0

    def run(self) -> Report:
        """Run to the end; return what was seen."""
        report = self.report
        started = time.monotonic()
        self.directory.mkdir(parents=True)
        number = self.rng.randint(0, 200)
        light, heavy = random_sites(self.rng)
        with (
            DemoWeb(light, first_address=f"127.10.{number}.2") as web,
            DemoWeb(heavy, first_address=f"127.11.{number}.2") as bulky,
        ):
            report.words = self._words(web, bulky)
            nemesis = Nemesis(self.data_dir, [host for host in web.hosts if _is_real(web, host)])
            with Metronome(web) as beat, Metronome(bulky) as slow_beat:
                code = self._torment(web, nemesis, plan(self.rng, self.rng.randint(3, 8)))
            report.acts = [f"{deed.act.value} {deed.detail}".strip() for deed in nemesis.deeds]
            report.violations += [Violation("P6", text) for text in nemesis.complaints]
            if code is not None:
                self._check_ending(code)
                for each, metronome in ((web, beat), (bulky, slow_beat)):
                    deeds, slowed = nemesis.deeds, nemesis.slowed
                    case = Case(each, self.export, metronome, GAP_S, self.workers, deeds, slowed)
                    report.violations += judge(case) if self.export.exists() else ()
            report.requests = _requests(web) + _requests(bulky)
        report.seconds = time.monotonic() - started
        return report

    def _words(self, web: DemoWeb, bulky: DemoWeb) -> list[str]:
        rng = self.rng
        seeds = [*web.seeds()[:2], *bulky.seeds()[:-1]]  # not the metronome's host
        words = ["crawl", *seeds, "--data-dir", str(self.data_dir), "--scope", "any"]
        for each in (web, bulky):
            words += ["--allow-net", f"{each.hosts[0].rpartition('.')[0]}.0/24"]
        words += ["--strategy", "fixed", "--delay", str(GAP_S), "--max-rate", "unlimited"]
        words += ["--processes", str(self.processes), "--concurrency", str(self.workers)]
        words += ["--max-per-host", "40", "--timeout", "20", "--exclude", "*/slow/drip*"]
        words += ["--seeding-strategy", rng.choice(("none", "sitemap"))]
        return words + (["--durable"] if rng.random() < 0.3 else [])

    def _torment(self, web: DemoWeb, nemesis: Nemesis, steps: list[Step]) -> int | None:
        """Carry out the plan, resuming where it ended the command; return the last exit code."""
        deadline = time.monotonic() + ROUND_S
        command = self._start()
        pending = list(steps)
        next_at = time.monotonic() + (pending[0].after_s if pending else 0.0)
        while time.monotonic() < deadline:
            code = command.wait(0.25)
            if code is not None:
                command.wait_until_gone()
                return code  # by itself: the crawl is done, whatever was still planned
            self._watch(web, command)
            if not pending or time.monotonic() < next_at:
                continue
            step = pending.pop(0)
            if nemesis.act(step, command):
                self._expect_end(command, nemesis)
                command = self._start()
            self._last_request_at = time.monotonic()  # what we stopped may be silent
            next_at = time.monotonic() + (pending[0].after_s if pending else 0.0)
        self._say("P6", f"the crawl did not end within {ROUND_S:g} s: {status(self.data_dir)}")
        command.kill()
        return None

    def _start(self) -> Command:
        self.report.runs += 1
        self._last_request_at = time.monotonic()
        words = self.report.words if self.report.runs == 1 or not self._exists() else self._resume()
        return Command(words, self.log)

    def _exists(self) -> bool:
        return (self.data_dir / "crawl.json").exists()

    def _resume(self) -> list[str]:
        return ["resume", str(self.data_dir)]

    def _expect_end(self, command: Command, nemesis: Nemesis) -> None:
        """The command was told to end: it does, in time, and with the code of the signal."""
        deed = nemesis.deeds[-1]
        if deed.act is Act.KILL_ALL:
            return
        within_s = DRAIN_S if deed.act is Act.INTERRUPT else AT_ONCE_S
        code = command.wait(within_s)
        if code is None:
            self._say("P6", f"{deed.act.value} ({deed.detail}): still there after {within_s:g} s")
            command.kill()
            return
        allowed = next(codes for number, codes in CODES.items() if number.name == deed.detail)
        if code not in allowed | {0, 1, -int(next(n for n in CODES if n.name == deed.detail))}:
            self._say("P7", f"{deed.act.value} ({deed.detail}): exit code {code}")
        if not command.wait_until_gone():
            self._say("P6", "processes of the run are left after its end")
            command.kill()

    def _watch(self, web: DemoWeb, command: Command) -> None:
        """Look at memory and at progress."""
        report = self.report
        report.peak_bytes = max(report.peak_bytes, command.pss_bytes())
        now, count = time.monotonic(), _requests(web)
        if count > self._requests:
            self._requests, self._last_request_at = count, now
        silence_s = now - self._last_request_at
        report.longest_silence_s = max(report.longest_silence_s, silence_s)
        if silence_s > SILENCE_S:
            facts = status(self.data_dir)
            reasons = [heartbeat.get("waits_for") for heartbeat in facts.get("workers", ())]
            goes_on = _requests(web) > count  # while `status` was asked
            if command.code is None and not any(reasons) and not goes_on:
                self._say("P6", f"{silence_s:.0f} s without a request or a reason: {facts}")
            self._last_request_at = now

    def _check_ending(self, code: int) -> None:
        """Look at the exit code, what is pending, the memory, and write the export."""
        report = self.report
        facts = status(self.data_dir)
        total = facts.get("total", {})
        pending = total.get("queued", -1) + total.get("outgoing", 0)
        report.pages = total.get("fetched", 0)
        if code not in (0, 1):
            self._say("P7", f"exit code {code} at the end: {self._tail()}")
        if code == 0 and pending:
            self._say("P7", f"exit code 0 with {pending} URLs pending")
        if report.peak_bytes > MEMORY_BYTES:
            self._say("P5", f"{report.peak_bytes / 1e6:.0f} MB in all processes")
        exported, text = ask("export", str(self.data_dir), "-o", str(self.export))
        if exported != 0:
            self._say("P3", f"export ended with {exported}: {text[-300:]}")
        if "Traceback" in self.log.read_text("utf-8", "replace"):
            self._say("P6", f"a traceback: {self._tail()}")

    def _tail(self) -> str:
        return self.log.read_text("utf-8", "replace")[-600:]

    def _say(self, promise: str, text: str) -> None:
        self.report.violations.append(Violation(promise, text))


def _is_real(web: DemoWeb, host: str) -> bool:
    return web.sites[host].name != NAME


def _requests(web: DemoWeb) -> int:
    return sum(record.host in web.sites and _is_real(web, record.host) for record in web.log())
