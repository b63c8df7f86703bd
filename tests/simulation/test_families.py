"""The models by which the limiter is judged do what they say, and their stated limits are right."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

import pytest
from bench.families import FAMILIES, OTHERS
from bench.families import __doc__ as promise
from bench.fresh import FRESH

from mannerly.politeness import Settings
from mannerly.simulation import parse_server, run
from mannerly.simulation.servers import ModelAnswer

TRIALS = FAMILIES | OTHERS | FRESH
TIMEOUT_S = 5.0
LOOK_S = 0.01  # the limit of the moment is taken over so long
INSTANT_S = 1e-6
SEEDS = (1, 2, 3)
# Their limit is a mean, of sizes that vary: the reserve covers nine tenths of it, or less.
BELOW = {"bytes, 509": 0.88, "cache before a limit": 0.85, "2 workers, 504": 0.85}
# Lost is only what takes longer than the client's timeout, or what the cache does not have.
LOST_AT_TWICE = {"slow-down": 0.2, "cache before a limit": 0.18}


def lost_pages(spec: str, share: float, seed: int, until_s: float = 1200.0) -> float:
    """Send evenly at a share of the limit of the moment; return the share of pages not served.

    Where only some may be under way at once, a client below the limit waits for its turn.
    """
    server = parse_server(spec)
    server.reset(random.Random(seed))
    at_once = getattr(server, "at_once", inf) if share < 1 else inf
    under_way: list[float] = []
    sent = lost = 0
    now = 1.0
    while now < until_s:
        while under_way and under_way[0] <= now:
            heappop(under_way)
        if len(under_way) >= at_once:
            now = under_way[0]
            continue
        status, latency_s, _, body = ModelAnswer(*server.request(now, len(under_way) + 1))
        heappush(under_way, now + min(latency_s, TIMEOUT_S))
        sent += 1
        lost += status != 200 or latency_s > TIMEOUT_S or bool(body)
        now += LOOK_S / (share * server.allowed(now, now + LOOK_S))
        while server.allowed(now, now + INSTANT_S) < INSTANT_S / 100:  # the server is out
            now += LOOK_S
    return lost / sent


@pytest.mark.parametrize("name", TRIALS)
def test_client_below_the_limit_loses_nothing(name: str) -> None:
    """A steady client just below the limit that the model states is never refused."""
    share = BELOW.get(name, 0.97)

    assert {lost_pages(TRIALS[name].spec, share, seed) for seed in SEEDS} == {0.0}


@pytest.mark.parametrize("name", TRIALS)
def test_client_at_twice_the_limit_loses_pages(name: str) -> None:
    """At twice the limit every model refuses or loses two fifths of the requests, or as stated."""
    least = LOST_AT_TWICE.get(name, 0.4)

    assert min(lost_pages(TRIALS[name].spec, 2.0, seed) for seed in SEEDS) >= least


@pytest.mark.parametrize("name", TRIALS)
def test_stated_limit_is_the_sum_of_its_parts(name: str) -> None:
    """What is allowed in a span does not depend on where it is cut."""
    server = parse_server(TRIALS[name].spec)
    server.reset(random.Random(1))

    cuts = [0.0, 0.5, 77.7, 130.0, 300.0, 431.0, 899.0, 1200.0]
    parts = sum(server.allowed(start, end) for start, end in pairwise(cuts))

    assert parts == pytest.approx(server.allowed(0.0, 1200.0))
    assert 0.0 < server.allowed(450.0, 900.0) <= 450 * TRIALS[name].settings.get("max_rate", 8.0)


@pytest.mark.parametrize("name", TRIALS)
def test_seed_repeats_a_server(name: str) -> None:
    """The same seed gives the same run, also when one server object is used twice."""
    server = parse_server(TRIALS[name].spec)

    first, again = (run(Settings(), server, 120.0, seed=4) for _ in range(2))

    assert first == again


def test_page_that_all_urls_get_is_no_success() -> None:
    """A robot check with status 200 counts as refused, whatever the client takes it for."""
    result = run(Settings(strategy="fixed", delay_s=0.25), "bench.families:RobotCheck", 120.0)

    assert result.rejected > 0.05


def test_models_stay_as_they_are() -> None:
    """There are 12 families and 15 fresh servers; their file says that they may not change."""
    assert len(FAMILIES) == 12
    assert len(FRESH) == 15
    assert "unchanged" in (promise or "")
