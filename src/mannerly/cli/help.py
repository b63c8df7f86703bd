"""`--help` in groups, `--help-all`, and `mannerly help TOPIC`.

`--help` of a command with many options shows the most used ones, in groups; `--help-all` shows all.
Both end with examples, which are the command's epilog. A topic is a text file in `topics`, for what
takes more than a sentence. A command line that is wrong gets two lines: what is wrong, with the
closest match, and where to look.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .terminal import fail, show

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL = "mannerly.help_all"  # set in a context whose help shows all options
WIDTH = 100  # columns at most
TOPICS = Path(__file__).with_name("topics")

_EITHER = re.compile(r"--([\w-]+) / --no-\1")
_WIDEST = 26  # of a name whose words begin on the same line


class GroupedCommand(click.Command):
    """A command whose options are listed in groups; advanced ones by --help-all only."""

    def __init__(self, name: str, *, help: str | None, epilog: str, title: str) -> None:  # noqa: A002
        """Make a command; `title` is that of its group in the list of commands."""
        self.title = title
        super().__init__(name, help=help, epilog=epilog)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Leave the arguments to `format_options`: one column for all of them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then each group of options."""
        shows_all = ctx.meta.get(ALL, False)
        groups: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            option = getattr(param, "option", None)
            if record is None:
                continue
            if option is not None and option.is_advanced and not shows_all:
                hidden += 1
                continue
            title = getattr(param, "title", "Help")
            if isinstance(param, click.Argument):
                title = "Arguments"
            names, words = record
            groups.setdefault(title, []).append((_EITHER.sub(r"--[no-]\1", names), words))
        _write_groups(groups, formatter)
        if hidden:
            formatter.write_paragraph()
            formatter.write(f"{hidden} more options: {ctx.command_path} --help-all\n")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        _write_lines(self.epilog, formatter)


class CommandGroup(click.Group):
    """The list of commands, in groups, in the order in which they were named."""

    def __init__(
        self,
        name: str,
        commands: Iterable[click.Command],
        *,
        help: str,  # noqa: A002
        epilog: str = "",
        title: str = "",
        **more: Any,
    ) -> None:
        """Make the command that has these commands as its parts."""
        self.title = title
        parts = {str(each.name): each for each in commands}
        super().__init__(name, parts, help=help, epilog=epilog, no_args_is_help=True, **more)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of its commands."""
        return list(self.commands)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of commands."""
        groups: dict[str, list[tuple[str, str]]] = {}
        widest = max(map(len, self.commands))
        for name, command in self.commands.items():
            title = getattr(command, "title", "") or "Commands"
            words = command.get_short_help_str(formatter.width - 6 - widest)
            groups.setdefault(title, []).append((name, words))
        _write_groups(groups, formatter)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are."""
        _write_lines(self.epilog, formatter)


def show_all(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    """Print the help of a command with all its options."""
    if wanted and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def topics() -> list[str]:
    """Return the names of all topics."""
    return sorted(file.stem for file in TOPICS.glob("*.txt"))


def explain_topic(topic: str | None) -> None:
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
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    command = root.command.get_command(root, name)
    if command is not None:
        with click.Context(command, info_name=name, parent=root) as inner:
            click.echo(inner.get_help())
        return
    from mannerly.crawler.options.values import nearest

    known = [*topics(), *root.command.commands]
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


_COMMAND = re.compile("no such command '([^']*)'")


def usage_words(error: click.ClickException) -> str:
    """Return an error of the command line in two lines; without a command, the help."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    path = context.command_path if context is not None else "mannerly"
    return f"mannerly: {_wrong(error, context)}\n  {path} --help lists all {_kind(context)}."


def _wrong(error: click.ClickException, context: click.Context | None) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"no option {error.option_name}.{_nearest(error.option_name, _flags(context))}"
    message = error.format_message().strip()
    message = message[:1].lower() + message[1:]
    unknown = _COMMAND.match(message)
    if unknown is not None and context is not None and isinstance(context.command, click.Group):
        command = unknown.group(1)
        return f"no command {command}.{_nearest(command, context.command.commands)}"
    return str(message if message.endswith((".", "?")) else f"{message}.")


def _flags(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    return [flag for param in context.command.get_params(context) for flag in param.opts]


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # slow to import, and rarely needed

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _kind(context: click.Context | None) -> str:
    is_group = context is not None and isinstance(context.command, click.Group)
    return "commands" if is_group else "options"
