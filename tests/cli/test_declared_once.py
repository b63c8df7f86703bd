"""An option is declared once: from its declaration it is found in every place that has options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from tests.cli.test_host_options import OF_KIND
from tests.cli.test_host_options import VALUES as OF_CORE
from tests.harness.commands import invoke
from tests.library.test_keywords import VALUES

from mannerly.cli.config import resolve, resolve_service
from mannerly.crawler.options.keywords import CrawlOptions
from mannerly.crawler.options.option import Option, ValueKind
from mannerly.crawler.options.table import ALIASES, CHANGEABLE, KEYWORDS, OPTIONS, SERVE
from mannerly.crawler.options.values import from_keywords
from mannerly.service.jobs.model import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "options.md"
HOST = "a.example"


def value_of(option: Option) -> Any:
    """Return a value that an option accepts and that is not its default."""
    if option.choices:
        return next(each for each in option.choices if each != option.default)
    if option.kind is ValueKind.FLAG:
        return not option.default
    if option.kind is ValueKind.HOSTS:
        return {HOST: {"delay": 5.0}}
    others: dict[ValueKind, Any] = {
        **OF_KIND,
        ValueKind.BYTES: 1 << 25,
        ValueKind.TEXT: "word",
        ValueKind.CONTACT: "me@a.example",
        ValueKind.LIST: ["word"],
        ValueKind.FILE: "file",
    }
    return {**VALUES, **OF_CORE}.get(option.name, others[option.kind])


def as_text(option: Option, value: Any) -> str:
    """Return a value as it is written on the command line or in the environment."""
    if option.kind is ValueKind.HOSTS:
        return f"{HOST}:delay=5"
    separator = "\n" if option.has_secret else " "
    return separator.join(map(str, value)) if isinstance(value, list) else str(value)


def names() -> Iterator[tuple[str, Option]]:
    """Return every name that an option has, with the option."""
    for option in OPTIONS.values():
        yield option.name, option
        yield from ((alias, option) for alias in option.aliases)


@pytest.mark.parametrize(("name", "option"), list(names()), ids=lambda each: str(each)[:20])
def test_option_is_in_every_place(name: str, option: Option, tmp_path: Path) -> None:
    """With the same value, under each of its names."""
    value = value_of(option)
    key = f'host."{HOST}".delay' if option.kind is ValueKind.HOSTS else option.name
    expected = 5.0 if option.kind is ValueKind.HOSTS else value
    user = tmp_path / "mannerly" / "config.toml"
    user.parent.mkdir()
    table = f'[host."{HOST}"]\ndelay = 5\n' if option.kind is ValueKind.HOSTS else ""
    user.write_text(table or f"{name} = {json.dumps(value)}\n")

    in_file = resolve({}, environment={"XDG_CONFIG_HOME": str(tmp_path)}, directory=tmp_path)
    variables = {f"MANNERLY_{name.upper()}": as_text(option, value)}
    in_environment = resolve({}, environment=variables, directory=None)

    assert in_file.given[key].value == expected
    assert in_environment.given[key].value == expected
    if option.target is not None:
        assert from_keywords({name: value})[key].value == expected
        assert name in get_type_hints(CrawlOptions)


def test_every_name_is_a_flag_and_in_the_reference() -> None:
    """`--help-all` lists all of them, and so does docs/reference/options.md."""
    told = invoke("crawl", "--help-all", env={"COLUMNS": "200"}).stdout.replace("[no-]", "")
    reference = REFERENCE.read_text()
    flags = ["--" + name.replace("_", "-") for name, _ in names()]

    assert [flag for flag in flags if f"{flag} " not in told and f"{flag}," not in told] == []
    assert [flag for flag in flags if flag not in reference] == []


def test_old_name_means_the_new_one() -> None:
    """In jobs and orders, too."""
    assert ALIASES == {"workers": "concurrency"}
    assert set(ALIASES.values()) <= {*ALLOWED, *CHANGEABLE, *KEYWORDS}


@pytest.mark.parametrize("option", SERVE.values(), ids=list(SERVE))
def test_option_of_the_service_is_in_every_place(option: Option, tmp_path: Path) -> None:
    """In the environment, in the table [serve] of a file, and among the flags of `serve`."""
    value = value_of(option)
    user = tmp_path / "mannerly" / "config.toml"
    user.parent.mkdir()
    user.write_text(f"[serve]\n{option.name} = {json.dumps(value)}\n")

    _, in_file = resolve_service(
        {}, environment={"XDG_CONFIG_HOME": str(tmp_path)}, directory=tmp_path
    )
    _, in_environment = resolve_service(
        {}, environment={option.variable: as_text(option, value)}, directory=None
    )

    assert in_file[option.name].value == in_environment[option.name].value == value
    assert option.flag in invoke("serve", "--help", env={"COLUMNS": "200"}).stdout


def test_defaults_are_not_typed_into_sentences() -> None:
    """The help text gets them from the declaration."""
    typed = [name for name, each in (OPTIONS | SERVE).items() if "(default" in each.doc]

    assert typed == ["output"]  # where the default is a table of it
