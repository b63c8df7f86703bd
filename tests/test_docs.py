"""The documents are held to what they say: code runs, links lead somewhere, nothing is left out."""

from __future__ import annotations

import ast
import asyncio
import doctest
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import unquote

import click
import pytest

from docs import generate
from mannerly import politeness
from mannerly.adapters.requests import PoliteAdapter
from mannerly.cli import commands as all_commands
from mannerly.politeness import Response, Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.settings import STRATEGIES
from mannerly.politeness.testing import FakeClock, ScriptedServer
from mannerly.simulation.spec import grammar

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
EVERYTHING = "\n".join(TEXTS.values())
README = ROOT / "README.md"
DOCS = ROOT / "docs"
GUIDE = DOCS / "how-to" / "politeness.md"
LIBRARY = DOCS / "how-to" / "library.md"  # its code needs servers: tests/library/test_guide.py
DATA = DOCS / "how-to" / "data.md"  # its code needs a crawl: tests/exports/test_guides.py
# These have files that serve or crawl: tests/docs/test_console.py, tests/docs/test_coming_from.py.
FILES = (DOCS / "tutorial-spiders.md", DOCS / "how-to" / "coming-from.md")
ELSEWHERE = (LIBRARY, DATA, *FILES)
RUNNABLE = [page for page in PAGES if "```python" in TEXTS[page] and page not in ELSEWHERE]

# What belongs to somebody's workshop and not to the product.
FORBIDDEN = re.compile(
    r"/work/|/tmp/|/root/|/home/|localhost:\d|pypi\.|\bLLM\b|language model|\bchatbot\b"
    r"|\b(?:AI|coding|sub)[ -]?agents?\b|\bprompts?\b|\bTODO\b|\bFIXME\b|\blorem\b",
    re.IGNORECASE,
)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def python_blocks(page: Path) -> list[str]:
    """The Python code of a page, block by block, but for crawls: `tests.docs.console` runs them."""
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXTS[page], re.DOTALL | re.MULTILINE)
    return [block for block in blocks if not re.search(r"mannerly\.[cC]rawl\(", block)]


def run_blocks(page: Path) -> dict[str, Any]:
    """Run all blocks of a page in one namespace, those with `>>>` as doctests."""
    space: dict[str, Any] = {"__name__": "docs"}
    for number, block in enumerate(python_blocks(page), 1):
        if not block.startswith(">>>"):
            exec(compile(block, f"{named(page)}, block {number}", "exec"), space)
            continue
        case = doctest.DocTestParser().get_doctest(block, space, named(page), str(page), 0)
        complaints: list[str] = []
        failures = doctest.DocTestRunner().run(case, out=complaints.append, clear_globs=False)
        assert not failures.failed, "".join(complaints)
        space.update(case.globs)
    return space


class Answer:
    """An answer in the words of httpx and requests, and of aiohttp."""

    def __init__(self, response: Response) -> None:
        self.status = self.status_code = response.status
        self.headers = response.headers
        self.content = b"hello"

    async def read(self) -> bytes:
        return self.content

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Client:
    """A client in the middle of a fake world: `get` may be awaited, entered, or called."""

    def __init__(self, server: ScriptedServer, clock: FakeClock) -> None:
        self.server, self.clock = server, clock

    def get(self, url: str, **_: object) -> Answer:
        return Answer(self.server.answer(self.clock.now()))


class AwaitedClient(Client):
    async def get(self, url: str, **_: object) -> Answer:  # type: ignore[override]
        return super().get(url)


URLS = [f"https://example.com/{number}" for number in range(3)]


# ---------------------------------------------------------------------- code


@pytest.mark.parametrize("page", RUNNABLE, ids=named)
def test_code_of_a_page_runs(page: Path) -> None:
    """Every Python block of every page runs, and prints what the page says."""
    run_blocks(page)


