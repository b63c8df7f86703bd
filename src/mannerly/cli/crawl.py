"""`mannerly crawl`: read the options, run the crawl, print the summary, return the exit code.

The options are made from the table in `crawler.options`, so that the command line, the environment
and the configuration files cannot differ. If the data directory holds a crawl, it is resumed with
its stored settings. The settings that decide which URLs are fetched cannot change then: other
values raise ConfigError. It is long because `check`, `recrawl`, `resume` and `warm` use its parts.

    0    finished, or --max-urls, --max-requests or --duration reached
    1    ended with work pending, or links lost with a page that crashed its parser, or a rule of
         --fail-on is broken
    2    usage, configuration or file error     3    no seed could be fetched
    4    data directory in use or damaged       130, 143   stopped; can be resumed
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.options.values import printable

from . import shared
from .command_line import Argument, GivenOptions, OptionsOfCrawl
from .config import ConfigError, resolve
from .export import check_function, check_outputs, content_of, for_outputs
from .report import BROKEN_RULE, read_rules, rules_broken_by
from .stored import default_location
from .terminal import USAGE, fail, failing_clearly, note, print_json, safe_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.crawler.runtime.coordinator import Membership
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import Manifest
    from mannerly.live.meter import Limits
    from mannerly.report import FailRule

    from .config import Configuration
    from .progress import Progress
    from .watchers import LivePage, MetricsFile

# Options that decide which URLs are fetched. They are fixed when a crawl begins.
KEPT = tuple(name for name, option in OPTIONS.items() if option.is_fixed)

EXAMPLES = """\
Examples:
  mannerly crawl https://example.com/ --max-urls 500 -o pages.jsonl
  mannerly crawl example.com --scope site --delay 2       the whole site, gently
  mannerly crawl seeds.txt --scope any --duration 3600    follow all links, an hour
  mannerly crawl example.com --host example.com:max_rate=2
  mannerly crawl --data-dir crawl-example.com             resume that crawl

