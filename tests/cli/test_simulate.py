from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

FIGURES = {
    "util",
    "steady_util",
    "rejected",
    "steady_rejected",
    "regret",
    "p95_latency_s",
    "starts",
    "accepted",
    "refused",
    "timeline",
    "convergence_s",
    "gap_violations",
    "retry_after_violations",
    "half_open_violations",
    "in_flight_violations",
    "wakeups",
    "events",
}


def simulate(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return invoke("simulate", "--seconds", "90", *arguments, env=env)


def test_json_holds_every_figure() -> None:
    """The shell gets what `run` returns, and what was run."""
    outcome = simulate("--server", "bucket:5:10", "--strategy", "aimd", "--seed", "3", "--json")

    value = json.loads(outcome.stdout)
    assert outcome.exit_code == 0
    assert value.keys() >= FIGURES
    assert (value["server"], value["strategy"], value["seed"]) == ("bucket:5:10", "aimd", 3)
    assert len(value["timeline"]) == 90


def test_json_is_repeated_by_its_seed() -> None:
    """The same command prints the same bytes."""
    first = simulate("--server", "fixed:60:20", "--json")
    second = simulate("--server", "fixed:60:20", "--json")

    assert first.stdout == second.stdout


def test_without_json_the_rate_is_drawn() -> None:
    """A person gets a picture and the figures worth reading, without escape sequences."""
    outcome = simulate("--server", "bucket:5:10")

    assert outcome.exit_code == 0
    assert "█" in outcome.stdout
    assert "limit used" in outcome.stdout
    assert "\x1b" not in outcome.stdout


def test_plot_writes_an_svg(tmp_path: Path) -> None:
    """`--plot` leaves a file, and stdout stays what it would have been."""
    drawing = tmp_path / "run.svg"

    outcome = simulate("--json", "--plot", str(drawing))

    assert drawing.read_text(encoding="utf-8").startswith("<svg ")
    assert json.loads(outcome.stdout)["strategy"] == "learned"


def test_compare_shows_all_strategies() -> None:
    """One row per strategy; with `--json` one object per strategy."""
    table = simulate("--compare")
    objects = simulate("--compare", "--json")

    names = ["learned", "linear", "aimd", "gradient", "fixed"]
    assert [line.split()[0] for line in table.stdout.splitlines()[3:]] == names
    assert list(json.loads(objects.stdout)) == names


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--server", "bucket:5"), "'BURST' is missing"),
        (("--strategy", "wishful"), "--strategy is 'wishful'"),
        (("--max-rate", "fast"), "--max-rate is 'fast'"),
        (("--max-rate", "0"), "--max-rate is 0.0"),
        (("--compare", "--plot", "x.svg"), "leave out --compare"),
        (("--plot", "/nowhere/at/all.svg"), "cannot write /nowhere/at/all.svg"),
    ],
)
def test_mistake_is_one_sentence_and_exit_code_two(arguments: tuple[str, ...], words: str) -> None:
    """Errors go to stderr, name the mistake, and leave stdout empty."""
    outcome = simulate(*arguments)

    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert outcome.stderr.startswith("mannerly: ")
    assert outcome.stdout == ""


def test_ceiling_below_the_servers_limit_is_pointed_out() -> None:
    """A run that cannot reach the limit says why, on stderr."""
    outcome = simulate("--server", "bucket:30:30", "--max-rate", "4")

    assert "--max-rate is 4 requests/s, below the server's limit" in outcome.stderr


def test_options_come_from_the_environment() -> None:
    """Every long option has a variable, without the command's name in it."""
    outcome = simulate("--json", env={"MANNERLY_STRATEGY": "fixed", "MANNERLY_MAX_RATE": "3"})

    assert json.loads(outcome.stdout)["strategy"] == "fixed"


def test_version_is_printed() -> None:
    """`--version` names the product and its version."""
    outcome = invoke("--version")

    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("mannerly ")
