"""What the terminal shows, as pure functions: frozen moments, widths, colours, redraws.

The screens are in `screens/`, written by `python -m tests.cli.moments`: read them beside a change.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.fake_terminal import FakeTerminal
from tests.cli.moments import ENDS, HOSTS, MOMENTS, SCREENS, screens

from mannerly.cli.block import block
from mannerly.cli.display import Display, cut, display_of, short_host, width
from mannerly.cli.host_table import busiest, host_table
from mannerly.cli.screen import redraw
from mannerly.cli.summary import summary
from mannerly.crawler.host_view import HostStatus
from mannerly.live.meter import CrawlState

PAINT = re.compile(r"\x1b\[[0-9;]*m")
LINES = st.lists(st.text("ab ●é", max_size=30), max_size=7)


def test_every_screen_is_as_it_was() -> None:
    """At 80, 120 and 200 columns; there is no file without its screen."""
    stored = {path.name: path.read_text(encoding="utf-8") for path in SCREENS.iterdir()}

    assert {name: text + "\n" for name, text in screens().items()} == stored


@pytest.mark.parametrize("columns", [20, 59, 60, 79, 80, 99, 100, 120, 200])
@pytest.mark.parametrize("moment", MOMENTS)
def test_no_line_of_the_block_wraps(moment: str, columns: int) -> None:
    """A wrapped line is what leaves ghosts; one column is spared."""
    lines = block(MOMENTS[moment], Display(columns, 40))
    ascii_lines = block(MOMENTS[moment], Display(columns, 40, is_unicode=False))

    assert all(width(line) < columns for line in [*lines, *ascii_lines])
    assert len(lines) <= 7


def test_small_terminals_get_the_first_lines() -> None:
    """Fewer than 14 rows: what it does and how far; fewer than 60 columns: what it does."""
    running = MOMENTS["running"]
    few_rows, few_columns = block(running, Display(80, 13)), block(running, Display(59, 40))

    assert [len(block(running, Display(80, 14))), len(few_rows), len(few_columns)] == [7, 2, 1]
    assert few_columns[0].startswith("● Running  31.4 pages/s")


def test_without_unicode_every_character_is_ascii() -> None:
    """Block, summary and table."""
    display = Display(120, 40, is_unicode=False)
    texts = ["\n".join(block(live, display)) for live in MOMENTS.values()]
    texts += [summary(ended, display) for ended in ENDS.values()]
    texts += host_table(HOSTS, display)

    assert all(text.isascii() for text in texts)


@pytest.mark.parametrize(("colors", "code"), [(256, "1;38;5;32"), (16, "1")])
def test_colour_changes_nothing_but_the_colour(colors: int, code: str) -> None:
    """Only glyphs, state words and the bar have one."""
    display = Display(80, 40)
    for live in MOMENTS.values():
        painted = block(live, display._replace(colors=colors))
        assert [PAINT.sub("", line) for line in painted] == block(live, display)
    running = block(MOMENTS["running"], display._replace(colors=colors))

    assert running[0].startswith(f"\x1b[{code}m● Running\x1b[0m  31.4")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colors"),
    [
        ({"TERM": "xterm-256color"}, 256),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, 256),
        ({"TERM": "xterm"}, 16),
        ({"TERM": "xterm", "NO_COLOR": ""}, 16),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, 0),
        ({"TERM": "dumb"}, 0),
        ({}, 0),
    ],
)
def test_colours_are_as_the_environment_says(environment: dict[str, str], colors: int) -> None:
    """And none where there is no terminal."""
    assert display_of(Terminal(), environment).colors == colors
    assert display_of(io.StringIO(), environment).colors == 0


def test_hosts_are_cut_in_the_middle_and_keep_their_domain() -> None:
    """The registrable domain says whose host it is."""
    name = "a-very-long-name-of-a-department.university.example.edu"
    short = short_host(name, 30)

    assert width(short) == 30
    assert short.endswith(".example.edu")
    assert short_host("docs.example.net", 30) == "docs.example.net"
    assert "\x1b" not in short_host("evil\x1b[2J.example", 30)


def test_wide_characters_take_two_columns() -> None:
    """So a title in Chinese does not wrap, and a combining mark takes none."""
    assert (width("漢字"), width("e\u0301")) == (4, 1)
    assert cut("漢字漢字", 5) == "漢字"


def test_busiest_hosts_fit_into_the_rows_that_are_left() -> None:
    """The longest queues come first; without room there is none."""
    display = Display(80, 40)

    assert len(busiest(HOSTS, display, rows=5)) == 5
    assert "archive" in busiest(HOSTS, display, rows=5)[2]
    assert busiest(HOSTS, display, rows=1) == []


def test_hosts_without_an_instant_have_a_dash() -> None:
    """Paused and given-up ones: nothing can be said about when."""
    rows = dict(zip(HOSTS, host_table(HOSTS, Display(80))[1:], strict=True))

    for host, row in rows.items():
        assert ("–" in row) == (host.state in (HostStatus.PAUSED, HostStatus.GIVEN_UP))


def test_every_state_has_a_moment() -> None:
    """So that no state is without a screen."""
    assert {live.state for live in MOMENTS.values()} == set(CrawlState)


# ---------------------------------------------------------------------- drawing


@given(blocks=st.lists(st.tuples(LINES, st.lists(st.text("xy", max_size=50), max_size=2))))
def test_after_any_redraws_the_screen_has_the_lines_and_the_last_block(
    blocks: list[tuple[list[str], list[str]]],
) -> None:
    """Lines that were printed above stay in order, and nothing of an older block is left."""
    terminal, old, above = FakeTerminal(), list[str](), list[str]()
    for new, printed in blocks:
        terminal.feed(redraw(old, new, printed, columns=80))
        old = new
        above += printed

    seen = "\n".join(line.rstrip() for line in [*above, *old]).rstrip("\n")
    assert terminal.text == seen


@pytest.mark.parametrize("columns", [50, 79, 81, 200])
def test_resize_leaves_no_ghosts(columns: int) -> None:
    """The terminal wraps the old block anew; all its rows are drawn over."""
    running = MOMENTS["running"]
    before, after = block(running, Display(80, 40)), block(running, Display(columns, 40))
    terminal = FakeTerminal(80)
    terminal.feed(redraw([], before, ["a line above"], columns=80))

    terminal.resize(columns)
    terminal.feed(redraw(before, after, columns=columns))

    assert terminal.text == "\n".join(["a line above", *after])


def test_lines_that_did_not_change_are_not_sent_again() -> None:
    """Four redraws a second over a slow line."""
    running = block(MOMENTS["running"], Display(80, 40))
    later = [running[0].replace("31.4", "31.5"), *running[1:]]

    sent = redraw(running, later, columns=80)

    assert "31.5" in sent
    assert "known" not in sent


def test_screens_name_no_path_of_this_machine() -> None:
    """They are read by everybody."""
    assert not [name for name in screens() if str(Path.home()) in screens()[name]]
