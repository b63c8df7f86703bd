"""Control records survive storage, and their sum is what is in force."""

from __future__ import annotations

import pytest

from mannerly.crawler import control
from mannerly.crawler.control import (
    AddSeeds,
    Exclude,
    FetchRobots,
    HostForget,
    HostOrders,
    HostPause,
    HostResume,
    HostSet,
    Pause,
    SeedsMoved,
    SetOption,
    Stop,
    Unpause,
    in_force,
)
from mannerly.crawler.model import RobotsRequest

EVERY = [
    Pause(),
    Unpause(),
    Stop(),
    AddSeeds(("https://a.example/", "https://a.example/é")),
    SeedsMoved(("https://www.a.example/",)),
    FetchRobots((RobotsRequest("https://b.example/r", "b.example", "https://a.example", 1),)),
    SetOption("max_rate", 2.5),
    SetOption("duration", None),
    Exclude("*/private/*"),
    HostPause("a.example"),
    HostResume("a.example"),
    HostSet("a.example", delay_s=0.5, per_host=2),
    HostForget("a.example"),
]


@pytest.mark.parametrize("order", EVERY, ids=repr)
def test_control_record_comes_back_from_json(order: control.Control) -> None:
    """Every kind, with its values."""
    assert control.decode(control.encode(order)) == order


def fold(*orders: control.Control) -> control.InForce:
    return in_force(enumerate(orders, 1))


def test_without_records_nothing_is_in_force() -> None:
    """A crawl begins unpaused, with its own options."""
    assert fold() == (False, {}, (), {})


def test_the_last_record_wins() -> None:
    """Pauses end, options change again, a host's values are set one by one."""
    paused = fold(Pause(), SetOption("max_rate", 1.0), SetOption("max_rate", None))
    ended = fold(Pause(), Unpause(), Exclude("b*"), Exclude("a*"), Exclude("b*"))
    hosts = fold(
        HostSet("a.example", delay_s=5.0, per_host=1),
        HostPause("a.example"),
        HostSet("a.example", delay_s=2.0),
        HostPause("b.example"),
        HostResume("b.example"),
    ).hosts

    assert (paused.is_paused, paused.options) == (True, {"max_rate": None})
    assert (ended.is_paused, ended.excludes) == (False, ("b*", "a*"))
    assert hosts == {
        "a.example": HostOrders(is_paused=True, delay_s=2.0, per_host=1),
        "b.example": HostOrders(),
    }


def test_records_that_are_acted_on_once_are_not_in_force() -> None:
    """Seeds, Stop and HostForget leave no trace in the sum."""
    assert fold(Stop(), AddSeeds(("https://a.example/",)), HostForget("a.example")) == fold()
