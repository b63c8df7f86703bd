from __future__ import annotations

import pytest
from bench.tuning import TUNING_SERVERS, UNSEEN_SERVERS

from mannerly.simulation import SpecError, parse_server
from mannerly.simulation.outages import Noise, Outage, Pauses
from mannerly.simulation.servers import (
    BanningBucket,
    ConcurrencyCap,
    FixedWindow,
    LatencyKnee,
    RetryAfter,
    SlidingLog,
    TokenBucket,
)
from mannerly.simulation.spec import grammar


class OwnServer:
    def request(self, now: float, in_flight: int) -> tuple[int, float, dict[str, str]]:
        return 200, 0.1, {}


NO_SERVER = 3


def test_spec_names_a_server() -> None:
    """Each form of the grammar builds the server that it names."""
    cases = {
        "bucket:5:10": TokenBucket,
        "bucket:0.5:5+retry-after": TokenBucket,
        "fixed:60:60": FixedWindow,
        "sliding:100:20+headers": SlidingLog,
        "concurrency:4:0.4": ConcurrencyCap,
        "knee:3:0.25": LatencyKnee,
        "steps:8@0,2@300,8@600:5": TokenBucket,
        "ban:4:4:30": BanningBucket,
        "extending-ban:4:4:30+retry-after-date": BanningBucket,
        "bucket:5:10+noise=0.01": Noise,
        "bucket:5:10+pauses=0.02:20-40": Pauses,
        "bucket:5:10+retry-after+outage=300-360": Outage,
        f"{__name__}:OwnServer": OwnServer,
    }
    for spec, kind in cases.items():
        assert isinstance(parse_server(spec), kind), spec


def test_spec_passes_its_numbers_and_additions_on() -> None:
    """What is written is what is built."""
    server = parse_server("fixed:30:60+retry-after-date+headers")

    assert isinstance(server, FixedWindow)
    assert (server.n, server.w) == (30, 60)
    assert (server.retry_after, server.announces) == (RetryAfter.DATE, True)


def test_every_server_of_the_benchmarks_can_be_named() -> None:
    """The tuning set is written in the same grammar that users have."""
    for spec in (*TUNING_SERVERS.values(), *UNSEEN_SERVERS.values()):
        assert callable(parse_server(spec).request), spec


def test_bad_spec_shows_the_offending_part_and_the_grammar() -> None:
    """The error names what cannot be read, and everything that can."""
    cases = (
        ("", ""),
        ("buckets:5:10:1", "buckets"),
        ("bucket:5", "BURST"),
        ("bucket:5:10:3", "3"),
        ("bucket:fast:10", "fast"),
        ("bucket:-1:10", "-1"),
        ("bucket:nan:10", "nan"),
        ("bucket:5:0", "0"),
        ("fixed:1.5:60", "1.5"),
        ("steps:8:5", "8"),
        ("steps:8@10:5", "8@10"),
        ("steps:0@0:5", "0"),
        ("bucket:5:10+retry-later", "retry-later"),
        ("knee:3:0.25+retry-after", "retry-after"),
        ("bucket:5:10+noise=2", "noise=2"),
        ("bucket:5:10+noise=some", "some"),
        ("bucket:5:10+pauses=2:20-40", "pauses=2:20-40"),
        ("bucket:5:10+pauses=0.1:20", "pauses=0.1:20"),
        ("bucket:5:10+outage=60", "outage=60"),
        ("bucket:5:10+outage=60-20", "20"),
        ("nowhere:Server", "nowhere:Server"),
        ("os:no_such_name", "os:no_such_name"),
        (f"{__name__}:NO_SERVER", f"{__name__}:NO_SERVER"),
    )
    for spec, part in cases:
        with pytest.raises(SpecError) as caught:
            raise AssertionError(f"{spec!r} was read as {parse_server(spec)}")

        assert caught.value.part == part, spec
        assert repr(part) in str(caught.value), spec
        assert "bucket:RATE:BURST" in str(caught.value), spec


def test_grammar_lists_every_form_once() -> None:
    """The table of the module's head is the one that errors print."""
    lines = grammar().splitlines()

    assert len(lines) == len(set(lines)) == 17
