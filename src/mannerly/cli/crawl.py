"""`mannerly crawl`: from arguments to a crawl, and from its end to an exit code.

The options are made from the table in `options`, so that the command line, the environment and the
configuration files cannot differ. A data directory that holds a crawl is taken up again, with what
was decided when it began; what decides about URLs cannot change then, and saying otherwise is an
error rather than ignored.

    0    finished, or as far as --max-urls or --duration allow
    2    usage, configuration or file error     3    no seed could be fetched
    4    state locked or damaged                130, 143   stopped, and can be resumed
"""

from __future__ import annotations

import inspect
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mannerly.crawler.options import GROUPS, OPTIONS, Kind, printable

from .config import ConfigError, resolve
from .terminal import fail, failing_clearly, note, print_json, safe_term

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from mannerly.crawler.crawl import Crawl, CrawlResult
    from mannerly.crawler.options import Option, Value
    from mannerly.crawler.settings import CrawlSettings

    from .config import Configuration
    from .progress import Progress

# What decides about URLs: half a crawl under one rule and half under another is neither.
KEPT = ("scope", "include", "exclude", "max_depth", "seeding_strategy", "drop_tracking")

_ARGUMENT = "A URL, a host, a file with one URL a line, or - for standard input."


class Order(NamedTuple):
    """Everything that one run needs to know."""

    settings: CrawlSettings
    seeds: list[str]
    location: str
    configuration: Configuration


def crawl(urls: list[str] | None, **options: Value | None) -> None:
    """Crawl from URLs, files of URLs, or standard input (-).

    Running it again on the same data directory goes on where it stopped.
    """
    given = {name: value for name, value in options.items() if value is not None}
    with failing_clearly():
        configuration = resolve(given, environment=os.environ, directory=Path.cwd())
        run_order(prepare(urls or [], configuration))


def prepare(arguments: list[str], configuration: Configuration) -> Order:
    """Check everything that can be checked before the first request."""
    from mannerly.crawler.store import exists

    from .seeds import read_seeds

    data_dir = configuration.value("data_dir")
    seeds = read_seeds(arguments)
    if not seeds and data_dir is None:
        fail("nothing to crawl: give a URL, a file of URLs, or the --data-dir of a crawl")
    location = str(data_dir) if data_dir is not None else default_location(seeds[0])
    _check_outputs(configuration)
    if configuration.value("fresh") or not exists(location):
        settings = configuration.settings()
        _check_start(settings, seeds, location)
        if "processes" not in configuration.given:
            settings = replace(settings, processes=_useful_processes(settings, seeds))
    else:
        settings = _taken_up(configuration, seeds, location)
    return Order(settings, seeds, location, configuration)


def default_location(seed: str) -> str:
    """Return `crawl-<host>`, in characters that every file system takes."""
    from mannerly.crawler.web.urls import host_key_of

    return "crawl-" + host_key_of(seed).replace(":", "-").strip("[]")


def run_order(order: Order) -> None:
    """Crawl, export, tell, and leave with the exit code."""
    from mannerly.crawler.crawl import Crawl
    from mannerly.crawler.runtime.ending import Signals

    from .endings import exit_code

    if order.configuration.value("verbose"):
        for name, given in order.configuration.given.items():
            value = safe_term(str(printable(name, given.value)))
            note(f"{name} = {value} ({given.where})")
    fresh = bool(order.configuration.value("fresh"))
    crawl = Crawl.of(order.settings, order.seeds, order.location, fresh=fresh)
    if crawl.is_resumed and not order.configuration.value("quiet"):
        _tell_orders(order, crawl)
    with crawl, _progress(order) as watch, Signals() as signals:
        result = crawl.run(interrupts=signals, watch=watch)
    _export(order)
    _tell(order, result)
    raise typer.Exit(exit_code(result))


def _useful_processes(settings: CrawlSettings, seeds: list[str]) -> int:
    """One a core, but a host is one process's: there may be fewer hosts than cores."""
    from mannerly.crawler.web.scope import ScopeMode
    from mannerly.crawler.web.urls import host_key_of

    if settings.scope is ScopeMode.ANY:
        return settings.processes
    return min(settings.processes, len({host_key_of(seed) for seed in seeds}))


def _check_start(settings: CrawlSettings, seeds: list[str], location: str) -> None:
    """Refuse here what the crawl would refuse: by then --fresh has removed the old one."""
    from mannerly.crawler.fetch.guard import NetworkGuard

    if not seeds:
        fail(f"nothing to start from in {location}: give a URL or a file of URLs")
    settings.scope_of(seeds)
    NetworkGuard(seeds, settings.allow_net)