async def test_readme_asyncio_example_keeps_the_pace() -> None:
    """Three pages of one host start a second apart, and a Retry-After is waited out."""
    clock = FakeClock()
    asked = Response(429, 0.1, {"retry-after": "20"})
    server = ScriptedServer(200, asked, 200)
    fetch_all = run_blocks(README)["fetch_all"]
    settings = Settings(seed=1)

    work = asyncio.create_task(
        fetch_all(AwaitedClient(server, clock), URLS, AsyncPoliteness(settings, clock=clock))
    )
    await clock.run(work)

    first_s, second_s = server.gaps_s
    assert first_s == 1.0
    assert 20.0 <= second_s <= 21.0


def test_thread_example_reports_every_answer() -> None:
    """The same without `async`: each host is asked, and every answer is known afterwards."""
    clock = FakeClock()
    politeness = ThreadedPoliteness(Settings(), clock=clock)
    fetch_all = run_blocks(GUIDE)["fetch_all_in_threads"]
    urls = [f"https://host-{number}.example/" for number in range(3)]

    with ThreadPoolExecutor(3) as pool:
        fetch_all(Client(ScriptedServer(200), clock), urls, pool, politeness)

    snapshot = politeness.snapshot()
    assert (snapshot.requests, snapshot.cancelled, snapshot.in_flight) == (3, 0, 0)


def test_guide_opens_polite_clients() -> None:
    """The lines for each client make a client that uses the adapter."""
    space = run_blocks(GUIDE)

    with space["open_requests_session"]() as session:
        assert isinstance(session.get_adapter("http://example.com/"), PoliteAdapter)
        assert session.get_adapter("http://a/") is session.get_adapter("https://a/")
    assert space["open_httpx_client"]().is_closed is False


class Redirecting:
    """A client whose every URL leads to the next host; it refuses to follow by itself."""

    def get(self, url: str, *, allow_redirects: bool) -> SimpleNamespace:
        assert not allow_redirects
        number = int(re.findall(r"\d+", url)[0])
        return SimpleNamespace(
            status_code=302 if number < 3 else 200,
            headers={},
            is_redirect=number < 3,
            next=SimpleNamespace(url=f"https://host-{number + 1}.example/"),
        )


def test_guide_takes_a_slot_for_every_redirect() -> None:
    """Three redirects are four requests, each in a slot of its own host."""
    politeness = ThreadedPoliteness(Settings(), clock=FakeClock())
    get_and_follow = run_blocks(GUIDE)["get_and_follow"]

    answer = get_and_follow(politeness, Redirecting(), "https://host-0.example/")

    asked = [politeness.host(f"host-{number}.example") for number in range(4)]
    assert answer.status_code == 200
    assert [host and host.requests for host in asked] == [1, 1, 1, 1]


async def test_guide_retries_until_it_is_told_to_give_up() -> None:
    """The loop takes a new slot for each attempt, and three failures are enough."""
    clock = FakeClock()
    server = ScriptedServer(503)
    get_with_retries = run_blocks(GUIDE)["get_with_retries"]
    politeness = AsyncPoliteness(Settings(seed=1), clock=clock)

    work = asyncio.create_task(get_with_retries(politeness, AwaitedClient(server, clock), URLS[0]))
    await clock.run(work)

    assert work.result().status_code == 503
    assert len(server.starts) == 3
    assert min(server.gaps_s) >= 1.0 - 1e-9


# ---------------------------------------------------------------------- completeness


def commands() -> dict[str, list[str]]:
    """Every command that can be typed, with its options."""
    return {
        f"mannerly {name}": [
            flag for param in command.get_params(click.Context(command)) for flag in param.opts
        ]
        for name, command in all_commands().items()
    }


@pytest.mark.parametrize("command", commands())
def test_every_command_is_documented(command: str) -> None:
    """A command that can be typed can be read about."""
    assert command in EVERYTHING


@pytest.mark.parametrize("option", commands()["mannerly simulate"])
def test_every_option_of_simulate_is_documented(option: str) -> None:
    """The table of the simulator's page is complete."""
    assert f"`{option}" in TEXTS[DOCS / "reference" / "simulation.md"] or option == "--help"


