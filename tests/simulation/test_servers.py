from __future__ import annotations

import random
from email.utils import parsedate_to_datetime
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.simulation.outages import Noise, Outage, OutageKind, Pauses
from mannerly.simulation.servers import (
    BanningBucket,
    ConcurrencyCap,
    FixedWindow,
    LatencyKnee,
    RetryAfter,
    SlidingLog,
    TokenBucket,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.simulation import Server


def accepted(server: Server, instants: list[float]) -> int:
    return sum(server.request(at, 1)[0] == 200 for at in instants)


def every(gap_s: float, until_s: float) -> list[float]:
    return [gap_s * i for i in range(round(until_s / gap_s))]


def test_bucket_fed_at_its_limit_refuses_nothing() -> None:
    """A client exactly on the rate is never refused, not even with the smallest burst."""
    for rate in (0.5, 3.0, 5.0, 30.0):
        instants = every(1 / rate, 600)

        assert accepted(TokenBucket(rate, 1), instants) == len(instants), f"rate {rate}"


def test_bucket_fed_twice_as_fast_refuses_half() -> None:
    """Beyond its burst a bucket accepts its rate, however fast it is asked."""
    server = TokenBucket(5, 10)

    served = accepted(server, every(0.1, 1000))

    assert served == pytest.approx(server.allowed(0, 1000), abs=2)


def test_bucket_counts_its_burst_in_the_first_span_only() -> None:
    """What a bucket holds at the start is allowed once."""
    server = TokenBucket(5, 10)

    first, later = server.allowed(0, 100), server.allowed(100, 200)

    assert (first, later) == (510, 500)


def test_stepped_bucket_follows_its_schedule() -> None:
    """The rate changes at the instants of the schedule, in the oracle and in the refusals."""
    server = TokenBucket([(0, 8), (300, 2), (600, 8)], 5)

    served = accepted(server, every(0.05, 900))

    assert server.allowed(0, 900) == 300 * 8 + 300 * 2 + 300 * 8 + 5
    assert served == pytest.approx(server.allowed(0, 900), abs=3)


def test_fixed_window_accepts_n_per_window_at_any_phase() -> None:
    """Whole windows accept exactly n, and the phase is random."""
    for seed in range(5):
        server = FixedWindow(60, 60)
        server.reset(random.Random(seed))

        assert 600 <= accepted(server, every(0.1, 600)) <= 660, f"seed {seed}"


@given(st.lists(st.floats(0, 50), min_size=1, max_size=200))
def test_sliding_log_never_accepts_more_than_n_in_any_window(instants: list[float]) -> None:
    """However requests are spread, no window of w seconds holds more than n accepted ones."""
    server = SlidingLog(5, 10)

    served = [at for at in sorted(instants) if server.request(at, 1)[0] == 200]

    assert all(late - early > 10 - 1e-6 for early, late in zip(served, served[5:], strict=False))


def test_concurrency_cap_refuses_only_above_n() -> None:
    """The number under way decides, with 503, and the rate does not."""
    server = ConcurrencyCap(4, 0.4)

    statuses = [server.request(0.0, under_way)[0] for under_way in range(1, 7)]

    assert statuses == [200, 200, 200, 200, 503, 503]
    assert server.allowed(0, 100) == 1000


def test_knee_serves_its_rate_and_queues_the_rest() -> None:
    """Above the workers' rate no request is refused; the wait grows with the excess."""
    server = LatencyKnee(3, 0.25)

    latencies = [server.request(at, 1)[1] for at in every(1 / 24, 100)]

    assert fmean(latencies[:10]) < 0.5
    assert latencies[-1] == pytest.approx(100, rel=0.1)


def test_ban_refuses_everything_until_it_ends() -> None:
    """One refusal costs the whole ban, whatever the bucket has refilled meanwhile."""
    server = BanningBucket(1, 1, 30)

    statuses = [server.request(at, 1)[0] for at in (0.0, 0.5, 20.0, 30.4, 30.5)]

    assert statuses == [200, 429, 429, 429, 200]


def test_extending_ban_starts_again_with_every_request() -> None:
    """Only silence ends it."""
    server = BanningBucket(1, 1, 30, extends=True)

    statuses = [server.request(at, 1)[0] for at in (0.0, 0.5, 20.0, 40.0, 69.9, 99.9)]

    assert statuses == [200, 429, 429, 429, 429, 200]


def asked_wait_s(headers: Mapping[str, str]) -> float:
    """The seconds of a Retry-After in either form."""
    text = headers["retry-after"]
    if text.isdigit():
        return float(text)
    return (parsedate_to_datetime(text) - parsedate_to_datetime(headers["date"])).total_seconds()


def test_retry_after_is_long_enough() -> None:
    """A client that waits as long as the refusal asks for is accepted."""
    for form in (RetryAfter.SECONDS, RetryAfter.DATE):
        servers: tuple[Server, ...] = (
            TokenBucket(0.3, 2, retry_after=form),
            FixedWindow(3, 20, retry_after=form),
            SlidingLog(3, 20, retry_after=form),
            BanningBucket(2, 2, 15, retry_after=form),
            BanningBucket(2, 2, 15, extends=True, retry_after=form),
        )
        for number, server in enumerate(servers):
            case = f"server {number}, {form}"
            refused_at, headers = next(
                (at, headers)
                for at, (status, _, headers) in (
                    (at, server.request(at, 1)) for at in every(0.1, 100)
                )
                if status == 429
            )

            assert headers["retry-after"].isdigit() is (form is RetryAfter.SECONDS), case
            assert server.request(refused_at + asked_wait_s(headers), 1)[0] == 200, case


def test_without_retry_after_a_refusal_says_nothing() -> None:
    """The default server does not help the client."""
    server = TokenBucket(1, 1)
    server.request(0.0, 1)

    status, latency_s, headers = server.request(0.1, 1)

    assert (status, latency_s, dict(headers)) == (429, 0.03, {})


@pytest.mark.parametrize(
    ("server", "policy", "left"),
    [
        (TokenBucket(5, 10, announces=True), '"default";q=10;w=2', '"default";r=9;t=1'),
        (SlidingLog(100, 20, announces=True), '"default";q=100;w=20', '"default";r=99;t=20'),
    ],
)
def test_announcing_server_tells_its_quota(server: Server, policy: str, left: str) -> None:
    """Every answer carries what remains and when it is whole again."""
    _, _, headers = server.request(0.0, 1)

    assert headers == {"ratelimit-policy": policy, "ratelimit": left}


def test_noise_hits_its_share_and_costs_no_token() -> None:
    """The share of unfounded 503s is the one asked for, and the limit does not notice them."""
    server = Noise(TokenBucket(5, 10), 0.1)

    served = accepted(server, every(0.2, 2000))

    assert served / 10_000 == pytest.approx(0.9, abs=0.01)


def test_pauses_ask_for_some_seconds_of_silence() -> None:
    """A share of the requests is refused with 429 or 503, each with a Retry-After in its span."""
    server = Pauses(TokenBucket(5, 10), 0.1, 20.0, 40.0)
    server.reset(random.Random(1))

    answers = [server.request(number / 2, 1) for number in range(1000)]

    refused = [answer for answer in answers if answer[0] != 200]
    assert 60 < len(refused) < 140
    assert {status for status, _, _ in refused} == {429, 503}
    assert all(20 <= int(headers["retry-after"]) <= 40 for _, _, headers in refused)


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (OutageKind.ERROR, (503, 0.03)),
        (OutageKind.UNREACHABLE, (0, 0.03)),
        (OutageKind.HANG, (0, inf)),
    ],
)
def test_outage_fails_every_request_in_its_span(
    failure: OutageKind, answer: tuple[int, float]
) -> None:
    """Inside the span all fail alike, outside none does, and the oracle leaves the span out."""
    server = Outage(TokenBucket(5, 10), 100, 160, failure)

    during = server.request(130.0, 1)[:2]
    around = [server.request(at, 1)[0] for at in (99.9, 160.0)]

    assert during == answer
    assert around == [200, 200]
    assert server.allowed(0, 200) == 5 * 140 + 10


def test_latency_has_the_mean_that_was_asked_for() -> None:
    """The log-normal is centred on its mean, so that a concurrency limit's oracle is exact."""
    server = TokenBucket(1e6, 1_000_000)

    latencies = [server.request(0.0, 1)[1] for _ in range(20_000)]

    assert fmean(latencies) == pytest.approx(0.15, rel=0.01)


def test_reset_repeats_a_server_exactly() -> None:
    """The same randomness and the same requests give the same answers."""
    server = Noise(FixedWindow(10, 7), 0.05)
    server.reset(random.Random(3))
    first = [server.request(at, 1) for at in every(0.3, 100)]

    server.reset(random.Random(3))
    second = [server.request(at, 1) for at in every(0.3, 100)]

    assert first == second
