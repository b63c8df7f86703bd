"""`mannerly completion SHELL`: print the script that completes commands, options and values.

The script asks the command itself for each completion, through the variable that typer reads, so it
never has to be renewed. It is printed, not installed: which file of the user's it belongs in is for
the user to say.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from .terminal import show

PROGRAM = "mannerly"
VARIABLE = "_MANNERLY_COMPLETE"


class Shell(StrEnum):
    """A shell that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print the completion script of a shell; --help says where to put it."""
    from typer._completion_shared import get_completion_script

    show(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))


def prepare() -> None:
    """Let typer answer a shell that asks for completions."""
    if os.environ.get(VARIABLE):
        from typer._completion_classes import completion_init

        completion_init()


EXAMPLES = """\
Where to put it:
  bash   mannerly completion bash >> ~/.bashrc
  zsh    mannerly completion zsh > ~/.zfunc/_mannerly
         and in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit; compinit
  fish   mannerly completion fish > ~/.config/fish/completions/mannerly.fish
"""
