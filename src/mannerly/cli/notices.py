"""Say at the start of a run what it reads, resumes and lacks.

The working directory decides more than one sees: a project file sets options, a file of seeds
replaces a host, a data directory brings its own seeds and settings. Each is named, and a crawl that
was found by its default name is not resumed if another user owns it or it has other seeds.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.options.option import ProjectUse
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.options.values import nearest, printable
from mannerly.crawler.web.words import many, span

from .config import ConfigError
from .display import error_display
from .endings import resume_command
from .event_log import log
from .terminal import note, safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mannerly.crawler.settings import CrawlSettings

    from .config import Configuration
    from .seeds import SeedSource

_NAMED_SEEDS = 3


def say(lines: Iterable[str], log_format: object) -> None:
    """Print notices, wrapped on a terminal; with a log format, each as a log line."""
    display = error_display()
    for line in lines:
        if log_format is not None:
            log(str(log_format), "Notice", reason=line)
        elif sys.stderr.isatty():
            note(fill(display.spelled(line), display.columns - 1, subsequent_indent="  "))
        else:
            note(display.spelled(line))


def project_file(configuration: Configuration) -> list[str]:
    """Name the options that a project file has set."""
    found: dict[str, list[str]] = {}
    for name, given in configuration.given.items():
        if given.file is not None:
            found.setdefault(given.file, []).append(name)
    return [
        f"Options from {safe_term(file)} in the working directory: {', '.join(names)}"
        for file, names in found.items()
    ]


def seeds_read(sources: Sequence[SeedSource]) -> list[str]:
    """Name the files that seeds were read from."""
    return [
        f"Read {many(len(source.urls), 'URL')} from {source.file}"
        for source in sources
        if source.file is not None
    ]


def resumed(
    location: str, seeds: Sequence[str], settings: CrawlSettings, *, verb: str = "Resuming"
) -> list[str]:
    """Say what is resumed: its seeds, and what it allows that only an operator may."""
    from mannerly.crawler.settings import in_force

    allowed = []
    for name, option in OPTIONS.items():
        if option.project_use is ProjectUse.NONE and option.target is not None:
            value = in_force(settings, option)
            if value:
                shown = printable(name, value)
                texts = shown if isinstance(shown, list | tuple) else (shown,)
                allowed += [
                    option.flag if text is True else f"{option.flag} {shlex.quote(str(text))}"
                    for text in texts
                ]
    owner = foreign_owner(location)
    return [
        f"{verb} the crawl in {safe_term(location)}: {_named(seeds)}"
        + (f"; {safe_term(' '.join(allowed))}" if allowed else "")
        + (f"; it belongs to another user (uid {owner})" if owner is not None else "")
    ]


class LeftBehind(NamedTuple):
    """The work of earlier runs of a crawl, in words, and the number of their pages."""

    lines: list[str]
    pages: int


def left_by_earlier_runs(location: str) -> LeftBehind:
    """Say how far a crawl is that is resumed, and what is kept of it."""
    from mannerly.crawler.inspection.status import totals
    from mannerly.crawler.store import open_crawl

    store = open_crawl(location)
    total, active_at, is_running = totals(store), store.last_activity(), store.is_running()
    store.close()
    pages = total["fetched"] + total["failed"]
    if is_running:  # it cannot be resumed: the run says so
        return LeftBehind([], pages)
    queued = many(total["pending"], "URL")
    ago = span(time.time() - active_at)
    lines = [f"● Resumed  {many(pages, 'page')} fetched, {queued} queued, stopped {ago} ago"]
    if total["hosts"]:
        whose = "its" if total["hosts"] == 1 else "their"
        lines.append(f"  Kept: the pace of {many(total['hosts'], 'host')}, and {whose} robots.txt")
    return LeftBehind(lines, pages)


def check_found(location: str, stored: Sequence[str], seeds: Sequence[str]) -> None:
    """Check a crawl that was found by its default name, not named by the operator.

    Raises:
        ConfigError: another user owns it, or it has seeds that were not given.
    """
    anyway = f"to resume it as it is: {resume_command(location)}; to start over, add --fresh"
    owner = foreign_owner(location)
    if owner is not None:
        raise ConfigError(f"{location} belongs to another user (uid {owner}): {anyway}")
    others = [seed for seed in stored if seed not in set(seeds)]
    if others:
        raise ConfigError(
            f"the crawl in {location} has other seeds, too: {_named(others)}; {anyway}"
        )


def foreign_owner(location: str) -> int | None:
    """Return the user that owns a data directory or a file in it, if it is not this one."""
    if not hasattr(os, "geteuid"):
        return None
    directory = Path(location)
    try:
        owners = [path.lstat().st_uid for path in (directory, *directory.iterdir())]
    except OSError:
        return None  # not a directory, or one that cannot be read: opening it says so
    return next((owner for owner in owners if owner != os.geteuid()), None)


def missing_parts(settings: CrawlSettings) -> list[str]:
    """Say what this installation or this machine lacks, and what that costs."""
    from importlib.util import find_spec

    from mannerly.crawler.runtime.machine import too_few

    few = too_few(settings.concurrency, settings.processes)
    lines = [few] if few else []
    if find_spec("pcre2") is None:
        lines.append(
            "pcre2 is not installed: pages are read by the tree parser, which takes more CPU"
        )
    return lines


def private_seeds(seeds: Sequence[str]) -> list[str]:
    """Say which seeds let the crawl into a private network: a list may hold one by mistake."""
    from mannerly.crawler.fetch.guard import NetworkGuard

    private = NetworkGuard(seeds).private_seeds
    if not private:
        return []
    named = ", ".join(map(safe_term, private[:_NAMED_SEEDS]))
    if len(private) > _NAMED_SEEDS:
        named += f" and {len(private) - _NAMED_SEEDS:,} more"
    return [f"Private addresses, allowed because they are seeds: {named} (others: --allow-net)"]


def wider_scope(configuration: Configuration, settings: CrawlSettings) -> list[str]:
    """Say that the source of seeds has made the scope wider than it is by default."""
    from mannerly.crawler.settings import NAMES_HOSTS

    is_given = "scope" in configuration.given
    if settings.seeding not in NAMES_HOSTS or settings.scope != "site" or is_given:
        return []
    source = f"--seeding-strategy {settings.seeding}"
    why = f"{source} names other hosts of the site, so the scope is the site"
    return [f"{why}: with --scope host they are left out"]


def anonymous(seeds: Sequence[str], settings: CrawlSettings) -> list[str]:
    """Say what site owners see, if it is not whom to ask: their logs are all they have."""
    from mannerly.crawler.fetch.guard import NetworkGuard
    from mannerly.crawler.options.declared import USER_AGENT
    from mannerly.crawler.web.urls import host_key_of

    is_ours = settings.user_agent == USER_AGENT and not settings.contact
    hosts = {host_key_of(seed) for seed in seeds}
    if not is_ours or len(NetworkGuard(seeds).private_seeds) >= len(hosts):
        return []
    seen = f'Site owners see the User-Agent "{USER_AGENT}" and not whom to write to'
    return [f"{seen}: add --contact you@example.org, or the URL of a page about your crawl"]


def unsent_credentials(seeds: Sequence[str], settings: CrawlSettings) -> list[str]:
    """Name headers and logins that no seed's origin gets: of https where the seed is of http."""
    from mannerly.crawler.fetch.credentials import read_header, read_login
    from mannerly.crawler.fetch.guard import split_origin

    met = {split_origin(seed) for seed in seeds}
    named = [("--auth", read_login(text)[0]) for text in settings.auth]
    named += [("--header", origin) for text in settings.headers if (origin := read_header(text)[0])]
    lines = []
    for flag, (scheme, host, port) in dict.fromkeys(named):
        plain = ("http", host, 80 if port == 443 else port)
        if scheme == "https" and plain in met and (scheme, host, port) not in met:
            place = host if port == 443 else f"{host}:{port}"
            lines.append(
                f"{flag} for {place} is sent over https only; for http write "
                f"{flag} http://{place}=…"
            )
    return lines


