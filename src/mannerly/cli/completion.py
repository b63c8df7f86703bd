"""`mannerly completion SHELL`: print the script that completes commands, options and values.

The script asks the command itself for each completion, through a variable that click reads, so it
never has to be renewed. It is printed, not installed: which file of the user's it belongs in is for
the user to say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import click

from .command_line import Argument
from .help import explain_topic, topics
from .terminal import show

PROGRAM = "mannerly"
VARIABLE = "_MANNERLY_COMPLETE"


class Shell(StrEnum):
    """A shell that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, Argument("SHELL", "bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell.

    Where to put it is said below.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    script = get_completion_class(shell.value)
    assert script is not None
    show(script(root, {}, PROGRAM, VARIABLE).source())


def help_command(
    topic: Annotated[
        str | None,
        Argument(
            "[TOPIC|COMMAND]",
            "A topic or a command; without it, the topics are listed.",
            words=topics,
        ),
    ] = None,
) -> None:
    """Explain a topic, such as politeness or resume."""
    explain_topic(topic)


EXAMPLES = """\
Where to put it:
  bash   mannerly completion bash >> ~/.bashrc
  zsh    mannerly completion zsh > ~/.zfunc/_mannerly
         and in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
  fish   mannerly completion fish > ~/.config/fish/completions/mannerly.fish
"""