def _taken_up(configuration: Configuration, seeds: list[str], location: str) -> CrawlSettings:
    """Return the settings of a stored crawl with those of this run; conflicts are errors."""
    from mannerly.crawler.crawl import added_seeds
    from mannerly.crawler.fetch.guard import NetworkGuard
    from mannerly.crawler.inspection.view import settings_of
    from mannerly.crawler.store import open_crawl

    store = open_crawl(location)
    manifest = store.manifest
    known = {*manifest.seeds, *added_seeds(store)}
    store.close()
    for seed in seeds:
        if seed not in known:
            raise ConfigError(
                f"{safe_term(seed)} is no seed of the crawl in {location}: add it with `mannerly "
                "add`, choose another --data-dir, or start over with --fresh"
            )
    base = settings_of(manifest)
    settings = configuration.settings(base)
    for name in KEPT:
        field = OPTIONS[name].target or name
        if getattr(settings, field) != getattr(base, field):
            raise ConfigError(
                f"{configuration.given[name].where} cannot change in a crawl that has begun: "
                f"leave it out, or start over with --fresh"
            )
    NetworkGuard(manifest.seeds, settings.allow_net)
    return settings


def _check_outputs(configuration: Configuration) -> None:
    from mannerly.exports import check_target

    outputs = configuration.texts("output")
    for output in outputs:
        check_target(output)
    wants_stdout = outputs.count("-") + bool(configuration.value("json"))
    if wants_stdout > 1:
        raise ConfigError("--json and --output - both want standard output: choose one")


def _progress(order: Order) -> AbstractContextManager[Progress | None]:
    """Whoever tells the user meanwhile; nobody, if asked to be quiet."""
    from .progress import Progress

    configuration = order.configuration
    if configuration.value("quiet"):
        return nullcontext()
    log_format = configuration.value("log_format")
    return Progress(
        max_urls=order.settings.max_urls,
        duration_s=order.settings.duration_s,
        log_format=None if log_format is None else str(log_format),
        log_interval_s=float(str(configuration.value("log_interval"))),
    )


def _export(order: Order) -> None:
    from mannerly.exports import export

    for output in order.configuration.texts("output"):
        outcome = export(order.location, output)
        if not order.configuration.value("quiet"):
            for line in outcome.told():
                note(line)


def _tell_orders(order: Order, crawl: Crawl) -> None:
    """Say what control records change in this run: a paused crawl must not look stuck."""
    from mannerly.crawler.control import in_force

    from .steer import told

    log_format = order.configuration.value("log_format")
    for line in told(in_force(crawl.store.orders()), order.location):
        if log_format is None:
            note(line)
        else:
            from .logs import log

            log(str(log_format), "Control", reason=line)


def _tell(order: Order, result: CrawlResult) -> None:
    from .endings import described
    from .summary import summary

    configuration = order.configuration
    if configuration.value("json"):
        print_json(described(result, order.location))
    if configuration.value("quiet"):
        return
    if configuration.value("log_format") == "json":
        from .logs import log

        log("json", "Ended", **described(result, order.location))
        return
    hosts = 10 if configuration.value("verbose") else 3
    note(summary(result, order.location, hosts=hosts))


def _parameter(option: Option, group: str) -> inspect.Parameter:
    """An option as typer reads it. Everything is text here: `config` is the one that judges."""
    names = [option.flag, *([option.short] if option.short else [])]
    shown: dict[str, Any] = {"help": option.help, "rich_help_panel": group}
    annotation: Any = Annotated[str | None, typer.Option(*names, metavar=option.metavar, **shown)]
    if option.kind is Kind.LIST:
        listed = typer.Option(*names, metavar=option.metavar, **shown)
        annotation = Annotated[list[str] | None, listed]
    elif option.kind is Kind.FLAG:
        # Only what a file may have turned on needs a way to be turned off again.
        if option.target is not None:
            names[0] += "/--no-" + option.flag.removeprefix("--")
        annotation = Annotated[bool | None, typer.Option(*names, **shown)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, kind, default=None, annotation=annotation)


def with_options(
    function: Callable[..., None], first: inspect.Parameter, *, without: tuple[str, ...] = ()
) -> None:
    """Give a command the options of the table."""
    parameters = [first] + [
        _parameter(option, group)
        for group, options in GROUPS.items()
        for option in options
        if option.name not in without
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}


with_options(
    crawl,
    inspect.Parameter(
        "urls",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[
            list[str] | None,
            typer.Argument(metavar="URL|FILE|-", help=_ARGUMENT, show_default=False),
        ],
    ),
)
