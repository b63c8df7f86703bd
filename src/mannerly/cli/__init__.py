"""The command: one file per subcommand, parsing and printing, nothing else.

Data goes to stdout and everything else to stderr. A mistake of the user's is one sentence and exit
code 2. Each subcommand imports what it needs when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .simulate import simulate

app = typer.Typer(
    name="mannerly",
    help="The fast, well-mannered web crawler.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# Set on each command: below a group the prefix would become MANNERLY_SIMULATE_.
_ENVIRONMENT = {"auto_envvar_prefix": "MANNERLY"}

app.command(context_settings=_ENVIRONMENT)(simulate)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mannerly {version('mannerly')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """The fast, well-mannered web crawler."""


def main() -> None:
    """Run the command line."""
    app()
