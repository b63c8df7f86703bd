"""Classification of responses, by status and kind of error."""

from __future__ import annotations

import pytest
from tests.politeness.cases import case

from mannerly.politeness import ErrorKind, Outcome, Response
from mannerly.politeness.classify import classify
from mannerly.politeness.drivers.threads import ThreadedPoliteness

OK, THROTTLE, OVERLOAD, NEUTRAL, _ = Outcome


def test_status_decides() -> None:
    """A status has one meaning, and a Retry-After turns a refusal or a fault into a throttle."""
    cases: list[tuple[int, Outcome, Outcome]] = [
        (200, OK, OK),
        (204, OK, OK),
        (299, OK, OK),
        (304, OK, OK),
        (100, NEUTRAL, NEUTRAL),
        (301, NEUTRAL, NEUTRAL),
        (308, NEUTRAL, NEUTRAL),
        (400, NEUTRAL, NEUTRAL),
        (401, NEUTRAL, NEUTRAL),
        (403, NEUTRAL, THROTTLE),
        (404, NEUTRAL, NEUTRAL),
        (410, NEUTRAL, NEUTRAL),
        (429, THROTTLE, THROTTLE),
        (500, OVERLOAD, THROTTLE),
        (502, OVERLOAD, THROTTLE),
        (503, OVERLOAD, THROTTLE),
        (504, OVERLOAD, THROTTLE),
        (599, OVERLOAD, THROTTLE),
        (999, OVERLOAD, THROTTLE),
        (0, NEUTRAL, NEUTRAL),
    ]
    for status, plain, with_retry_after in cases:
        with case(status, plain, with_retry_after):
            assert classify(Response(status), has_retry_after=False) is plain
            assert classify(Response(status), has_retry_after=True) is with_retry_after


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("timeout", OVERLOAD),
        ("connect", OVERLOAD),
        ("dns", OVERLOAD),
        ("tls", OVERLOAD),
        ("reset", OVERLOAD),
        ("protocol", NEUTRAL),
        ("too_large", NEUTRAL),
    ],
)
def test_kind_of_error_decides(kind: str, outcome: Outcome) -> None:
    """Without a status the kind of error counts, as a word or as the enum's member."""
    assert classify(Response(error=kind), has_retry_after=False) is outcome
    assert classify(Response(error=ErrorKind(kind)), has_retry_after=False) is outcome


def test_every_kind_of_error_has_a_meaning() -> None:
    """A new kind cannot be forgotten."""
    for kind in ErrorKind:
        assert classify(Response(error=kind), has_retry_after=False) in (OVERLOAD, NEUTRAL)


def test_status_outranks_an_error() -> None:
    """A body that broke off after its status line is judged by the status."""
    assert classify(Response(429, error="reset"), has_retry_after=False) is THROTTLE


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (Response(), "needs a status or an error kind"),
        (Response(error="oops"), "unknown error kind 'oops'; known: timeout, connect"),
        (Response(-1), "not -1"),
        (Response(1000), "not 1000"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused_in_words(response: Response, words: str) -> None:
    """The error says what is wrong and what is known."""
    with pytest.raises(ValueError, match=words):
        classify(response, has_retry_after=False)


@pytest.mark.parametrize("headers", [{}, {"retry-after": "5"}], ids=["bare", "retry-after"])
def test_status_as_text_is_refused_in_words(headers: dict[str, str]) -> None:
    """A status in quotes is refused with an example of what is meant, and settles nothing."""
    politeness = ThreadedPoliteness()

    with (
        pytest.raises(TypeError, match="whole number such as 200, not '503'"),
        politeness.slot("https://example.com/") as slot,
    ):
        slot.report(status="503", headers=headers)  # type: ignore[arg-type]

    assert politeness.snapshot().in_flight == 0
