from __future__ import annotations

from math import nan
from xml.etree import ElementTree as ET

import pytest

from mannerly.simulation.chart import (
    REFUSED,
    duration_label,
    plot_svg,
    plot_text,
    rate_ticks,
    time_ticks,
)
from mannerly.simulation.result import Result, SentRequest, Violations, summarise


def result_of(*, limit: float = 2.0, refused_at: tuple[float, ...] = (30.5, 31.5)) -> Result:
    trace = [SentRequest(0.5 * i, True, 0.1) for i in range(240)]
    trace += [SentRequest(at, False, 0.03) for at in refused_at]
    return summarise(
        sorted(trace),
        duration_s=120.0,
        allowed=lambda start, end: limit * (end - start),
        wanted=[2.0] * 120,
        violations=Violations(gap=0, retry_after=0, half_open=0, in_flight=0),
        wakeups=0,
        events=(),
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_terminal_chart_fits_the_terminal(width: int) -> None:
    """No line of the picture is wider than what was asked for."""
    lines = plot_text(result_of(), "a run", width=width).splitlines()

    picture = [line for line in lines if "┤" in line or "┼" in line or "×" in line][:-1]
    assert max(map(len, picture)) <= width


def test_terminal_chart_is_plain_without_colour() -> None:
    """Escape sequences appear only when colour was asked for."""
    plain = plot_text(result_of(), "a run")
    coloured = plot_text(result_of(), "a run", color=True)

    assert "\x1b" not in plain
    assert "\x1b" in coloured


def test_terminal_chart_marks_refusals_and_the_limit() -> None:
    """A refusal is a cross below the axis; a run without one has none there."""
    with_refusals = plot_text(result_of(), "a run")
    without = plot_text(result_of(refused_at=()), "a run")

    assert "refused (2 of 242)" in with_refusals
    assert with_refusals.count("×") > without.count("×") == 1
    assert "the hidden limit" in with_refusals


def test_charts_do_without_an_oracle() -> None:
    """A server of unknown limit is drawn without one."""
    result = result_of(limit=nan)

    assert "hidden limit" not in plot_text(result, "a run")
    assert "hidden limit" not in plot_svg(result, "a run")


def test_svg_is_well_formed_and_escapes_its_title() -> None:
    """Whatever a spec is called, the document stays valid."""
    document = plot_svg(result_of(), "<a> & 'b'")

    root = ET.fromstring(document)

    assert root.tag.endswith("svg")
    assert "<a> & 'b'" in [element.text for element in root.iter()]


def test_svg_has_one_tick_per_second_with_refusals() -> None:
    """Refusals are drawn one by one, not smoothed away."""
    root = ET.fromstring(plot_svg(result_of(), "a run"))

    ticks = [
        element
        for element in root.iter()
        if element.tag.endswith("line") and element.get("stroke") == REFUSED
    ]
    assert len(ticks) == 2


def test_empty_run_can_be_drawn() -> None:
    """Nothing served is a flat line, not an error."""
    result = summarise(
        [],
        duration_s=1.0,
        allowed=lambda _start, _end: nan,
        wanted=[],
        violations=Violations(gap=0, retry_after=0, half_open=0, in_flight=0),
        wakeups=0,
        events=(),
    )

    assert plot_svg(result, "nothing")
    assert plot_text(result, "nothing")


@pytest.mark.parametrize(
    ("top", "ticks"),
    [(6, [0, 2, 4, 6]), (10, [0, 2.5, 5, 7.5, 10]), (0.8, [0, 0.2, 0.4, 0.6, 0.8])],
)
def test_rate_ticks_are_round(top: float, ticks: list[float]) -> None:
    """An axis is labelled with numbers that people count in."""
    assert rate_ticks(top) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("duration_s", "last"), [(60, "1 min"), (90, "1:30 min"), (900, "14 min"), (45, "45 s")]
)
def test_time_ticks_are_round(duration_s: float, last: str) -> None:
    """Time is labelled in seconds and minutes."""
    ticks = time_ticks(duration_s, 10)

    assert len(ticks) <= 11
    assert duration_label(ticks[-1]) == last
