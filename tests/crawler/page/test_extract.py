"""The user's function: how it is found, what it may return, and what its failures cost."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.exports.stored_example import PAGES

from mannerly.crawler.page.extract import ExtractError, Extractor, is_only_here, load, name_of
from mannerly.crawler.page.page import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BODY = b"<html><main><h1>Head</h1><p class=price>9</p><p class=price>8</p> some more words</main>"
RECORD = PAGES[0]._replace(content_type="text/html")


@pytest.fixture
def extractor() -> Iterator[Callable[[Callable[[Page], object]], Extractor]]:
    made: list[Extractor] = []

    def make(function: Callable[[Page], object], longest_s: float = 30.0) -> Extractor:
        made.append(Extractor(name_of(function), longest_s=longest_s))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.close()


def prices(page: Page) -> list[dict[str, Any]]:
    return [{"price": int(each.text)} for each in page.select(".price")]


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (prices, [{"price": 9}, {"price": 8}]),
        (lambda page: {"head": page.select_one("h1").text}, [{"head": "Head"}]),
        (lambda page: None, []),
        (lambda page: [], []),
    ],
)
def test_dict_list_and_none_are_items(
    extractor: Any, function: Callable[[Page], object], wanted: list[dict[str, Any]]
) -> None:
    """One item, several, or none."""
    found = extractor(function)(RECORD, {}, BODY)

    assert [json.loads(line) for line in found.items] == wanted
    assert found.error is None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda page: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda page: "text", "extract returned str: return dict, list[dict] or None"),
        (lambda page: [{1: 2}], "extract returned dict"),
        (lambda page: {"a": object()}, "TypeError"),
    ],
)
def test_failure_costs_the_items_of_one_page(
    extractor: Any, function: Callable[[Page], object], words: str
) -> None:
    """The error is kept on one line, and the next page is none the worse."""
    found = extractor(function)(RECORD, {}, BODY)

    assert found.items == []
    assert words in found.error
    assert "\n" not in found.error


def test_function_that_hangs_is_named_and_ended(
    extractor: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a second it is named, with its page; after its time it is ended."""

    def hanging(_: Page) -> None:
        while True:
            time.sleep(0.01)

    found = extractor(hanging, longest_s=2.0)(RECORD, {}, BODY)

    assert found.error == "took longer than 2 s"
    said = capfd.readouterr().err
    assert "hanging" in said
    assert RECORD.url in said


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
    assert name_of(json.loads) == "json:loads"  # type: ignore[arg-type]
    assert is_only_here(name_of(lambda page: None))


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
