from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import pytest

from mannerly.politeness import Grant, Reason, Refuse, Settings, Wait, core
from mannerly.politeness.host import HostState
from mannerly.simulation import run, run_many

if TYPE_CHECKING:
    from mannerly.politeness import Response

BRISK = Settings(max_rate=50.0, min_delay_s=0.01, start_delay_s=0.5)


class Ticket:
    def __init__(self, host: Metronome, *, is_probe: bool = False) -> None:
        self.host = host
        self.is_probe = is_probe


class Metronome:
    """A controller that starts a request every `delay_s` and never listens."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.next_at = 0.0
        self.responses: list[Response] = []

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        if now < self.next_at:
            return Wait(self.next_at, Reason.PACE)
        self.next_at += self.delay_s
        return Grant(Ticket(self))  # type: ignore[arg-type]

    def report(self, permit: object, response: Response, *, now: float) -> None:
        self.responses.append(response)


class OwnServer:
    """Serves everything in 0.1 s, and has no oracle."""

    def request(self, now: float, in_flight: int) -> tuple[int, float, dict[str, str]]:
        return 200, 0.1, {}


def test_run_is_repeated_exactly_by_its_seed() -> None:
    """The same settings, server and seed give the same starts, figures and events."""
    spec = "fixed:60:20+noise=0.02"

    first = run(BRISK, spec, 120, seed=7)
    second = run(BRISK, spec, 120, seed=7)

    assert first == second


def test_run_differs_with_its_seed() -> None:
    """Another seed is another run: randomness does come from it."""
    first = run(BRISK, "fixed:60:20+noise=0.02", 120, seed=7)
    second = run(BRISK, "fixed:60:20+noise=0.02", 120, seed=8)

    assert first.starts != second.starts


def test_run_on_the_same_server_object_starts_it_afresh() -> None:
    """A server that was used before answers as if it were new."""
    from mannerly.simulation import parse_server

    server = parse_server("bucket:5:10")

    first = run(BRISK, server, 60)
    second = run(BRISK, server, 60)

    assert first == second


def test_client_on_the_limit_uses_all_of_it() -> None:
    """At exactly the server's rate nothing is refused and utilisation is 1."""
    result = run(BRISK, "bucket:5:1", 200, core=Metronome(0.2))

    assert result.steady_util == pytest.approx(1.0, abs=0.005)
    assert (result.rejected, result.refused) == (0.0, 0)
    assert result.regret == pytest.approx(0.0, abs=0.01)


def test_client_at_twice_the_limit_is_refused_half() -> None:
    """The share of refusals and their price are what the formulas say."""
    result = run(BRISK, "bucket:5:1", 200, core=Metronome(0.1))

    assert result.steady_rejected == pytest.approx(0.5, abs=0.01)
    assert result.steady_util == pytest.approx(1.0, abs=0.01)
    assert result.regret == pytest.approx(5.0, rel=0.02)


def test_server_without_oracle_has_no_utilisation() -> None:
    """A server of one's own needs `request` only; what cannot be known is not a number."""
    result = run(BRISK, OwnServer(), 100, core=Metronome(0.5))

    assert isnan(result.util)
    assert isnan(result.steady_util)
    assert isnan(result.regret)
    assert isnan(result.convergence_s)
    assert (result.accepted, result.rejected, result.p95_latency_s) == (200, 0.0, 0.1)


def test_answer_slower_than_the_clients_patience_is_a_timeout() -> None:
    """A hanging server costs the client five seconds and counts as a refusal."""
    core = Metronome(10.0)

    result = run(BRISK, "bucket:5:10+hang=0-100", 50, core=core)

    assert {(response.error, response.latency_s) for response in core.responses} == {
        ("timeout", 5.0)
    }
    assert result.refused == len(result.starts) == 5


def test_unreachable_server_is_a_connect_error() -> None:
    """No connection is reported as such, not as a status."""
    core = Metronome(10.0)

    run(BRISK, "bucket:5:10+unreachable=0-100", 50, core=core)

    assert {(response.status, response.error) for response in core.responses} == {(None, "connect")}


def test_gap_violations_are_counted_by_the_simulator() -> None:
    """A controller that is faster than the operator's ceiling is caught at every start."""
    result = run(BRISK, "bucket:500:500", 10, core=Metronome(0.005))

    assert result.gap_violations == len(result.starts) - 1


def test_in_flight_violations_are_counted_by_the_simulator() -> None:
    """Fifteen requests under way are seven too many."""
    result = run(BRISK, "knee:100:3", 10, core=Metronome(0.2))

    assert result.in_flight_violations > 0


