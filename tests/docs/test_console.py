"""Every command in the documents runs, exits as the page says, and prints what the page shows."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import pytest
from tests.docs.console import ROOT, Done, Step, complaints, normal, parts, run
from tests.docs.pretend_web import PretendWeb

from mannerly.cli import commands

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if page.name != "CHANGELOG.md"
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in sorted(PAGES)}
WITH_COMMANDS = [name for name, text in TEXTS.items() if "```console" in text]
IMAGES = ROOT / "docs" / "images"

# What `sh` blocks may contain: installing, building, measuring. Their own tests are named here.
SHELL = {
    "make": "test_make_targets_exist",
    "python -m": "test_modules_exist",
    "pip": "tests/test_wheel.py",
    "pipx": "tests/test_wheel.py",
    "uvx": "tests/test_wheel.py",
    "git clone": "",
    "cd mannerly": "",
    "docker": "tests/test_container.py",
    "mannerly --version": "tests/test_wheel.py",
    "mannerly serve": "tests/service/test_serve.py",
    "mannerly crawl https://example.org/ --dashboard": "tests/service/test_live_page.py",
    "curl": "tests/service/test_serve.py",
    "     -d": "tests/service/test_serve.py",
    "python3 -m venv": "",
    "/opt/mannerly/bin/pip": "tests/test_wheel.py",
    "cp ops/": "tests/ops/test_ops.py",
    "systemctl": "tests/ops/test_ops.py",
}


@pytest.mark.processes
@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_of_a_page_do_what_it_says(name: str, tmp_path: Path) -> None:
    """In a new directory, one after the other; pictures that they draw are those of the page."""
    here = tmp_path / "here"
    here.mkdir()

    with PretendWeb(tmp_path) as web:
        done = run(TEXTS[name], web, here)

    found = complaints(TEXTS[name], done)
    assert not found, "\n\n".join(found)
    for drawn in here.glob("*.svg"):
        printed = IMAGES / drawn.name
        if printed.exists():
            assert drawn.read_bytes() == printed.read_bytes(), f"draw {drawn.name} again"


@pytest.mark.parametrize("name", TEXTS)
def test_commands_are_in_blocks_that_are_run(name: str) -> None:
    """No fenced block but `console` has lines that call mannerly; `sh` has known commands only."""
    fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    for language, block in fence.findall(TEXTS[name]):
        if language == "console":
            continue
        for line in block.splitlines():
            if language == "sh":
                assert line.startswith(tuple(SHELL)), f"{name}: {line}"
            else:
                assert not re.match(r"\$ |mannerly [a-z]+ ", line), f"{name}: {line}"


@pytest.mark.parametrize("name", TEXTS)
def test_commands_in_sentences_exist(name: str) -> None:
    """`mannerly …` in code font names a command that can be typed, with options that it has."""
    known = {f"mannerly {name}": command for name, command in commands().items()}
    for words in re.findall(r"`((?:[A-Z_]+=\S+ )?mannerly [^`]+)`", TEXTS[name]):
        typed = words[words.index("mannerly") :].split()
        for verb in typed[1].split("|"):
            if verb.startswith("-") or verb == "…":
                continue
            path = next(
                (path for path in (f"mannerly {verb}", " ".join(typed[:3])) if path in known), None
            )
            assert path, f"{name}: `{words}`"
            command = known[path]
            params = command.get_params(click.Context(command))
            options = {each for option in params for each in _spellings(option)}
            for word in typed[2:]:
                flag = word.partition("=")[0].rstrip(",.")
                if flag.startswith("--"):
                    assert flag in options, f"{name}: `{words}`: {flag}"


def _spellings(option: object) -> list[str]:
    return [
        *getattr(option, "opts", ()),
        *getattr(option, "secondary_opts", ()),
        "--help",
        "--help-all",
    ]


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", TEXTS)
def test_make_targets_exist(name: str) -> None:
    """`make X` in a page is a target of the Makefile."""
    for words in re.findall(r"(?:^|`)make ([a-z-]+)", TEXTS[name], re.MULTILINE):
        assert words in targets(), f"{name}: make {words}"


@pytest.mark.parametrize("name", TEXTS)
def test_modules_exist(name: str) -> None:
    """`python -m bench X` and its like name modules that are there."""
    for package, word in re.findall(r"python -m ([\w.]+)(?: ([a-z]+)\b)?", TEXTS[name]):
        assert find_spec(package), f"{name}: python -m {package}"
        if package == "bench" and word:
            assert find_spec(f"bench.{word}"), f"{name}: python -m bench {word}"


# ---------------------------------------------------------------------- the judge itself


TEXT = """
```console
$ cat seeds.txt
$ ls nothing
$ echo $?
2
```

```text
# seeds.txt
https://example.org/
```
"""


def test_a_page_is_read_as_commands_and_files() -> None:
    """Commands with the lines below them, files by the comment in their first line."""
    assert parts(TEXT) == [
        Step("cat seeds.txt", ()),
        Step("ls nothing", ()),
        Step("echo $?", ("2",)),
        ("seeds.txt", "# seeds.txt\nhttps://example.org/\n"),
    ]


def test_a_failure_must_be_told() -> None:
    """A command may fail if the page says so; a line that was not printed is found."""
    did = [Done("cat seeds.txt", 1, ""), Done("ls nothing", 2, ""), Done("echo $?", 0, "2\n")]

    (only,) = complaints(TEXT, did)

    assert only.startswith("$ cat seeds.txt\nexits with 1")
    assert len(complaints(TEXT.replace("\n2\n", "\nthree\n"), did)) == 2


def test_numbers_and_times_do_not_matter() -> None:
    """Everything else does."""
    assert normal("770 pages in 1 min 40 s,  7.7/s") == normal("12 pages in 3.2 s, 1,204.5/s")
    assert normal("12 pages") != normal("12 hosts")
