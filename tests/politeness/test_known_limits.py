"""The limits that snapshots tell of: each kind that was found, and none where none is."""

from __future__ import annotations

import pytest

from mannerly.politeness import KnownLimit, LimitKind, Politeness, Settings
from mannerly.simulation.run import HOST, run

SEED = 1


def found(server: str, *, seconds: float = 900.0, **options: object) -> list[KnownLimit]:
    """Return what the core knows of a modelled server after that time."""
    settings = Settings(seed=SEED, **options)  # type: ignore[arg-type]
    core = Politeness(settings)
    run(settings, server, seconds, SEED, core=core)
    snapshot, figures = core.host(HOST), core.figures(HOST, now=seconds)
    assert snapshot is not None
    assert figures is not None
    assert figures.known_limits == snapshot.known_limits
    return list(snapshot.known_limits)


@pytest.mark.parametrize(
    ("server", "kind", "requests", "seconds"),
    [
        ("bucket:1:5", LimitKind.BUCKET, 1.0, 1.0),
        ("fixed:20:60", LimitKind.FIXED, 20.0, 60.0),
        ("sliding:300:60", LimitKind.SLIDING, 300.0, 60.0),
        ("ban:2:4:30", LimitKind.BAN, 2.0, 1.0),
    ],
)
def test_limit_of_the_rate(server: str, kind: LimitKind, requests: float, seconds: float) -> None:
    """With its parameters, and sure enough to be used."""
    (known,) = found(server, seconds=600.0)

    assert (known.kind, known.seconds) == (kind, seconds)
    assert known.requests == pytest.approx(requests, rel=0.06)
    assert 0.8 <= known.sure <= 1.0
    if kind is LimitKind.BAN:
        assert known.pause_s == pytest.approx(30.0, rel=0.2)


def test_limit_of_requests_at_once() -> None:
    """Told when more of them were refused a second time."""
    known = found("concurrency:2:0.8")

    (at_once,) = (each for each in known if each.kind is LimitKind.CONCURRENCY)
    assert at_once.requests == 2
    assert at_once.sure == 0.0  # nothing was compared


def test_queue_that_never_refuses() -> None:
    """The rate beyond which answers become slow."""
    (known,) = found("knee:1:0.5")

    assert known.kind is LimitKind.QUEUE
    assert 1.6 < known.rate < 2.1


@pytest.mark.parametrize("strategy", ["learned", "linear", "aimd", "gradient", "fixed"])
def test_nothing_is_known_of_a_host_that_refuses_nothing(strategy: str) -> None:
    """However long it is crawled, and whatever the strategy."""
    assert found("bucket:1000:1000", seconds=300.0, strategy=strategy) == []


@pytest.mark.parametrize("strategy", ["linear", "aimd", "gradient", "fixed"])
def test_other_strategies_recognise_nothing(strategy: str) -> None:
    """They only react to refusals."""
    assert found("bucket:3:6", seconds=300.0, strategy=strategy) == []


def test_one_refusal_tells_no_kind() -> None:
    """A limit that was met once may be of any kind."""
    assert found("bucket:3:6", seconds=20.0) == []
