"""The user's function: how it is found, what it may return, and what its failures cost."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.exports.stored_example import PAGES

from mannerly.crawler.page.extract import (
    ExtractError,
    ExtractHere,
    Extracting,
    NamedFunction,
    extracted_by,
    is_only_here,
    load,
)
from mannerly.crawler.page.page import Page

if TYPE_CHECKING:
    from pathlib import Path

BODY = b"<html><main><h1>Head</h1><p class=price>9</p><p class=price>8</p> some more words</main>"
RECORD = PAGES[0]._replace(content_type="text/html")


Make = Callable[..., ExtractHere]


@pytest.fixture
def extractor() -> Iterator[Make]:
    made: list[tuple[Extracting, NamedFunction]] = []

    def make(function: Callable[[Page], Any], longest_s: float = 30.0) -> ExtractHere:
        named = NamedFunction(function)
        made.append((Extracting(named.name, longest_s), named))
        here = made[-1][0].here
        assert here is not None, "only this process has the function"
        return here

    yield make
    for each, _ in made:
        each.close()


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (
            lambda page: [{"price": int(each.text)} for each in page.select(".price")],
            [{"price": 9}, {"price": 8}],
        ),
        (lambda page: {"head": page.select_one("h1").text}, [{"head": "Head"}]),
        (lambda page: None, []),
        (lambda page: [], []),
    ],
)
def test_dict_list_and_none_are_items(
    extractor: Make, function: Callable[[Page], object], wanted: list[dict[str, Any]]
) -> None:
    """One item, several, or none."""
    found = extractor(function)(RECORD, {}, BODY).items

    assert [json.loads(line) for line in found.items] == wanted
    assert found.error is None


class Unspeakable(Exception):  # noqa: N818 - it is raised by a user
    def __str__(self) -> str:
        raise SystemExit


def raising(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda page: 1 / 0, "ZeroDivisionError: division by zero"),
        (
            lambda page: "text",
            "extract returned str: return or yield dict, a dataclass, a msgspec Struct",
        ),
        (lambda page: [{1: 2}], "extract returned dict"),
        (lambda page: {"a": object()}, "TypeError"),
        (lambda page: raising(SystemExit(0)), "SystemExit: 0"),
        (lambda page: raising(GeneratorExit()), "GeneratorExit"),
        (lambda page: raising(MemoryError()), "MemoryError"),
        (lambda page: raising(Unspeakable()), "Unspeakable"),
    ],
)
def test_failure_costs_the_items_of_one_page(
    extractor: Make, function: Callable[[Page], object], words: str
) -> None:
    """The error is kept on one line, and the next page is none the worse."""
    found = extractor(function)(RECORD, {}, BODY).items

    assert found.items == []
    assert found.error is not None
    assert words in found.error
    assert "\n" not in found.error


def test_function_that_hangs_is_named_and_ended(
    extractor: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a second it is named, with its page; after its time it is ended."""

    def hanging(_: Page) -> None:
        while True:
            time.sleep(0.01)

    found = extractor(hanging, longest_s=2.0)(RECORD, {}, BODY).items

    assert found.error == "TimeoutError: took longer than 2 s"
    said = capfd.readouterr().err
    assert "hanging" in said
    assert RECORD.url in said


def test_end_of_the_time_never_comes_after_the_function(extractor: Make) -> None:
    """A function that returns in the instant at which it is ended has items, or an error."""
    call = extractor(lambda page: time.sleep(0.008), longest_s=0.008)

    found = [call(RECORD, {}, BODY).items for _ in range(40)]

    assert {each.error for each in found} <= {None, "TimeoutError: took longer than 0.008 s"}


def test_interrupt_of_the_program_is_no_failure_of_its_function(extractor: Make) -> None:
    """Ctrl-C while the function runs in the main thread ends the program."""
    with pytest.raises(KeyboardInterrupt):
        extractor(lambda page: raising(KeyboardInterrupt()))(RECORD, {}, BODY)


def test_function_is_forgotten_with_its_crawl() -> None:
    """A program that crawls for ever does not collect functions."""
    named = NamedFunction(lambda page: None)
    name = named.name
    assert load(name) is named.function

    del named
    gc.collect()

    with pytest.raises(ExtractError, match="pass it again"):
        load(name)


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "1 / 0", "import no_such_module"])
def test_file_that_cannot_be_loaded_is_an_error_of_each_page(tmp_path: Path, code: str) -> None:
    """In a helper it is one of the page, in words; before the first request it is refused."""
    file = tmp_path / "broken.py"
    file.write_text(f"{code}\ndef extract(page): ...\n")

    items, error, *_ = extracted_by(f"{file}:extract", RECORD, {}, BODY)

    assert items == []
    assert error is not None
    assert "broken.py cannot be loaded" in error


def test_function_of_a_file_is_loaded_with_its_neighbours(tmp_path: Path) -> None:
    """The file's folder can be imported from; the working directory cannot."""
    (tmp_path / "beside_it.py").write_text("VALUE = 7\n")
    (tmp_path / "my_items.py").write_text(
        "import beside_it\ndef extract(page):\n    return {'v': beside_it.VALUE}\n"
    )

    function = load(f"{tmp_path / 'my_items.py'}:extract")

    assert function(Page(RECORD, {}, BODY)) == {"v": 7}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "is not FILE.py:FUNCTION"),
        ("missing.py:extract", "there is no file"),
        ("no_such_module_at_all:extract", "cannot be loaded: ModuleNotFoundError"),
        ("json:extract", r"json has no function extract \(it has: .*loads"),
        ("here:x-1", "pass it again"),
    ],
)
def test_name_that_leads_nowhere_is_refused(name: str, words: str) -> None:
    """With what to write instead."""
    with pytest.raises(ExtractError, match=words):
        load(name)


def test_function_that_can_be_imported_has_a_name_for_every_process() -> None:
    """A lambda has one for this process only."""
    assert NamedFunction(json.loads).name == "json:loads"
    assert is_only_here(NamedFunction(lambda page: None).name)


def test_page_has_text_markdown_and_json() -> None:
    """Computed from the body, by its type."""
    page = Page(RECORD, {}, BODY)
    data = Page(RECORD._replace(content_type="application/json"), {}, b'{"a": [1]}')

    assert page.markdown.startswith("# Head")
    assert "Head" in page.text
    assert data.json() == {"a": [1]}
    with pytest.raises(ValueError, match="JSON"):
        page.json()
    with pytest.raises(ValueError, match="selector"):
        page.select(":::")
