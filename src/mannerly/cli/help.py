"""`--help` in groups, `--help-all`, and `mannerly help TOPIC`.

`--help` of a command with many options shows the most used ones, in groups; `--help-all` shows all.
Both end with examples, which are the command's epilog. A topic is a text file in `topics`, for what
takes more than a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mannerly.crawler.options.table import OPTIONS

from .terminal import fail, show

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL = "mannerly.help_all"  # set in a context whose help shows all options
WIDTH = 100  # columns at most
TOPICS = Path(__file__).with_name("topics")

_EITHER = re.compile(r"--([\w-]+) / --no-\1")
_WIDEST = 26  # of a name whose words begin on the same line

WIDE = {"max_content_width": WIDTH}


class GroupedCommand(TyperCommand):
    """A command whose options are listed in groups; advanced ones by --help-all only."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each group of options."""
        shows_all = ctx.meta.get(ALL, False)
        groups: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            option = OPTIONS.get(param.name or "")
            if record is None:
                continue
            if option is not None and option.is_advanced and not shows_all:
                hidden += 1
                continue
            title = getattr(param, "rich_help_panel", None) or "Help"
            if param.param_type_name == "argument":
                title = "Arguments"
            names, words = record
            groups.setdefault(title, []).append((_EITHER.sub(r"--[no-]\1", names), words))
        _write_groups(groups, formatter)
        if hidden:
            formatter.write_paragraph()
            formatter.write(f"{hidden} more options: mannerly {self.name} --help-all\n")

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        _write_lines(self.epilog, formatter)


class CommandGroup(TyperGroup):
    """The list of commands, in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group of commands."""
        groups: dict[str, list[tuple[str, str]]] = {}
        widest = max(map(len, self.commands))
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                title = getattr(command, "rich_help_panel", None) or "Commands"
                words = command.get_short_help_str(formatter.width - 6 - widest)
                groups.setdefault(title, []).append((name, words))
        _write_groups(groups, formatter)

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        _write_lines(self.epilog, formatter)


def show_all(ctx: typer.Context, wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    """Print the help of a command with all its options."""
    if wanted and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def topics() -> list[str]:
    """Return the names of all topics."""
    return sorted(file.stem for file in TOPICS.glob("*.txt"))


def help_command(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC|COMMAND]",
            help="A topic or a command; without it, the topics are listed.",
            autocompletion=topics,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain a topic, such as politeness or resume."""
    if topic is None:
        show("Topics:\n")
        for name in topics():
            show(f"  {name:<12} {_text(name).splitlines()[0]}")
        show("\nmannerly help TOPIC explains one; mannerly COMMAND --help lists options.")
        return
    name = topic.strip().lower().replace("_", "-")
    if name in topics():
        show(_text(name))
        return
    root = ctx.find_root()
    command = root.command.get_command(root, name)  # type: ignore[attr-defined]  # it is the group
    if command is not None:
        with typer.Context(command, info_name=name, parent=root) as inner:
            typer.echo(inner.get_help())
        return
    from mannerly.crawler.options.values import nearest

    known = [*topics(), *root.command.commands]  # type: ignore[attr-defined]
    fail(f"there is no topic {topic!r}{nearest(name, known) or ';'} `mannerly help` lists them")


def _text(name: str) -> str:
    return (TOPICS / f"{name}.txt").read_text(encoding="utf-8").rstrip()


def _write_groups(groups: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    """Write lists of names and words below their titles, the words in one column."""
    widths = (len(name) for records in groups.values() for name, _ in records)
    widest = max((width for width in widths if width <= _WIDEST), default=0)
    for title, records in groups.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(widest), words) for name, words in records], _WIDEST)


def _write_lines(text: str | None, formatter: Any) -> None:
    lines: Iterable[str] = (text or "").strip("\n").splitlines()
    formatter.write("\n")
    for line in lines:
        formatter.write(f"{line}\n")
