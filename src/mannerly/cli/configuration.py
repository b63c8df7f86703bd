"""`mannerly config show`: print the values in force and, with --origin, where each was set.

The output is a valid configuration file.
"""

from __future__ import annotations

import json as text_json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import ALIASES, GROUPS
from mannerly.crawler.options.values import host_option, printable

from .config import effective, resolve
from .terminal import failing_clearly, json_escaped, print_json, safe_term
from .terminal import show as show_lines

if TYPE_CHECKING:
    from .config import Configuration

_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def show(
    *,
    origin: Annotated[
        bool, typer.Option("--origin", help="Also show where each value was set.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the value of every option, as a configuration file."""
    with failing_clearly():
        configuration = resolve({}, environment=os.environ, directory=Path.cwd())
        values = {
            name: printable(name, value)
            for name, value in effective(configuration, configuration.settings()).items()
        }
    if not json:
        show_lines(as_toml(configuration, values, with_origin=origin))
        return
    print_json(_with_origins(configuration, values) if origin else values)


def as_toml(configuration: Configuration, values: dict[str, object], *, with_origin: bool) -> str:
    """Return every option in the groups of `--help`; one without a value is a comment.

    The tables of hosts are the end, because TOML has them after all other keys.
    """

    def line(key: str, name: str, value: object) -> str:
        text = f"# {name} is not set" if value is None else f"{name} = {_toml(value)}"
        return f"{text:<44}  # {safe_term(_origin(configuration, key))}" if with_origin else text

    lines = []
    for group, options in GROUPS.items():
        lines += [f"# {group}"]
        lines += [
            line(option.name, option.name, values[option.name])
            for option in options
            if option.kind is not ValueKind.HOSTS
        ]
        lines.append("")
    if with_origin:
        lines += [*_aliases(), ""]
    for host, table in _tables(values).items():
        lines.append(f"[host.{_toml(host)}]")
        lines += [line(host_option(host, name), name, value) for name, value in table.items()]
        lines.append("")
    return "\n".join(lines).rstrip()


def _with_origins(configuration: Configuration, values: dict[str, object]) -> dict[str, object]:
    def shown(key: str, value: object) -> dict[str, object]:
        return {"value": value, "origin": _origin(configuration, key)}

    hosts = {
        host: {name: shown(host_option(host, name), value) for name, value in table.items()}
        for host, table in _tables(values).items()
    }
    return {name: shown(name, value) for name, value in values.items()} | {"host": hosts}


def _tables(values: dict[str, object]) -> dict[str, dict[str, object]]:
    tables = values["host"]
    assert isinstance(tables, dict)
    return tables


def _origin(configuration: Configuration, name: str) -> str:
    given = configuration.given.get(name)
    return given.where if given else "default"


def _toml(value: object) -> str:
    """Return a value as TOML. For these types TOML and JSON are written alike."""
    listed = list(value) if isinstance(value, tuple) else value
    return _PAIR.sub(_joined, json_escaped(text_json.dumps(listed, ensure_ascii=False)))


def _joined(pair: re.Match[str]) -> str:
    """Return one TOML escape for the two that JSON needs beyond U+FFFF."""
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _aliases() -> list[str]:
    lines = ["# Other environment variables"]
    lines += [f"# {variable} sets {name}" for variable, name in sorted(ALIASES.items())]
    return lines
