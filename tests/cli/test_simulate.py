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


SUITE = """
from mannerly.simulation.laws import Law


class Halving(Law):
    def learn(self, permit, response, now):
        self.delay_s *= 2.0 if response.status == 429 else 0.99


class Doorman:
    def __init__(self):
        self.next_at = 0.0

    def request(self, now, in_flight):
        if now < self.next_at:
            return 429, 0.02, {}
        self.next_at = now + 0.25
        return 200, 0.1, {}

    def allowed(self, start, end):
        return 4 * (end - start)


def no_law():
    return 1


SERVERS = {"a bucket": "bucket:3:3", "slowly": ("bucket:4:4", 60.0, {"max_rate": 2.0})}
DOORS = {"a door": Doorman}
WRONG = {"a number": 7}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "my_suite.py"
    file.write_text(SUITE)
    return file


def test_a_suite_shows_where_laws_stand(suite: Path) -> None:
    """A row for each server, a column for our strategy and for a law of a user's own."""
    outcome = simulate("--suite", "moving", "--seeds", "1", "--law", f"{suite}:Halving")

    assert outcome.exit_code == 0
    assert "learned" in outcome.stdout
    assert "Halving" in outcome.stdout
    assert "falls to 1.5/s" in outcome.stdout
    assert "worst limit used" in outcome.stdout


def test_servers_of_a_file_have_their_own_time_and_settings(suite: Path) -> None:
    """A ceiling of 2/s uses half of a limit of 4/s; classes are servers, too."""
    named = json.loads(invoke("simulate", "--suite", str(suite), "--seeds", "2", "--json").stdout)
    doors = json.loads(simulate("--suite", f"{suite}:DOORS", "--seeds", "1", "--json").stdout)

    servers = named["learned"]["servers"]
    assert 0.45 <= servers["slowly"]["limit_used"] <= 0.55
    assert servers["a bucket"]["limit_used"] > 0.8
    assert named["learned"]["worst_limit_used"] == servers["slowly"]["limit_used"]
    assert named["learned"]["mean"]["broken"] == 0
    assert doors["learned"]["servers"].keys() == {"a door"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--suite", "none"], "usual, moving, or FILE.py"),
        (["--suite", "nowhere.py"], "no file nowhere.py"),
        (["--suite", "{file}:NOTHING"], "no dict NOTHING"),
        (["--suite", "{file}:WRONG"], "neither a spec"),
        (["--suite", "usual", "--law", "x"], "not FILE.py:NAME"),
        (["--suite", "usual", "--law", "{file}:Missing"], "no class or function Missing"),
        (["--suite", "usual", "--law", "{file}:no_law"], "reserve and report"),
        (["--law", "{file}:Halving"], "add --suite"),
        (["--suite", "usual", "--plot", "x.svg"], "leave out --suite"),
    ],
)
def test_mistakes_in_suites_and_laws_are_named(suite: Path, words: list[str], problem: str) -> None:
    """Each says what to write."""
    outcome = simulate(*(word.format(file=suite) for word in words))

    assert outcome.exit_code == 2
    assert problem in outcome.stderr
