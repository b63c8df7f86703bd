"""`mannerly config show`: print the values in force; `config init`: begin a configuration file.

The output of both is a valid configuration file. That of `show` has, with --origin, the place where
each value was set; that of `init` has every option as a comment, with its help.
"""

from __future__ import annotations

import json as text_json
import os
import re
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

from mannerly.crawler.options.option import ProjectUse, ValueKind, declaration
from mannerly.crawler.options.table import GROUPS, OPTIONS, cores
from mannerly.crawler.options.values import host_of, host_option, option_of, printable

from .config import PROJECT_FILE, Configuration, effective, resolve, user_file
from .terminal import fail, failing_clearly, json_escaped, note, print_json, safe_term
from .terminal import show as show_lines

if TYPE_CHECKING:
    from mannerly.crawler.options.option import Option

_HOST_TABLE = (
    "# ---- One host: most options of politeness can have another value there",
    "",
    '# [host."example.org"]',
    "# max_rate = 1",
)
_NUMBERS = (ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.RATE, ValueKind.BYTES)
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def show(
    *,
    origin: Annotated[bool, declaration("Also show where each value was set.")] = False,
    json: Annotated[bool, declaration("Print JSON.")] = False,
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


def init(
    *,
    user: Annotated[
        bool,
        declaration("Write the file of this user, for all directories.", is_order=True),
    ] = False,
    all_options: Annotated[
        bool, declaration("With the options of --help-all, too.", name="all", is_order=True)
    ] = False,
) -> None:
    """Write mannerly.toml with the usual options as comments; never over a file that exists."""
    path = user_file(os.environ) if user else Path(PROJECT_FILE)
    with failing_clearly():
        from mannerly.crawler.settings import CrawlSettings

        defaults = effective(Configuration({}), CrawlSettings(processes=cores()))
        if user:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(_template(defaults, is_project=not user, has_all=all_options))
        except FileExistsError:
            fail(f"{path} exists and is left alone: edit it, or remove it first")
    note(f"Wrote {safe_term(str(path))}. What is in force: mannerly config show --origin")


def _template(defaults: dict[str, object], *, is_project: bool, has_all: bool) -> str:
    """Return a configuration file in which every option is a comment."""
    lines = [
        "# Options of mannerly. Remove the # before a name to set it. Values are defaults,",
        "# or examples where there is none. The command line and the environment win over them.",
        "",
    ]
    for group, options in GROUPS.items():
        chosen = [each for each in options if _is_for_file(each, is_project, has_all)]
        if chosen:
            lines += [f"# ---- {group}", ""]
        for option in chosen:
            lines += [*wrap(option.help, 98, initial_indent="# ", subsequent_indent="# ")]
            lines += [_line(option, defaults[option.name]), ""]
    lines += [*_HOST_TABLE, ""]
    return "\n".join(lines)


def _is_for_file(option: Option, is_project: bool, has_all: bool) -> bool:  # noqa: FBT001
    may_be_set = not is_project or option.project_use is not ProjectUse.NONE
    is_shown = has_all or not option.is_advanced
    return may_be_set and is_shown and option.kind is not ValueKind.HOSTS and not option.has_secret


def _line(option: Option, default: object) -> str:
    """Return an option as a comment: with its default, an example, or how to write it."""
    if default is None and option.kind in _NUMBERS:
        default = 10 if option.kind is ValueKind.INTEGER else 1
    elif default is None and option.choices:
        default = option.choices[0]
    if default is None:
        return f'# {option.name} is not set; write it like {option.name} = "…"'
    return f"# {option.name} = {_toml(default)}"


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
    if given is None:  # of a list: from the hosts that join it
        joining = (
            each
            for key, each in configuration.given.items()
            if host_of(key) is not None and option_of(key).name == name
        )
        given = next(joining, None) if name in OPTIONS and OPTIONS[name].host_kind else None
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
    others = {
        variable: option.name
        for option in OPTIONS.values()
        for variable in option.all_variables[:-1]
    }
    lines += [f"# {variable} sets {name}" for variable, name in sorted(others.items())]
    return lines