@pytest.mark.parametrize("form", ["retry-after", "retry-after-date"])
def test_sends_inside_a_retry_after_are_counted_by_the_simulator(form: str) -> None:
    """A controller that does not listen breaks both forms of the server's word."""
    result = run(BRISK, f"ban:1:1:30+{form}", 29, core=Metronome(0.5))

    assert result.retry_after_violations == len(result.starts) - 2


class Impatient(Metronome):
    """Says that its breaker is open, and sends all the same."""

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        if now < self.next_at:
            return (
                Refuse(now + 100.0, Reason.BREAKER_OPEN)
                if self.responses
                else Wait(1.0, Reason.PACE)
            )
        return super().reserve(host, now=now)


def test_sends_while_the_breaker_is_open_are_counted_by_the_simulator() -> None:
    """The core's own word about its breaker is held against it."""
    core = Impatient(0.01)

    result = run(BRISK, "knee:100:0.1", 1, core=core)

    assert result.half_open_violations > 0


class TwoProbes(Metronome):
    """Sends probes without waiting for the answer to the one before."""

    def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
        decision = super().reserve(host, now=now)
        if isinstance(decision, Grant):
            decision.permit.is_probe = True
        return decision


def test_second_probe_in_flight_is_counted_by_the_simulator() -> None:
    """Half-open means one request under way."""
    overlapping = run(BRISK, "knee:100:1", 10, core=TwoProbes(0.5))
    in_turn = run(BRISK, "knee:100:1", 10, core=TwoProbes(2.5))

    assert overlapping.half_open_violations > 0
    assert in_turn.half_open_violations == 0


class Silent:
    """Never grants, and says that only a report could change that."""

    def reserve(self, host: str, *, now: float) -> Wait:
        return Wait(None, Reason.PAUSED)

    def report(self, permit: object, response: Response, *, now: float) -> None:
        raise AssertionError("nothing was sent")


def test_run_ends_when_nothing_can_happen_any_more() -> None:
    """A controller that waits for nothing does not hang the simulator."""
    result = run(BRISK, "bucket:5:10", 900, core=Silent())

    assert result.starts == ()
    assert result.regret == 1.0


def test_controller_that_asks_again_at_once_does_not_stop_time() -> None:
    """Virtual time moves on even if a wait ends where it began."""

    class Spinning(Metronome):
        def reserve(self, host: str, *, now: float) -> Grant | Wait | Refuse:
            return Wait(now, Reason.PACE)

    result = run(BRISK, "bucket:5:10", 0.001, core=Spinning(1.0))

    assert result.wakeups == pytest.approx(1000, abs=2)


def test_run_many_covers_every_server_and_seed() -> None:
    """One list of results per server, one result per seed, in the order of the seeds."""
    servers = {"slow": "bucket:1:1", "fast": "bucket:5:1"}

    results = run_many(BRISK, servers, (1, 2, 3), duration_s=60, make_core=lambda: Metronome(1.0))

    assert {name: len(of_server) for name, of_server in results.items()} == {"slow": 3, "fast": 3}
    assert results["slow"][0].steady_util == pytest.approx(1.0)
    assert results["fast"][0].steady_util == pytest.approx(0.2)


def test_no_strategy_breaks_a_promise() -> None:
    """Whatever the strategy, spacing, Retry-After, the breaker and the in-flight cap hold."""
    specs = ("bucket:5:10+retry-after", "ban:4:4:20+retry-after-date", "bucket:5:10+outage=30-60")
    for strategy in ("learned", "linear", "aimd", "gradient", "fixed"):
        settings = Settings(strategy=strategy, max_rate=50.0, min_delay_s=0.01)
        for spec in specs:
            result = run(settings, spec, 120)

            assert (
                result.gap_violations,
                result.retry_after_violations,
                result.half_open_violations,
                result.in_flight_violations,
            ) == (0, 0, 0, 0), f"{strategy} on {spec}"


class Hasty(HostState):
    """A host that halves the gap that its strategy asks for, as a bug might."""

    __slots__ = ()

    def _next_start(self) -> float:
        return max(self.requested.blocked_until, self.base_at + 0.5 * self.delay_s)


def test_audit_sees_a_host_that_ignores_the_strategys_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The published pace is compared with, not only the operator's minimum."""
    kept = run(Settings(seed=1), "bucket:0.5:2", 300, 1).gap_violations
    monkeypatch.setattr(core, "HostState", Hasty)

    assert kept == 0
    assert run(Settings(seed=1), "bucket:0.5:2", 300, 1).gap_violations > 0