@pytest.mark.parametrize("name", politeness.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    """Whatever the politeness package exports is explained in its guide."""
    assert f"`{name}`" in TEXTS[GUIDE] or f"`{name}(" in TEXTS[GUIDE]


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_is_documented(name: str) -> None:
    """Each setting has its row in the reference."""
    assert f"| `{name}` |" in TEXTS[DOCS / "reference" / "settings.md"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_documented(strategy: str) -> None:
    """Each strategy has a section with its formula or rules and advice when to use it."""
    sections = re.split(r"^## ", TEXTS[DOCS / "explanation" / "strategies.md"], flags=re.MULTILINE)

    section = next(text for text in sections if text.startswith(f"{strategy}\n"))

    assert "**Idea.**" in section
    assert "```" in section
    assert "**When.**" in section


def test_whole_grammar_of_servers_is_documented() -> None:
    """The simulator's page has every form of a spec, with the meaning that errors print."""
    page = TEXTS[DOCS / "reference" / "simulation.md"]

    for line in grammar().splitlines():
        spec, meaning = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        assert f"| `{spec}` | {meaning} |" in page


def test_settings_page_is_current() -> None:
    """The generated page is what would be generated now."""
    assert generate.main(["--check"]) == 0


# ---------------------------------------------------------------------- references


def test_decision_records_are_numbered_and_listed() -> None:
    """Each record has a number of its own and the four parts, fits a page, and is listed."""
    folder = DOCS / "adr"
    records = sorted(folder.glob("0*.md"))

    numbers = [int(record.name[:4]) for record in records]

    assert len(set(numbers)) == len(numbers)
    for record in records:
        text = TEXTS[record]
        assert text.startswith(f"# {record.name[:4]} ")
        parts = re.findall(r"^(Status|## \w+)", text, re.MULTILINE)
        parts = [part for part in parts if part != "## Why"]  # where the decision does not say it
        assert parts == ["Status", "## Context", "## Decision", "## Consequences"]
        assert len(text.splitlines()) <= 66
        assert f"]({record.name})" in TEXTS[folder / "README.md"]


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.*)$", TEXTS[page], re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in words}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that exists, and its anchor a heading there."""
    text = re.sub(r"^```.*?^```$", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)

    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{named(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{named(page)} links to {link}"


def all_tests() -> set[str]:
    names = set()
    contract = ROOT / "src" / "mannerly" / "crawler" / "store" / "contract"
    for file in chain((ROOT / "tests").rglob("*.py"), contract.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
    return names


def test_named_tests_exist() -> None:
    """A document that points at a test points at one that is there."""
    named_tests = set(re.findall(r"`(test_\w+)`", EVERYTHING))

    assert named_tests
    assert not named_tests - all_tests()


# The capabilities of the five design documents, by letter: A1 to A21 and so on.
CAPABILITIES = {
    "A": 21, "B": 17, "C": 5, "D": 6, "E": 11, "F": 12, "G": 12, "H": 7, "I": 10, "J": 8, "K": 8,
}  # fmt: skip
DECLINED = "declined"


def test_every_requirement_has_a_row_with_a_test_or_is_declined() -> None:
    """117 rows in order; each names a test, a benchmark or tests' file, or is declined."""
    page = TEXTS[DOCS / "requirements.md"]
    rows = re.findall(r"^\| ([A-K]\d+) \| (.*) \|$", page, re.MULTILINE)

    wanted = [f"{letter}{n}" for letter, most in CAPABILITIES.items() for n in range(1, most + 1)]

    assert len(wanted) == 117
    assert [row for row, _ in rows] == wanted
    for row, words in rows:
        shown = words.split(" | ")[-2]
        assert re.search(r"`test_\w+`|`python -m bench \w+|`tests/", shown) or (
            DECLINED in words
        ), row


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_named_files_exist(page: Path) -> None:
    """A path in code font is the path of a file, from the root or within the package."""
    paths = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", TEXTS[page])

    for path in paths:
        if path.startswith(".cache/"):  # what benchmarks leave behind
            continue
        places = (ROOT / path, ROOT / "src" / "mannerly" / path)
        places += (ROOT / "src" / "mannerly" / "politeness" / path,)
        assert any(place.exists() for place in places), f"{named(page)} names {path}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_documents_speak_of_the_product_alone(page: Path) -> None:
    """No paths of a developer's machine, no unfinished notes."""
    assert FORBIDDEN.findall(TEXTS[page]) == []
