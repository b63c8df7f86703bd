"""The words of the source: docstrings are sentences, one name has one meaning, files are short."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.model import LocalError
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.web.scope import SkipReason
from mannerly.crawler.web.sitemaps import SitemapProblem
from mannerly.crawler.web.urls import UrlRefusal
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "src"
MODULES = {
    str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8")
    for file in sorted(SOURCE.rglob("*.py"))
}

MOST_LINES = 400
QUESTION = re.compile(
    r"(?:What|Who|Whom|Whose|How|Where|Whether|Which|When|Why|Whatever|Whoever)\b"
)
FOREIGN = re.compile(r"\b[Dd]ocument 00\d|\b[Dd]esign(?:\.md)? §")
VAGUE = re.compile(
    r"\b(?:nobody|somebody|everybody|anybody|whoever|strangers?|the dead|bury|buries|buried|in vain"
    r"|conductor|workplace|errands?|witness|ration|hostbook|since a while|belongs? into"
    r"|cannot be had|is met with|onlookers?|cheap to dear)\b",
    re.IGNORECASE,
)
# Words of the domain that were replaced by plain ones, in sentences and in names.
REPLACED = re.compile(
    r"(?<![A-Za-z])(?:hopeless|hush|crowd(?:s|ed)?|lend|regain(?:s|ed)?|handed out|worker cards?"
    r"|WorkerCard|HostLooks|PageLooked)(?![a-z])|events as told",
    re.IGNORECASE,
)
# Words that need a second read, in documents and help topics.
UNCLEAR = re.compile(
    r"\b(?:hopeless|crowds|worker cards?|handed out|in vain|can(?:not)? be had|cheap to dear"
    r"|dear(?:er)? (?:part|still)"
    r"|since a while|belongs? into|onlookers?|ha(?:s|ve) (?:its|their) part|is met with"
    r"|those that are left|what was handed out|which of them it is|nothing is sent for as long"
    r"|looks? for hope)\b"
    r"|^\| (?:to|you want(?: to)?) \|",
    re.IGNORECASE,
)
ROOT = SOURCE.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((SOURCE / "mannerly" / "cli" / "topics").glob("*.txt")),
    ROOT / "tests" / "README.md",
]


@cache
def trees() -> dict[str, ast.Module]:
    """Return each module as its parts; at the first call, as every process imports this file."""
    return {name: ast.parse(text) for name, text in MODULES.items()}


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of a module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "name", "module"), text


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Return the lines of all modules in which a pattern is found."""
    return [
        f"{module}:{number}: {line.strip()}"
        for module, text in MODULES.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_docstrings_are_sentences() -> None:
    """None begins like a question without its verb: "What a host asked for."."""
    headless = [
        f"{module}: {name}: {text.splitlines()[0]}"
        for module, tree in trees().items()
        for name, text in docstrings(tree)
        if QUESTION.match(text)
    ]

    assert headless == []


def test_source_cites_nothing_that_readers_do_not_have() -> None:
    """RFCs and the decision records in docs/adr can be looked up; other documents cannot."""
    assert lines_with(FOREIGN) == []


def test_source_has_no_vague_words() -> None:
    """A process, a host, a caller or a worker does things: it is named."""
    assert lines_with(VAGUE) == []
    assert lines_with(REPLACED) == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_are_plain(page: Path) -> None:
    """A reader understands a sentence at first sight; tables say Task, Command, Guide."""
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)

    assert [f"{number}: {line}" for number, line in lines if UNCLEAR.search(line)] == []


def test_unreleased_changes_fit_a_page() -> None:
    """Users read what they notice, in at most 80 lines."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, unreleased, *_ = re.split(r"^## \[", changes, flags=re.MULTILINE)

    assert len(unreleased.splitlines()) <= 80


def test_public_classes_have_different_names() -> None:
    """One name, one meaning."""
    places = defaultdict(list)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)

    shared = {name: modules for name, modules in places.items() if len(modules) > 1}
    for name in ("PoliteTransport", "AsyncPoliteTransport"):  # the same thing for two clients
        assert shared.pop(name) == [f"mannerly/adapters/{each}.py" for each in ("httpx", "httpx2")]
    assert shared == {}


def test_long_modules_say_why() -> None:
    """More than 400 lines are two modules, or have a reason in the docstring."""
    silent = [
        module
        for module, tree in trees().items()
        if len(MODULES[module].splitlines()) > MOST_LINES
        and "is long because" not in " ".join((ast.get_docstring(tree) or "").split())
    ]

    assert silent == []


@pytest.mark.parametrize("name", OPTIONS)
def test_help_is_a_sentence(name: str) -> None:
    """It begins with a capital or a command, ends with a full stop; numbers have a default."""
    words, kind = OPTIONS[name].help, OPTIONS[name].kind

    assert words.endswith(".")
    assert words[0].isupper() or words.startswith("fsync ")
    if kind in (ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.RATE):
        assert "(default" in words


@pytest.mark.parametrize("code", [*SkipReason, *UrlRefusal], ids=str)
def test_skip_reason_has_words(code: SkipReason | UrlRefusal) -> None:
    """Every code for which a link is not followed has words."""
    assert skip_words(code.value) != code.value


@pytest.mark.parametrize("code", [*ErrorKind, *LocalError, *SitemapProblem], ids=str)
def test_error_has_words(code: ErrorKind | LocalError | SitemapProblem) -> None:
    """Every code that a record can have as its error has words."""
    assert error_words(code.value) != code.value


@pytest.mark.parametrize("latest", ["latest: connect", "latest answer connect"])
def test_why_a_host_was_given_up_is_in_words(latest: str) -> None:
    """Codes are for programs; a status is a word by itself."""
    words = "no success for 60 s, latest: failed connection"
    assert error_words(f"no success for 60 s, {latest}") == words
    assert skip_words(f"host_retired: no success for 60 s, {latest}").endswith(f": {words}")
    assert error_words("no request allowed for 9 s (latest: 503)").endswith("s (latest: 503)")


def test_words_of_a_reason_fit_its_count() -> None:
    """One link, two links; details stay, and unknown codes are shown as they are."""
    assert skip_words("off_host", 1) == "link to another host (--scope)"
    assert skip_words("off_host", 2) == "links to other hosts (--scope)"
    assert skip_words("blocked_address", 2) == "private addresses (--allow-net)"
    assert skip_words("host_retired: 20 failures in a row") == (
        "host given up: 20 failures in a row"
    )
    assert error_words("curl_99", 3) == "curl_99"
