"""Words for a command line that is wrong: what is wrong, the nearest right one, where to look.

    mannerly: no option --max-url. Did you mean --max-urls?
      mannerly crawl --help lists all options.

typer carries a copy of click and does not name its errors, so they are known by their attributes.
"""

from __future__ import annotations

import re
from typing import Any

_NO_COMMAND = "NoArgsIsHelpError"
_COMMAND = re.compile("no such command '([^']*)'")


def usage_words(error: Any) -> str:
    """Return an error of the command line in two lines; without a command, the help."""
    context = error.ctx
    if type(error).__name__ == _NO_COMMAND:
        return str(error.format_message())
    path = context.command_path if context is not None else "mannerly"
    return f"mannerly: {_wrong(error, context)}\n  {path} --help lists all {_kind(context)}."


def _wrong(error: Any, context: Any) -> str:
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return f"no option {option}.{_nearest(option, error.possibilities or ())}"
    message = error.format_message().strip()
    message = message[:1].lower() + message[1:]
    unknown = _COMMAND.match(message)
    if unknown is not None:
        command = unknown.group(1)
        return f"no command {command}.{_nearest(command, getattr(context.command, 'commands', ()))}"
    return str(message if message.endswith((".", "?")) else f"{message}.")


def _nearest(name: str, known: Any) -> str:
    from difflib import get_close_matches  # slow to import, and rarely needed

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _kind(context: Any) -> str:
    return "commands" if hasattr(getattr(context, "command", None), "commands") else "options"
