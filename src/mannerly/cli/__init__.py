"""The command `mannerly`: one module per subcommand, for parsing and printing only.

    config               the values of all options: command line, environment, files
    crawl, resume, retry run a crawl; then exports, summary (endings) and exit code
    progress, logs       the live line or log lines while a crawl runs
    stored, steer        open a stored crawl, to look at it or to steer it
    terminal             print crawled text safely; print errors
    help, completion     help in groups, topics, completion in shells

Data goes to stdout and everything else to stderr. A usage error is one sentence and exit code 2.
Each subcommand imports what it needs when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

import sys
from copy import copy
from typing import Annotated, Any

import typer

from . import completion, configuration, hosts, steer
from .check import CheckCommand, check
from .command_line import CrawlCommand
from .crawl import EXAMPLES, crawl
from .demo import demo
from .doctor import doctor
from .explain import explain
from .export import export
from .help import WIDE, CommandGroup, GroupedCommand, help_command
from .in_server import StoredCommand
from .recrawl import RecrawlCommand, recrawl
from .report import report
from .resume import ResumeCommand, resume
from .retry import retry
from .serve import serve
from .simulate import simulate
from .status import status
from .terminal import note
from .warm import EXAMPLES as WARM_EXAMPLES
from .warm import WarmCommand, warm
from .watch import watch
from .wipe import wipe

# typer carries a copy of click, whose errors it does not name: a wrong option, a missing argument.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

_EXAMPLES = """\
Examples:
  mannerly crawl example.com --max-urls 500           into ./crawl-example.com
  mannerly status crawl-example.com                   how far it has come
  mannerly export crawl-example.com -o pages.jsonl    one JSON record per page
  mannerly help politeness                            how fast it crawls, and why
"""

app = typer.Typer(
    name="mannerly",
    cls=CommandGroup,
    help="The fast, well-mannered web crawler.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    context_settings=WIDE,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

# Set on each command: on a group the prefix would become MANNERLY_SIMULATE_. The variables of
# `crawl` and `resume` are read by `config`.
_ENVIRONMENT = {"auto_envvar_prefix": "MANNERLY"}

_RUN, _LOOK, _STEER = "Run a crawl", "Look at a crawl", "Steer a crawl"
_CARE, _MORE = "Take care of a crawl", "More"

app.command(cls=CrawlCommand, epilog=EXAMPLES, rich_help_panel=_RUN)(crawl)
app.command(cls=ResumeCommand, rich_help_panel=_RUN)(resume)
app.command(cls=StoredCommand, rich_help_panel=_RUN)(retry)
app.command(cls=RecrawlCommand, rich_help_panel=_RUN)(recrawl)
app.command(cls=CheckCommand, rich_help_panel=_RUN)(check)
app.command(cls=WarmCommand, epilog=WARM_EXAMPLES, rich_help_panel=_RUN)(warm)
app.command(cls=StoredCommand, rich_help_panel=_LOOK)(status)
app.command(cls=StoredCommand, rich_help_panel=_LOOK)(watch)
app.command("hosts", cls=StoredCommand, rich_help_panel=_LOOK)(hosts.hosts)
app.command(cls=StoredCommand, rich_help_panel=_LOOK)(explain)
app.command(cls=StoredCommand, rich_help_panel=_LOOK)(export)
app.command(cls=StoredCommand, rich_help_panel=_LOOK)(report)
app.command(cls=StoredCommand, rich_help_panel=_STEER)(steer.pause)
app.command(cls=StoredCommand, rich_help_panel=_STEER)(steer.unpause)
app.command(cls=StoredCommand, rich_help_panel=_STEER)(steer.stop)
app.command(cls=StoredCommand, rich_help_panel=_STEER)(steer.add)
app.command("set", cls=StoredCommand, rich_help_panel=_STEER)(steer.change)

_host = typer.Typer(
    help="Show, pause or resume one host of a crawl, or set its pace.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_host.command("show", cls=StoredCommand)(hosts.show_host)
_host.command("pause", cls=StoredCommand)(hosts.pause)
_host.command("resume", cls=StoredCommand)(hosts.resume)
_host.command("set", cls=StoredCommand)(hosts.set_pace)
_host.command("forget", cls=StoredCommand)(hosts.forget)
app.add_typer(_host, name="host", rich_help_panel=_STEER)

app.command(rich_help_panel=_MORE)(serve)
app.command(cls=StoredCommand, rich_help_panel=_CARE)(doctor)
app.command(cls=StoredCommand, rich_help_panel=_CARE)(wipe)

_config = typer.Typer(
    help="Show or begin the configuration.", no_args_is_help=True, rich_markup_mode=None
)
_config.command("show")(configuration.show)
_config.command("init")(configuration.init)
app.add_typer(_config, name="config", rich_help_panel=_MORE)

app.command(context_settings=_ENVIRONMENT, rich_help_panel=_MORE)(simulate)
app.command(rich_help_panel=_MORE)(demo)
app.command(cls=GroupedCommand, epilog=completion.EXAMPLES, rich_help_panel=_MORE)(
    completion.completion
)
app.command("help", rich_help_panel=_MORE)(help_command)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback signature
    if wanted:
        from mannerly.version import VERSION

        typer.echo(f"mannerly {VERSION}")
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


def _only_what_is_named() -> typer.Typer:
    """Return the application without the commands that are not called.

    typer builds the options of all of them for each start, which takes 25 ms of CPU time.
    """
    called = [info for info in app.registered_commands if _name(info) in sys.argv[1:2]]
    if not called or called[0].callback is help_command:  # which shows the help of any command
        return app
    lean = copy(app)
    lean.registered_commands, lean.registered_groups = called, []
    return lean


def _name(info: Any) -> str:
    return str(info.name or info.callback.__name__)


def main() -> None:
    """Run the command line."""
    completion.prepare()
    try:
        sys.exit(_only_what_is_named()(prog_name=completion.PROGRAM, standalone_mode=False))
    except typer.Abort:
        note("mannerly: aborted")
        sys.exit(1)
    except _CLICK_ERROR as error:
        from .look import error_look
        from .usage import usage_words

        note(error_look().spelled(usage_words(error)))
        sys.exit(error.exit_code)
