"""The command `mannerly`: one module per subcommand, for parsing and printing only.

    config               the values of all options: command line, environment, files
    crawl, resume, retry run a crawl; then exports, summary (endings) and exit code
    progress, logs       the live line or log lines while a crawl runs
    stored, steer        open a stored crawl, to look at it or to steer it
    terminal             print crawled text safely; print errors

Data goes to stdout and everything else to stderr. A usage error is one sentence and exit code 2.
Each subcommand imports what it needs when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

from . import configuration, hosts, steer
from .crawl import crawl
from .demo import demo
from .doctor import doctor
from .explain import explain
from .export import export
from .recrawl import recrawl
from .resume import resume
from .retry import retry
from .serve import serve
from .simulate import simulate
from .status import status
from .terminal import note
from .wipe import wipe

# typer carries a copy of click, whose errors it does not name: a wrong option, a missing argument.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="mannerly",
    help="The fast, well-mannered web crawler.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# Set on each command: on a group the prefix would become MANNERLY_SIMULATE_. The variables of
# `crawl` and `resume` are read by `config`.
_ENVIRONMENT = {"auto_envvar_prefix": "MANNERLY"}

app.command()(crawl)
app.command()(resume)
app.command()(retry)
app.command()(recrawl)
app.command()(status)
app.command()(export)
app.command()(explain)
app.command()(steer.pause)
app.command()(steer.unpause)
app.command()(steer.stop)
app.command()(steer.add)
app.command("set")(steer.change)
app.command("hosts")(hosts.hosts)

_host = typer.Typer(
    help="Show, pause or resume one host of a crawl, or set its pace.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_host.command("show")(hosts.show_host)
_host.command("pause")(hosts.pause)
_host.command("resume")(hosts.resume)
_host.command("set")(hosts.set_pace)
_host.command("forget")(hosts.forget)
app.add_typer(_host, name="host")

app.command()(serve)
app.command()(doctor)
app.command()(wipe)

_config = typer.Typer(help="Show the configuration.", no_args_is_help=True, rich_markup_mode=None)
_config.command("show")(configuration.show)
app.add_typer(_config, name="config")

app.command(context_settings=_ENVIRONMENT)(simulate)
app.command()(demo)


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
        typer.Option(
            "--version", help="Print the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The fast, well-mannered web crawler."""


def main() -> None:
    """Run the command line."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        note("mannerly: aborted")
        sys.exit(1)
    except _CLICK_ERROR as error:
        message = io.StringIO()
        error.show(message)
        note(message.getvalue().rstrip())
        sys.exit(error.exit_code)
