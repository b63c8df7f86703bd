"""What is done to a crawl: a plan of acts, drawn from the seed before the crawl begins.

kill all       SIGKILL for every process at once; then the crawl is resumed
kill one       SIGKILL for one process that is not the command: a worker or a helper
stop one       SIGSTOP for a worker or a helper, and SIGCONT some seconds later
stop all       the same for all of them, as a laptop that is closed
interrupt      SIGINT, SIGTERM or SIGHUP once: it drains, and is resumed
interrupt twice
order          pause and unpause, host set, host pause and resume, status, hosts, export
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from tests.harness.processes import send

from .command import ask

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from .command import Command


class Act(Enum):
    """One kind of fault or order."""

    KILL_ALL = "kill all"
    KILL_ONE = "kill one"
    STOP_ONE = "stop one"
    STOP_ALL = "stop all"
    INTERRUPT = "interrupt"
    INTERRUPT_TWICE = "interrupt twice"
    PAUSE = "pause"
    SLOW_HOST = "host set"
    PAUSE_HOST = "host pause"
    LOOK = "look"


_WEIGHTS = {
    Act.KILL_ALL: 3,
    Act.KILL_ONE: 3,
    Act.STOP_ONE: 2,
    Act.STOP_ALL: 2,
    Act.INTERRUPT: 2,
    Act.INTERRUPT_TWICE: 1,
    Act.PAUSE: 1,
    Act.SLOW_HOST: 1,
    Act.PAUSE_HOST: 1,
    Act.LOOK: 2,
}
ENDING = {Act.KILL_ALL, Act.INTERRUPT, Act.INTERRUPT_TWICE}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CODES = {signal.SIGINT: {130}, signal.SIGTERM: {143}, signal.SIGHUP: {129, 143}}
SLOWER_S = 1.0  # the delay of a host that an order slows down


@dataclass(frozen=True)
class Step:
    """An act, so many seconds after the one before, with a number that chooses its victim."""

    after_s: float
    act: Act
    choice: int
    lasts_s: float


@dataclass
class Deed:
    """What was done, and when: kills and stops, as the judge needs them."""

    act: Act
    began: float
    ended: float
    detail: str = ""


def plan(rng: Random, acts: int) -> list[Step]:
    """Draw a plan."""
    kinds, weights = zip(*_WEIGHTS.items(), strict=True)
    return [
        Step(
            after_s=rng.uniform(0.3, 4.0),
            act=rng.choices(kinds, weights)[0],
            choice=rng.randrange(1 << 30),
            lasts_s=rng.uniform(0.5, 6.0),
        )
        for _ in range(acts)
    ]


@dataclass
class Nemesis:
    """Carries out the steps of a plan on a running command."""

    data_dir: Path
    hosts: list[str]
    deeds: list[Deed] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    slowed: dict[str, float] = field(default_factory=dict)  # host → since when

    def act(self, step: Step, command: Command) -> bool:
        """Carry out one step; return whether the command has ended, or will."""
        began = time.monotonic()
        detail = self._do(step, command)
        self.deeds.append(Deed(step.act, began, time.monotonic(), detail))
        return step.act in ENDING

    def _do(self, step: Step, command: Command) -> str:
        deeds = {
            Act.KILL_ALL: self._kill_all,
            Act.KILL_ONE: self._kill_one,
            Act.STOP_ONE: self._stop_one,
            Act.STOP_ALL: self._stop_all,
            Act.INTERRUPT: self._interrupt,
            Act.INTERRUPT_TWICE: self._interrupt,
            Act.PAUSE: self._pause,
            Act.SLOW_HOST: self._slow_host,
            Act.PAUSE_HOST: self._pause_host,
            Act.LOOK: self._look,
        }
        return deeds[step.act](step, command)

    @staticmethod
    def _kill_all(_step: Step, command: Command) -> str:
        command.kill()
        return ""

    def _kill_one(self, step: Step, command: Command) -> str:
        return self._to_one(step, command, (signal.SIGKILL,))

    def _stop_one(self, step: Step, command: Command) -> str:
        return self._to_one(step, command, (signal.SIGSTOP, signal.SIGCONT))

    @staticmethod
    def _stop_all(step: Step, command: Command) -> str:
        victims = command.everyone()
        for pid in victims:
            send(pid, signal.SIGSTOP)
        time.sleep(step.lasts_s)
        for pid in reversed(victims):
            send(pid, signal.SIGCONT)
        return f"{step.lasts_s:.1f} s"

    @staticmethod
    def _interrupt(step: Step, command: Command) -> str:
        number = _SIGNALS[step.choice % len(_SIGNALS)]
        command.tell(number)
        if step.act is Act.INTERRUPT_TWICE:
            time.sleep(0.2)
            command.tell(number)
        return number.name

    def _pause(self, step: Step, _command: Command) -> str:
        self._order("pause")
        time.sleep(step.lasts_s)
        self._order("unpause")
        return ""

    def _slow_host(self, step: Step, _command: Command) -> str:
        host = self._host(step)
        if self._order("host", "set", host, "--delay", str(SLOWER_S)):
            self.slowed.setdefault(host, time.monotonic())
        return host

    def _pause_host(self, step: Step, _command: Command) -> str:
        host = self._host(step)
        if self._order("host", "pause", host):
            time.sleep(step.lasts_s)
            self._order("host", "resume", host)
        return host

    def _look(self, _step: Step, _command: Command) -> str:
        for words in (("status", str(self.data_dir)), ("hosts", str(self.data_dir))):
            code, text = ask(*words)
            if code == 2 and "there is no crawl" in text:
                continue  # not yet
            if code not in (0, 4) or "Traceback" in text:
                self.complaints.append(f"`{words[0]}` ended with {code}: {text[-300:]}")
        return ""

    def _to_one(self, step: Step, command: Command, numbers: tuple[signal.Signals, ...]) -> str:
        others = command.everyone()[1:]
        if not others:
            return "nobody"
        pid = others[step.choice % len(others)]
        for index, number in enumerate(numbers):
            if index:
                time.sleep(step.lasts_s)
            send(pid, number)
        return str(pid)

    def _host(self, step: Step) -> str:
        return self.hosts[step.choice % len(self.hosts)]

    def _order(self, *words: str) -> bool:
        """Send an order; one that comes before the crawl exists is refused, and that is all."""
        position = 2 if words[0] == "host" else 1
        code, text = ask(*words[:position], str(self.data_dir), *words[position:])
        if "Traceback" in text:
            self.complaints.append(f"`{' '.join(words)}` printed a traceback: {text[-300:]}")
        return code == 0
