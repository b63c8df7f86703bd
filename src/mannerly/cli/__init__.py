"""The command `mannerly`: its subcommands, for parsing and printing only.

    config               the values of all options: command line, environment, files
    crawl, resume, retry run a crawl; then exports, summary (endings) and exit code
    progress, event_log  the live line or log lines while a crawl runs
    stored, steer        open a stored crawl, to show it or to steer it
    terminal             print crawled text safely; print errors
    command_line         commands made of functions; help, completion: groups, topics, shells

Data goes to stdout and everything else to stderr. A usage error is one sentence and exit code 2.
Each subcommand imports what it needs when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

import sys

import click

from . import completion, configuration, help, hosts, steer  # noqa: A004
from .attempt import attempt
from .check import check
from .command_line import Command
from .crawl import EXAMPLES, crawl
from .demo import demo
from .doctor import doctor, wipe
from .export import export
from .extract import EXAMPLES as EXTRACT_EXAMPLES
from .extract import about, extract
from .report import report
from .resume import recrawl, resume
from .retry import retry
from .run import EXAMPLES as RUN_EXAMPLES
from .run import run
from .serve import serve
from .shell import EXAMPLES as SHELL_EXAMPLES
from .shell import shell
from .simulate import simulate
from .status import explain, status
from .terminal import note
from .warm import EXAMPLES as WARM_EXAMPLES
from .warm import warm
from .watch import watch

_EXAMPLES = """\
Examples:
  mannerly crawl example.com --max-urls 500           into ./crawl-example.com
  mannerly status crawl-example.com                   how far it has come
  mannerly export crawl-example.com -o pages.jsonl    one JSON record per page
  mannerly help politeness                            how fast it crawls, and why
"""

_RUN, _SHOW, _STEER = "Run a crawl", "Inspect a crawl", "Steer a crawl"
_CARE, _MORE = "Take care of a crawl", "More"


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted and not ctx.resilient_parsing:
        from mannerly.version import VERSION

        click.echo(f"mannerly {VERSION}")
        ctx.exit()


app = help.CommandGroup(
    completion.PROGRAM,
    (
        Command(crawl, title=_RUN, epilog=EXAMPLES),
        Command(run, title=_RUN, epilog=RUN_EXAMPLES),
        Command(attempt, "try", title=_RUN),
        Command(shell, title=_RUN, epilog=SHELL_EXAMPLES),
        Command(resume, title=_RUN),
        Command(retry, title=_RUN),
        Command(recrawl, title=_RUN),
        Command(check, title=_RUN),
        Command(warm, title=_RUN, epilog=WARM_EXAMPLES),
        Command(status, title=_SHOW),
        Command(watch, title=_SHOW),
        Command(hosts.hosts, title=_SHOW),
        Command(explain, title=_SHOW),
        Command(export, title=_SHOW),
        Command(extract, title=_SHOW, epilog=EXTRACT_EXAMPLES),
        Command(about, title=_SHOW),
        Command(report, title=_SHOW),
        Command(steer.pause, title=_STEER),
        Command(steer.unpause, title=_STEER),
        Command(steer.stop, title=_STEER),
        Command(steer.add, title=_STEER),
        Command(steer.change, "set", title=_STEER),
        help.CommandGroup(
            "host",
            (
                Command(hosts.show_host, "host show"),
                Command(hosts.pause, "host pause"),
                Command(hosts.resume, "host resume"),
                Command(hosts.set_pace, "host set"),
                Command(hosts.forget, "host forget"),
            ),
            help="Show, pause or resume one host of a crawl, or set its pace.",
            title=_STEER,
        ),
        Command(doctor, title=_CARE),
        Command(wipe, title=_CARE),
        Command(serve, title=_MORE),
        help.CommandGroup(
            "config",
            (
                Command(configuration.show, "config show"),
                Command(configuration.init, "config init"),
            ),
            help="Show or begin the configuration.",
            title=_MORE,
        ),
        Command(simulate, title=_MORE),
        Command(demo, title=_MORE),
        Command(completion.completion, title=_MORE, epilog=completion.EXAMPLES),
        Command(completion.help_command, "help", title=_MORE),
    ),
    help="The fast, well-mannered web crawler.",
    epilog=_EXAMPLES,
    context_settings={"max_content_width": help.WIDTH},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Print the version and exit.",
        )
    ],
)


def commands(group: click.Group = app) -> dict[str, Command]:
    """Return every command, by its name behind that of the program."""
    found: dict[str, Command] = {}
    for each in group.commands.values():
        found |= commands(each) if isinstance(each, click.Group) else {}
        if isinstance(each, Command):
            found[each.path] = each
    return found


def main() -> None:
    """Run the command line."""
    try:
        sys.exit(app.main(prog_name=completion.PROGRAM, standalone_mode=False))
    except click.Abort:
        note("mannerly: aborted")
        sys.exit(1)
    except click.ClickException as error:
        from .display import error_display
        from .help import usage_words

        note(error_display().spelled(usage_words(error)))
        sys.exit(error.exit_code)
