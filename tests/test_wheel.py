"""The wheel that users install: built, checked, installed into a new environment, and tried."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from mannerly.demo import DemoWeb, plain_sites

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
QUIET = ("--quiet", "--disable-pip-version-check")


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, and return what it printed."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the locked build backend: nothing is downloaded."""
    place = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "pip", "wheel", *QUIET, "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", place, ROOT),
        cwd=place,
    )
    (built,) = place.glob("mannerly-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment: the wheel, its locked dependencies, and no more."""
    place = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    install = ("install", *QUIET, "--no-compile")
    pip_of(place, *install, "--require-hashes", "--requirement", ROOT / "locks" / "run.txt")
    pip_of(place, *install, "--no-deps", wheel)
    return place / "bin"


def pip_of(place: Path, *words: str | Path) -> str:
    """Run our own pip on another environment: to install one there takes longer than the wheel."""
    return run(sys.executable, "-m", "pip", "--python", place, *words, cwd=place)


def test_wheel_passes_the_index_check(wheel: Path) -> None:
    """`twine check --strict` accepts its metadata and its description."""
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=ROOT)


def test_wheel_holds_the_package_alone(wheel: Path) -> None:
    """With `py.typed` and the licence, without tests or documents."""
    names = zipfile.ZipFile(wheel).namelist()

    assert "mannerly/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    scripts = {each.name for each in (ROOT / "src").rglob("*.lua")}
    assert scripts == {name.rpartition("/")[2] for name in names if name.endswith(".lua")} != set()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"mannerly"}


def test_source_distribution_holds_what_is_needed(tmp_path: Path) -> None:
    """To build, to read and to test it: sources, tests, documents, locks, and nothing else."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (built,) = tmp_path.glob("mannerly-*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.partition("/")[0] for name in names}

    assert {"src", "tests", "virtual", "docs", "examples", "locks"} <= tops
    assert {"Makefile", "LICENSE", ".ci"} <= tops
    assert {name for name in names if name.endswith(".lua")}
    assert not {name for name in names if ".venv" in name or name.endswith((".pyc", ".db"))}


def test_installed_command_crawls(installed: Path, tmp_path: Path) -> None:
    """`--help` prints, dependencies are complete, and a small crawl is exported."""
    with DemoWeb(plain_sites(1, pages=4)) as web:
        helped = run(installed / "mannerly", "--help", cwd=tmp_path)
        run(
            *(installed / "mannerly", "crawl", web.seeds()[0], "--start-rate", "50"),
            *("--max-rate", "100", "--quiet", "-o", "pages.jsonl"),
            cwd=tmp_path,
        )

    pip_of(installed.parent, "check")
    records = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert "crawl" in helped
    assert [record["status"] for record in records] == [200] * 4


def test_installed_library_iterates(installed: Path, tmp_path: Path) -> None:
    """The same from a program that knows nothing but the installed package."""
    program = "import mannerly, sys; print(len(list(mannerly.crawl(sys.argv[1], start_rate=50))))"

    with DemoWeb(plain_sites(1, pages=3)) as web:
        printed = run(installed / "python", "-c", program, web.seeds()[0], cwd=tmp_path)

    assert printed.strip() == "3"
