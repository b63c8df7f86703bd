"""What is installed is known: locked with hashes, listed, audited; vendored files are unchanged."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from supply.audit import CLEAN, NOT_AUDITED, VULNERABLE, judge
from supply.bom import bill_of_materials
from supply.lock import LOCKS, ROOT, read_lock

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = ROOT / "tests" / "politeness" / "robots_corpus"
PAGE = ROOT / "src" / "mannerly" / "service" / "static" / "vendor"


def _names(requirements: list[str]) -> set[str]:
    found = [re.match(r"[A-Za-z0-9._-]+", each) for each in requirements]
    return {re.sub(r"[._]", "-", each[0]).lower() for each in found if each}


def test_every_dependency_is_locked_with_hashes() -> None:
    """Each direct dependency has a pin, in both lock files the same, and each pin a hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    run = {pin.name: pin for pin in read_lock(LOCKS / "run.txt")}
    dev = {pin.name: pin for pin in read_lock(LOCKS / "dev.txt")}

    assert _names(project["project"]["dependencies"]) <= run.keys()
    groups = project["dependency-groups"]  # dev includes docs
    assert _names([each for each in groups["dev"] if isinstance(each, str)]) <= dev.keys()
    assert _names(groups["docs"]) <= dev.keys()
    assert {"hatchling", "editables"} <= dev.keys()
    assert {name: dev[name].version for name in run} == {n: p.version for n, p in run.items()}


@pytest.mark.parametrize("name", ["run", "dev", "audit", "replay"])
def test_lock_names_no_index(name: str) -> None:
    """A lock holds for any index: it has no address in it, and no option of pip but hashes."""
    text = (LOCKS / f"{name}.txt").read_text("utf-8")

    assert "://" not in text
    assert {word for word in text.split() if word.startswith("-")} <= {
        word for word in text.split() if word.startswith("--hash=sha256:")
    }


def test_dependencies_are_ranges() -> None:
    """A fix of a dependency can be installed without a release of ours: no exact pin.

    What follows a semicolon says on which machines it is needed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    ranges = [each.partition(";")[0] for each in project["project"]["dependencies"]]
    assert [each for each in ranges if "==" in each] == []
    assert [each for each in project["dependency-groups"]["dev"] if "==" in each] == []


def test_a_pin_without_a_hash_is_refused(tmp_path: Path) -> None:
    """A lock file that was edited by hand is not half trusted."""
    file = tmp_path / "run.txt"

    for text in ("click==8.5.1\n", "click>=8.5\n", "-i https://example.org/simple\n"):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"run\.txt"):
            read_lock(file)


def test_bill_of_materials_lists_every_pin() -> None:
    """What runs is required, what only tests is excluded, and each has its hashes."""
    bill = json.loads(bill_of_materials())

    scopes = {each["name"]: each["scope"] for each in bill["components"]}
    assert scopes == {pin.name: "excluded" for pin in read_lock(LOCKS / "dev.txt")} | {
        pin.name: "required" for pin in read_lock(LOCKS / "run.txt")
    }
    assert all(each["hashes"] for each in bill["components"])


@pytest.mark.parametrize(
    ("answer", "complaints", "code", "words"),
    [
        ("", "requests.exceptions.ConnectionError: refused\n", NOT_AUDITED, "cannot be reached"),
        (
            '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}',
            "",
            NOT_AUDITED,
            "no answer for 1 of 1",
        ),
        (
            (
                '{"dependencies": [{"name": "a", "version": "1", "vulns": '
                '[{"id": "PYSEC-1", "fix_versions": ["2"]}]}]}'
            ),
            "",
            VULNERABLE,
            "a 1: PYSEC-1, fixed in 2",
        ),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}',
            "",
            CLEAN,
            "no known security hole in 1 packages",
        ),
    ],
)
def test_audit_passes_only_what_was_audited(
    answer: str, complaints: str, code: int, words: str
) -> None:
    """Silence of the advisory service is no clean bill."""
    found, text = judge("run", answer, complaints)

    assert found == code
    assert words in text


@pytest.mark.parametrize("folder", [CORPUS, PAGE], ids=["robots", "page"])
def test_vendored_files_are_what_they_were(folder: Path) -> None:
    """Robots.txt files of protego 0.7.0, and the chart and font of the page, have their digests."""
    lines = (line.partition("  ") for line in (folder / "SHA256SUMS").read_text().splitlines())
    listed = {name: digest for digest, _, name in lines}

    files = [path for path in folder.iterdir() if path.suffix in (".txt", ".js", ".css", ".woff2")]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    assert found == listed
