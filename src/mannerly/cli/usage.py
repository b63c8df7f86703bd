"""Words for a command line that is wrong: what is wrong, the nearest right one, where to look.

mannerly: no option --max-url. Did you mean --max-urls?
mannerly crawl --help lists all options.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

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
