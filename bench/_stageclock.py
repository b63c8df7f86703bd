"""Measure the CPU time of single functions of the product, without changing its code.

A timed function reads the CPU clock of the thread when it is entered and when it is left. The time
since the last reading belongs to the timed function that was innermost on the stack:

    time of a function  =  CPU time inside it  −  CPU time inside the timed functions that it calls

So nothing is counted twice, and waiting counts nothing. Reading that clock is a system call of half
a microsecond or more. So the cost of a timed call is measured during the real work (`Probe`) and
subtracted for every call (`Tally.own_ns`): one part of it was charged to the function, the other to
its caller.

Freeing an object is charged to the function that drops the last reference, and a run of the garbage
collector to the function whose allocation triggers it. This module does not know what is measured.
"""

from __future__ import annotations

import sys
from importlib import import_module
from time import thread_time_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Tallies: TypeAlias = "dict[str, Tally]"


class StageMissing(Exception):  # noqa: N818 - what happened
    """A function that should be timed does not exist at the given place."""


class Tally:
    """CPU time and calls of one function; `outgoing` counts the timed calls that it made."""

    __slots__ = ("calls", "cpu_ns", "outgoing")

    def __init__(self) -> None:
        self.cpu_ns = self.calls = self.outgoing = 0

    def own_ns(self, overhead: Overhead) -> float:
        """CPU time without the cost of the timers."""
        timers_ns = self.calls * overhead.function_ns + self.outgoing * overhead.caller_ns
        return self.cpu_ns - timers_ns


class Overhead(NamedTuple):
    """Extra cost of a timed call: the part charged to the function, and to its caller."""

    function_ns: float
    caller_ns: float


class StageClock:
    """Charges the thread's CPU time to the innermost timed function."""

    def __init__(self) -> None:
        self._top = Tally()  # everything outside of all timed functions
        self._last = 0

    def timed(self, function: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            caller = self._top
            now = thread_time_ns()
            caller.cpu_ns += now - self._last
            caller.outgoing += 1
            tally.calls += 1
            self._top = tally
            self._last = now
            try:
                return function(*args, **kwargs)
            finally:
                now = thread_time_ns()
                tally.cpu_ns += now - self._last
                self._top = caller
                self._last = now

        return call


class Probe:
    """A timed call of a timed call of nothing, among the work of every page.

    In a loop of its own the same would be cheaper by a third: the caches would hold nothing else.
    """

    def __init__(self, clock: StageClock) -> None:
        self._inner, self._outer = Tally(), Tally()
        nothing = clock.timed(lambda: None, self._inner)

        def call() -> None:
            nothing()

        self._call = clock.timed(call, self._outer)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def probed(*args: Any, **kwargs: Any) -> Any:
            self._call()
            return function(*args, **kwargs)

        return probed

    @property
    def overhead(self) -> Overhead:
        """The inner call was charged as a function, the outer one as a function and a caller."""
        function_ns = self._inner.cpu_ns / self._inner.calls
        return Overhead(function_ns, self._outer.cpu_ns / self._outer.calls - function_ns)


class Found(NamedTuple):
    """The module or class that has a function, its name there, and the function."""

    holder: object
    name: str
    function: Callable[..., Any]


def find(place: str) -> Found:
    """Look a function up by `module:name` or `module:Class.name`."""
    module, _, path = place.partition(":")
    *holders, name = path.split(".")
    try:
        holder: object = import_module(module)
        for each in holders:
            holder = getattr(holder, each)
        function = getattr(holder, name)
    except (ImportError, AttributeError) as error:
        raise StageMissing(f"{place} is gone: correct the table of stages ({error})") from error
    if not isinstance(function, FunctionType):
        raise StageMissing(f"{place} is no plain function: correct the table of stages")
    return Found(holder, name, function)


def find_all(places: Iterable[str]) -> dict[str, Found]:
    """Every function of a table; by then, all that they need is imported."""
    return {place: find(place) for place in places}


def references(function: object) -> Iterator[tuple[dict[str, Any], str]]:
    """Where the product names a function of a module: as a global, or as a default."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mannerly")]
    for space in [vars(module) for module in modules]:
        yield from ((space, name) for name, value in space.items() if value is function)
        for value in space.values():
            defaults = getattr(value, "__kwdefaults__", None) or {}
            yield from ((defaults, name) for name, each in defaults.items() if each is function)


def install(clock: StageClock, probe: Probe, places: Iterable[str], probed: str) -> Tallies:
    """Time these functions in this process from now on, and probe before one of them."""
    found = find_all(places)
    # Before any of them is replaced: a function's defaults cannot be seen through its timer.
    named = {place: list(references(each.function)) for place, each in found.items()}
    tallies = {place: Tally() for place in found}
    for place, (holder, name, function) in found.items():
        work = probe.before(function) if place == probed else function
        timed = clock.timed(work, tallies[place])
        if isinstance(holder, type):
            setattr(holder, name, timed)
        for space, reference in named[place]:
            space[reference] = timed
    return tallies
