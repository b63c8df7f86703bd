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

from mannerly.cli import commands
from mannerly.cli.config import resolve, resolve_own
from mannerly.crawler.options.keywords import CrawlOptions
from mannerly.crawler.options.option import Option, ValueKind
from mannerly.crawler.options.table import ALIASES, CHANGEABLE, KEYWORDS, OPTIONS
from mannerly.crawler.options.values import from_keywords
from mannerly.service.jobs.model import ALLOWED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.cli.command_line import Command

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
    if option.kind is ValueKind.NUMBER and option.target is None:
        return 3.5
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
    told = " ".join(told.split()) + " "
    reference = REFERENCE.read_text()
    flags = ["--" + name.replace("_", "-") for name, _ in names()]

    assert [flag for flag in flags if f"{flag} " not in told and f"{flag}," not in told] == []
    assert [flag for flag in flags if flag not in reference] == []


def test_old_name_means_the_new_one() -> None:
    """In jobs and orders, too."""
    assert ALIASES == {"workers": "concurrency"}
    assert set(ALIASES.values()) <= {*ALLOWED, *CHANGEABLE, *KEYWORDS}


@pytest.mark.parametrize("command", commands().values(), ids=list(commands()))
def test_option_of_a_command_is_in_every_place(command: Command, tmp_path: Path) -> None:
    """In the environment, in the command's table of a file, and in its help; orders are no keys."""
    user = tmp_path / "mannerly" / "config.toml"
    user.parent.mkdir()
    told = invoke(*command.path.split(), "--help-all" if command.has_crawl_options else "--help")
    for name, option in command.own_options.items():
        assert option.flag in told.stdout
        if option.is_order:
            continue
        value = value_of(option)
        user.write_text(f"[{command.section}]\n{name} = {json.dumps(value)}\n")
        found = [
            resolve_own(
                command.section, command.own_options, {}, environment=each, directory=tmp_path
            )[name].value
            for each in (
                {"XDG_CONFIG_HOME": str(tmp_path)},
                {"XDG_CONFIG_HOME": "nowhere", option.variable: as_text(option, value)},
            )
        ]
        assert found == [value] * 2


def test_defaults_are_not_typed_into_sentences() -> None:
    """The help text gets them from the declaration."""
    typed = [name for name, each in OPTIONS.items() if "(default" in each.doc]

    assert typed == ["output"]  # where the default is a table of it