def remembered_paces(
    seeds: Sequence[str], configuration: Configuration, settings: CrawlSettings
) -> list[str]:
    """Say that --start-rate is for hosts that are not known, and which hosts of seeds are."""
    from mannerly.crawler.inspection.neighbours import learned_rates
    from mannerly.crawler.web.urls import host_key_of

    if "start_rate" not in configuration.given:
        return []
    rates = learned_rates(settings, [host_key_of(seed) for seed in seeds[:_NAMED_SEEDS]])
    where = configuration.given["start_rate"].where
    return [
        f"{where} does not hold for {safe_term(host, limit=80)}: earlier crawls have learned its "
        f"pace ({rate:.1f}/s). --memory none begins anew"
        for host, rate in rates.items()
    ]


def unmet_hosts(seeds: Sequence[str], settings: CrawlSettings) -> list[str]:
    """Name hosts with options of their own that no seed is on: perhaps they are misspelled."""
    from mannerly.crawler.web.urls import host_key_of

    met = {host_key_of(seed) for seed in seeds}
    unmet = [host for host in settings.hosts if host not in met]
    if not seeds or not unmet or settings.scope == "any":
        return []
    near = nearest(unmet[0], met)
    named = ", ".join(safe_term(host, limit=80) for host in unmet[:_NAMED_SEEDS])
    more = f" and {len(unmet) - _NAMED_SEEDS:,} more" if len(unmet) > _NAMED_SEEDS else ""
    return [f"Hosts with options of their own, but without a seed: {named}{more}{near}"]


def control_records(location: str) -> list[str]:
    """Say what control records change in a resumed run: a paused crawl must not look stuck."""
    from mannerly.crawler.control import in_force
    from mannerly.crawler.store import exists, open_crawl

    from .steer import described

    if not exists(location):
        return []
    store = open_crawl(location)
    orders = in_force(store.orders())
    store.close()
    return described(orders, location)


def _named(seeds: Sequence[str]) -> str:
    if not seeds:
        return "no seed"
    more = f" and {many(len(seeds) - 1, 'more seed')}" if len(seeds) > 1 else ""
    return safe_term(seeds[0], limit=200) + more
