"""What the command says about itself: --help, --help-all, topics, completion in shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.commands import invoke

from mannerly.cli import app
from mannerly.cli.help import topics
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import GROUPS, OPTIONS

PATIENCE_S = 60
NARROW = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}


def shown(*arguments: str) -> str:
    outcome = invoke(*arguments, env=NARROW)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def test_help_shows_the_usual_options_in_groups() -> None:
    """A few screens at most, then where the others are, then examples."""
    text = shown("crawl", "--help")
    lines = text.splitlines()

    assert [title for title in GROUPS if f"{title}:" in lines] == [
        "What to crawl",
        "Politeness",
        "Network and resources",
        "Pages that need a browser",
        "This run",
    ]
    assert len(lines) <= 140
    assert max(map(len, lines)) <= 88
    for name, option in OPTIONS.items():
        is_shown = re.search(rf"--(\[no-\])?{name.replace('_', '-')}\b(?!-)", text) is not None
        assert is_shown or option.is_advanced, name
    assert "more options: mannerly crawl --help-all" in text
    assert text.index("Examples:") > text.index("This run:")


@pytest.mark.parametrize("command", ["crawl", "resume"])
def test_help_all_shows_every_option(command: str) -> None:
    """In the groups of docs/reference/options.md; `resume` has those that it can change."""
    text = shown(command, "--help-all")

    missing = [
        name
        for name in OPTIONS
        if not re.search(rf"--(\[no-\])?{name.replace('_', '-')}\b(?!-)", text)
    ]
    assert "more options" not in text
    kept = {"scope", "include", "exclude", "max_depth", "seeding_strategy", "drop_tracking"}
    kept |= {"follow", "sitemap"}
    assert set(missing) == (set() if command == "crawl" else kept | {"data_dir", "fresh"})


def test_every_option_says_its_default() -> None:
    """And one that has none, or a list, need not."""
    silent = [
        name
        for name, option in OPTIONS.items()
        if "default" not in option.help.lower()
        and option.kind not in (ValueKind.LIST, ValueKind.HOSTS, ValueKind.FILE)
        and option.target is not None
    ]

    assert silent == []


def test_commands_are_listed_in_groups_with_examples() -> None:
    """The first screen that a newcomer sees."""
    text = shown("--help")

    for part in ("Run a crawl:", "Inspect a crawl:", "Steer a crawl:", "Examples:"):
        assert part in text
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize("topic", topics())
def test_topic_is_short_and_true(topic: str) -> None:
    """It fits a screen, and the options and commands in it exist."""
    text = shown("help", topic)

    flags = {option.flag for option in OPTIONS.values()} | {"--help", "--help-all", "--origin"}
    negated = {flag.replace("--", "--no-", 1) for flag in flags}
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= flags | negated
    named = set(re.findall(r"mannerly (?!COMMAND)([a-z]+)\b", text.replace("mannerly is", "")))
    assert named <= set(app.commands)
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 88


def test_help_without_a_topic_lists_them() -> None:
    """Each with its first line; a command is explained, too; a typo is met with the right name."""
    text = shown("help")
    wrong = invoke("help", "politness")

    assert all(f"  {topic}" in text for topic in topics())
    assert {"politeness", "resume", "exit-codes", "config", "proxy", "robots"} <= set(topics())
    assert shown("help", "status").startswith("Usage: mannerly status")
    assert wrong.exit_code == 2
    assert "there is no topic 'politness'; did you mean politeness?" in wrong.stderr


# ---------------------------------------------------------------------- shells


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `mannerly` is this one."""
    program = tmp_path / "mannerly"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mannerly "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.defpath}"


WORDS = [
    ("mannerly cra", ["crawl"]),
    ("mannerly crawl --breaker-open", ["--breaker-open", "--breaker-open-max"]),
    ("mannerly crawl --scope s", ["site"]),
    ("mannerly host s", ["set", "show"]),
    ("mannerly help exit", ["exit-codes"]),
]


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_values(path: str) -> None:
    """By the script that is printed, in a real shell."""
    script = ['eval "$(mannerly completion bash)"']
    for words, _ in WORDS:
        script += [
            f"COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()",
            '_mannerly_completion mannerly; echo "${COMPREPLY[@]}"',
        ]

    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        env={"PATH": path, "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )

    assert [sorted(line.split()) for line in done.stdout.splitlines()] == [
        expected for _, expected in WORDS
    ]


@pytest.mark.processes
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_what_their_scripts_ask_for(shell: str, path: str) -> None:
    """The script names the variable by which it asks, and the answer has the words."""
    script = shown("completion", shell)
    assert f"_MANNERLY_COMPLETE={shell}_complete" in script
    for words, expected in WORDS:
        done = subprocess.run(
            ["mannerly"],
            env={
                "PATH": path,
                "HOME": "/nowhere",
                "_MANNERLY_COMPLETE": f"{shell}_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": words.split()[-1] if shell == "fish" else str(words.count(" ")),
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            executable=str(Path(path.split(os.pathsep, maxsplit=1)[0]) / "mannerly"),
        )

        assert all(word in done.stdout for word in expected)
        assert "Traceback" not in done.stderr