Every option can also be a variable (MANNERLY_MAX_URLS) or a line in mannerly.toml:
mannerly help config. What the exit code means: mannerly help exit-codes.
"""

NO_NAME = "name_not_resolved"  # the reason code of a host name that does not exist


class RunPlan(NamedTuple):
    """The settings, seeds and location of one run."""

    settings: CrawlSettings
    seeds: list[str]
    location: str
    configuration: Configuration
    is_resumed: bool
    notices: list[str]  # printed at the start
    rules: list[FailRule]  # of --fail-on
    bare_seeds: frozenset[str] = frozenset()  # given without a scheme, perhaps meant as files
    pages_before: int = 0  # that earlier runs have fetched
    member: Membership | None = None  # of a crawl in a server
    is_kept: bool = True  # its directory is there when the command has ended


def crawl(
    *,
    urls: Annotated[
        list[str] | None,
        Argument(
            "URL|FILE|-", "A URL, a host, a file with one URL per line, or - for standard input."
        ),
    ] = None,
    start_url: Annotated[
        list[str] | None,
        declaration(
            "The same as an argument; repeatable.",
            metavar="URL|FILE",
            group="What to crawl",
            is_order=True,
        ),
    ] = None,
    options: Annotated[GivenOptions, OptionsOfCrawl()],
) -> None:
    """Crawl from URLs, files of URLs, or standard input (-).

    To resume a crawl, run the same command again.
    """
    with failing_clearly():
        configuration = resolve(options, environment=os.environ, directory=Path.cwd())
        run_plan(prepare([*(urls or []), *(start_url or [])], configuration))


def prepare(
    arguments: list[str],
    configuration: Configuration,
    base: CrawlSettings | None = None,
    *,
    verb: str = "Resuming",
    directory: str | None = None,
) -> RunPlan:
    """Return the plan of a run; errors are found before the first request.

    `base` are the settings of a new crawl, as far as no option changes them; `verb` says what the
    run does with a crawl that exists. `directory` is that of the crawl, and its name in a server,
    if no option names one; by default it is made from the seeds.
    """
    from mannerly.crawler.store import exists

    from . import notices
    from .seeds import read_sources

    data_dir = configuration.value("data_dir")
    sources = read_sources(arguments)
    seeds = list(dict.fromkeys(url for source in sources for url in source.urls))
    if (server := shared.server_of(configuration)) is not None:
        return shared.prepare_shared(sources, seeds, configuration, server, base, name=directory)
    if not seeds and data_dir is None:
        fail("nothing to crawl: give a URL, a file of URLs, or --data-dir of a crawl to resume")
    location = str(data_dir) if data_dir is not None else directory or default_location(sources)
    check_outputs(configuration)
    said = [*notices.project_file(configuration), *notices.seeds_read(sources)]
    is_resumed = not configuration.value("fresh") and exists(location)
    if not is_resumed:
        settings = for_outputs(configuration.settings(base), configuration)
        check_start(settings, seeds, location)
        if "processes" not in configuration.given:
            settings = replace(settings, processes=_useful_processes(settings, seeds))
    else:
        manifest = _checked_manifest(seeds, location, is_named=data_dir is not None)
        settings = for_outputs(_resumed(configuration, manifest, location), configuration)
        said += notices.resumed(location, manifest.seeds, settings, verb=verb)
        said += notices.control_records(location)
        left = notices.left_by_earlier_runs(location)
        said += left.lines
    if settings.extract is not None:
        check_function(settings.extract)
    bare = frozenset(url for source in sources if source.is_bare for url in source.urls)
    rules = read_rules(configuration.texts("fail_on"))
    before = left.pages if is_resumed else 0
    return RunPlan(settings, seeds, location, configuration, is_resumed, said, rules, bare, before)


def run_plan(plan: RunPlan) -> None:
    """Run the crawl, write the exports, print the summary, exit with the code."""
    result = carry_out(plan, fresh=bool(plan.configuration.value("fresh")))
    raise click.exceptions.Exit(finish(plan, result))


def finish(
    plan: RunPlan,
    result: CrawlResult,
    more: Mapping[str, object] | None = None,
    show: Callable[[RunPlan, CrawlResult], None] | None = None,
) -> int:
    """Write the exports, print the summary, and return the exit code.

    `more` is added to the result as JSON; `show` prints the result in place of the summary.
    """
    from .endings import exit_code
    from .export import write_all

    quiet = bool(plan.configuration.value("quiet"))
    written = write_all(
        plan.location,
        plan.configuration.texts("output"),
        content=content_of(plan.configuration),
        quiet=quiet,
    )
    elsewhere = shared.records_elsewhere(plan)
    code = USAGE if written == USAGE else exit_code(result) or written
    broken = rules_broken_by(plan.location, plan.rules) if code in (0, BROKEN_RULE) else []
    _report(plan, result, broken, {**(more or {}), **elsewhere}, show)
    return code or (BROKEN_RULE if broken else 0)


def carry_out(plan: RunPlan, *, fresh: bool) -> CrawlResult:
    """Run the crawl and show its progress."""
    from mannerly.crawler.crawl import run_crawl

    from .notices import say
    from .watchers import together

    if plan.configuration.value("verbose"):
        for name, given in plan.configuration.given.items():
            value = safe_term(str(printable(name, given.value)))
            note(f"{name} = {value} ({given.where})")
    if not plan.configuration.value("quiet"):
        say(_notices(plan), plan.configuration.value("log_format"))
    with _progress(plan) as progress, _dashboard(plan) as page, _metrics(plan) as metrics:
        result = run_crawl(
            plan.settings,
            plan.seeds,
            plan.location,
            plan.configuration.given,
            fresh=fresh,
            watcher=together((progress, page, metrics)),
            member=plan.member,
        )
        if metrics is not None:
            metrics(result.stats, result.seconds)
        return result


def _useful_processes(settings: CrawlSettings, seeds: list[str]) -> int:
    """Return one process per core, but not more than seed hosts: a host has one process."""
    from mannerly.crawler.web.choices import ScopeMode
    from mannerly.crawler.web.urls import host_key_of

    if settings.scope is ScopeMode.ANY:
        return settings.processes
    return min(settings.processes, len({host_key_of(seed) for seed in seeds}))


def check_start(settings: CrawlSettings, seeds: list[str], location: str) -> None:
    """Check the seeds and networks before --fresh removes the old crawl."""
    from mannerly.crawler.fetch.guard import NetworkGuard

    if not seeds:
        fail(f"there is no crawl to resume in {location}: give a URL or a file of URLs")
    settings.scope_of(seeds)
    NetworkGuard(seeds, settings.allow_net)


def _checked_manifest(seeds: list[str], location: str, *, is_named: bool) -> Manifest:
    """Return the manifest of a crawl that is to be resumed.

    Raises:
        ConfigError: a seed is not one of the crawl's; or the operator has not named the crawl, and
            it is another user's or has other seeds, too.
    """
    from mannerly.crawler.store import open_crawl
    from mannerly.crawler.stored import added_seeds

    from .notices import check_found

    store = open_crawl(location)
    manifest = store.manifest
    known = {*manifest.seeds, *added_seeds(store)}
    store.close()
    for seed in seeds:
        if seed not in known:
            raise ConfigError(
                f"{safe_term(seed)} is not a seed of the crawl in {location}: add it with "
                "`mannerly add`, choose another --data-dir, or start over with --fresh"
            )
    if not is_named:
        check_found(location, manifest.seeds, seeds)
    return manifest


def _resumed(configuration: Configuration, manifest: Manifest, location: str) -> CrawlSettings:
    """Return the settings of a stored crawl, changed by those of this run.

    Raises:
        ConfigError: a setting of `KEPT` differs.
    """
    from mannerly.crawler.fetch.guard import NetworkGuard
    from mannerly.crawler.inspection.view import settings_of

    base = settings_of(manifest)
    settings = configuration.settings(base)
    for name in KEPT:
        field = OPTIONS[name].target or name
        if getattr(settings, field) != getattr(base, field):
            raise ConfigError(
                f"{configuration.given[name].where} cannot be changed when the crawl in {location} "
                "is resumed: leave it out, or start over with --fresh"
            )
    NetworkGuard(manifest.seeds, settings.allow_net)
    return settings


def _limits(plan: RunPlan) -> Limits:
    from mannerly.live.meter import limits_of

    return limits_of(plan.settings, plan.pages_before)


def _dashboard(plan: RunPlan) -> AbstractContextManager[LivePage | None]:
    """Return the page of the crawl, if it was asked for."""
    place = plan.configuration.value("dashboard")
    if place is None:
        return nullcontext()
    from .watchers import LivePage

    return LivePage(str(place), plan.location, _limits(plan))


def _metrics(plan: RunPlan) -> AbstractContextManager[MetricsFile | None]:
    """Return what writes the metrics, if a file was named."""
    configuration = plan.configuration
    path = configuration.value("metrics_file")
    if path is None:
        return nullcontext()
    from .watchers import MetricsFile

    return MetricsFile(
        Path(str(path)),
        _limits(plan),
        interval_s=float(str(configuration.value("metrics_interval"))),
        hosts=int(str(configuration.value("metrics_hosts"))),
    )


def _progress(plan: RunPlan) -> AbstractContextManager[Progress | None]:
    """Return what shows the progress; nothing is shown with --quiet."""
    from .progress import Progress

    configuration = plan.configuration
    if configuration.value("quiet"):
        return nullcontext()
    log_format = configuration.value("log_format")
    return Progress(
        _limits(plan),
        log_format=None if log_format is None else str(log_format),
        log_interval_s=float(str(configuration.value("log_interval"))),
        is_close=bool(configuration.value("verbose")),
        location=plan.location,
    )


def _notices(plan: RunPlan) -> list[str]:
    """Return what is said at the start."""
    from . import notices

    return [
        *plan.notices,
        *notices.missing_parts(plan.settings),
        *notices.private_seeds(plan.seeds),
        *notices.wider_scope(plan.configuration, plan.settings),
        *notices.unmet_hosts(plan.seeds, plan.settings),
        *notices.unsent_credentials(plan.seeds, plan.settings),
        *notices.remembered_paces(plan.seeds, plan.configuration, plan.settings),
        *([] if plan.is_resumed else notices.anonymous(plan.seeds, plan.settings)),
    ]


def _report(
    plan: RunPlan,
    result: CrawlResult,
    broken_rules: list[str],
    more: Mapping[str, object],
    show: Callable[[RunPlan, CrawlResult], None] | None,
) -> None:
    from .endings import described

    configuration = plan.configuration
    said = described(result, plan.location if plan.is_kept else None) | dict(more)
    if plan.rules:
        said["broken_rules"] = broken_rules
    if configuration.value("json"):
        print_json(said)
    for each in broken_rules:
        note(f"mannerly: {each}")
    if configuration.value("quiet"):
        return
    if configuration.value("log_format") == "json":
        from .event_log import log

        log("json", "Ended", **said)
        return
    (show or print_summary)(plan, result)
    if any(each.code == NO_NAME and each.url in plan.bare_seeds for each in result.seed_problems):
        note("If you meant a file of URLs: there is no file of that name here.")


def print_summary(plan: RunPlan, result: CrawlResult) -> None:
    """Print how a run ended."""
    from .display import error_display
    from .endings import next_command
    from .summary import Ended, summary
    from .terminal import tell

    configuration, settings = plan.configuration, plan.settings
    limits = {
        "max_urls": f"--max-urls {settings.max_urls or 0:,}",
        "max_requests": f"--max-requests {settings.max_requests or 0:,}",
        "duration": f"--duration {settings.duration_s or 0:g}",
        "error_rate": f"--max-error-rate {settings.max_error_rate or 0:g}",
    }
    is_long = bool(configuration.value("verbose"))
    data_dir = "" if plan.member is None else str(plan.member.data_dir)
    ended = Ended(
        result,
        plan.location if plan.is_kept else None,
        hosts=10 if is_long else 1,
        is_resumed=plan.is_resumed,
        limit=limits.get(result.ending.value, ""),
        is_long=is_long,
        next_command=next_command(plan.location, data_dir) if plan.is_kept else "",
        data_dir=data_dir,
        render=settings.render,
    )
    tell(summary(ended, error_display()) + "\n")
