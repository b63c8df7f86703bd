"""Features whose packages are not installed: one sentence that says what to do."""

from __future__ import annotations

import pytest
from tests.harness.commands import invoke

import mannerly
from mannerly.cli.command_line import ANYWHERE, _with_place
from mannerly.cli.serve import address

SERVER = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(
    "words",
    [
        ("crawl", "https://a.example/", "--redis-url", SERVER),
        ("crawl", "https://a.example/", "--memory", SERVER),
        ("status", SERVER, "--crawl", "a"),
        ("doctor", SERVER),
    ],
)
def test_server_without_its_client_is_refused_in_a_sentence(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """No traceback, and nothing is asked for."""
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.setattr("mannerly.extras.find_spec", lambda _name: None)

    outcome = invoke(*words)

    assert outcome.exit_code == 2, outcome.output
    assert "needs the package redis: in a clone of mannerly, pip install '.[redis]'" in (
        outcome.stderr
    )


def test_client_that_is_too_old_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail with a traceback at its first command."""
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "4.6.0")

    outcome = invoke("status", SERVER, "--crawl", "a")

    assert outcome.exit_code == 2, outcome.output
    assert "needs the package redis 5 or newer, and 4.6.0 is installed: " in outcome.stderr


def test_library_without_the_client_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gets the same sentence."""
    monkeypatch.setattr("mannerly.extras.find_spec", lambda _name: None)

    with pytest.raises(ValueError, match=r"redis_url needs the package redis: .*\[redis\]"):
        mannerly.Crawl("https://a.example/", redis_url=SERVER)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--dashboard", "7465"], None),
        (["--dashboard", "127.0.0.1:7465"], None),
        (["--dashboard", "example.org"], ANYWHERE),
        (["--dashboard"], ANYWHERE),
    ],
)
def test_dashboard_takes_a_port_or_nothing(words: list[str], place: str | None) -> None:
    """A number after it is its port and not a page to crawl."""
    first = "--dashboard" if place is None else f"--dashboard={place}"

    assert _with_place(words) == [first, *words[1:]]


def test_port_alone_is_on_loopback() -> None:
    """As for HOST:PORT without a host."""
    assert address("--dashboard", "7465") == address("--dashboard", ":7465") == ("127.0.0.1", 7465)
