"""Words for a command line that is wrong: what is wrong, the nearest right one, where to look.

    × No option --max-url. Did you mean --max-urls?
      mannerly crawl --help lists all options.

typer carries a copy of click and does not name its errors, so they are known by their attributes.
"""

from __future__ import annotations

import re
from typing import Any

_COMMAND = re.compile("No such command '([^']*)'")


def usage_words(error: Any) -> str:
    """Return an error of the command line in two lines."""
    context = error.ctx
    path = context.command_path if context is not None else "mannerly"
    return f"× {_wrong(error, context)}\n  {path} --help lists all {_kind(context)}."


def _wrong(error: Any, context: Any) -> str:
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return f"No option {option}.{_nearest(option, error.possibilities or ())}"
    message = error.format_message().strip()
    unknown = _COMMAND.match(message)
    if unknown is not None:
        command = unknown.group(1)
        return f"No command {command}.{_nearest(command, getattr(context.command, 'commands', ()))}"
    return str(message if message.endswith((".", "?")) else f"{message}.")


def _nearest(name: str, known: Any) -> str:
    from difflib import get_close_matches  # slow to import, and rarely needed

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _kind(context: Any) -> str:
    return "commands" if hasattr(getattr(context, "command", None), "commands") else "options"
