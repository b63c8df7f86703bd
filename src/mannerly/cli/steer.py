"""`mannerly pause|unpause|stop|add|set`: steer a crawl from anywhere.

Each appends a control record to the crawl's store: a running crawl acts on it within a second, a
stopped one when it is resumed.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Annotated

from mannerly.crawler.options.option import ValueKind, declaration
from mannerly.crawler.options.table import CHANGEABLE, OPTIONS, main_name
from mannerly.crawler.web.words import many

from .command_line import Argument
from .stored import Location, opened, when
from .terminal import fail, failing_clearly, note, safe_term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.control import HostOrders, InForce
    from mannerly.live.meter import Live

_POLL_S = 0.1  # how often `stop --wait` asks whether the crawl has ended

_WITH_NUMBER = [name for name in CHANGEABLE if OPTIONS[name].kind is not ValueKind.LIST]


def pause(location: Location) -> None:
    """Pause a crawl until `unpause`.

    Requests in flight finish.
    """
    with failing_clearly(), opened(location) as crawl:
        crawl.pause()
        note(
            f"Paused {crawl.location}{when(crawl)}. To continue: {unpause_command(crawl.location)}"
        )


def unpause(location: Location) -> None:
    """Continue a paused crawl."""
    from mannerly.crawler.control import in_force

    with failing_clearly(), opened(location) as crawl:
        if not in_force(crawl.store.orders()).is_paused:
            note(f"{crawl.location} is not paused")
            return
        crawl.unpause()
        note(f"Continued {crawl.location}{when(crawl)}")


def stop(
    location: Location,
    *,
    wait: Annotated[
        bool, declaration("Return when the crawl has ended, not at once.", is_order=True)
    ] = False,
) -> None:
    """Stop a running crawl, as Ctrl-C does. It can be resumed."""
    from .endings import resume_command

    with failing_clearly(), opened(location) as crawl:
        if not crawl.store.is_running():
            fail(f"the crawl in {crawl.location} is not running")
        crawl.stop()
        note(f"Stopping {crawl.location}. To resume it: {resume_command(crawl.location)}")
        while wait and crawl.store.is_running():
            time.sleep(_POLL_S)


def add(
    location: Location,
    urls: Annotated[
        list[str],
        Argument("URL|FILE|-", "URLs, files with one URL a line, or - for standard input."),
    ],
) -> None:
    """Add seeds (start URLs) to a crawl.

    Its scope includes them from then on.
    """
    from .seeds import read_seeds

    with failing_clearly(), opened(location) as crawl:
        seeds = read_seeds(urls)
        if not seeds:
            fail("nothing to add: give a URL or a file of URLs")
        crawl.add(seeds)
        what = safe_term(seeds[0]) if len(seeds) == 1 else many(len(seeds), "seed")
        note(f"Added {what} to {crawl.location}{when(crawl)}")


def change(
    location: Location,
    assignments: Annotated[
        list[str],
        Argument(
            "KEY=VALUE",
            f"{', '.join(_WITH_NUMBER)} with a number or none (no limit); exclude with a glob.",
        ),
    ],
) -> None:
    """Change options of a crawl while it runs, such as max_rate=2."""
    with failing_clearly(), opened(location) as crawl:
        crawl.set(**_assigned(assignments))  # type: ignore[arg-type]  # checked there, by name
        note(f"Set {safe_term(', '.join(assignments))} for {crawl.location}{when(crawl)}")


def unpause_command(location: str) -> str:
    """Return the command that ends a pause."""
    return f"mannerly unpause {shlex.quote(location)}"


def host_resume_command(location: str, host: str) -> str:
    """Return the command that ends the pause of a host."""
    return f"mannerly host resume {shlex.quote(location)} {shlex.quote(host)}"


def continue_command(live: Live, location: str) -> str:
    """Return the command that continues a crawl that is paused, as a whole or by its hosts."""
    from mannerly.crawler.host_view import HostStatus

    paused = [each.host for each in live.stats.now.host_views if each.state is HostStatus.PAUSED]
    if live.stats.now.is_paused or not paused:
        return unpause_command(location)
    return host_resume_command(location, paused[0])


def described(orders: InForce, location: str) -> list[str]:
    """Return what control records change in a crawl that is resumed, one sentence each."""
    lines = []
    if orders.is_paused:
        lines.append(f"This crawl is paused. To continue: {unpause_command(location)}")
    options = [f"{name}={_figure(value)}" for name, value in orders.options.items()]
    options += [f"exclude={glob}" for glob in orders.excludes]
    if options:
        lines.append(f"Set earlier with `mannerly set`: {safe_term(', '.join(options))}")
    paused = [host for host, each in orders.hosts.items() if each.is_paused]
    if paused:
        command = host_resume_command(location, paused[0])
        lines.append(f"Paused hosts: {_some(paused)}. To continue: {safe_term(command)}")
    paced = [host for host, each in orders.hosts.items() if pace(each)]
    if paced:
        lines.append(f"Hosts whose pace was set with `mannerly host set`: {_some(paced)}")
    return lines


def pace(orders: HostOrders) -> str:
    """Return what was set for a host, in the words of `host set`; nothing if nothing was."""
    given = (
        ("--delay", orders.delay_s),
        ("--max-rate", orders.max_rate),
        ("--per-host", orders.per_host),
    )
    return " ".join(f"{name} {_figure(value)}" for name, value in given if value is not None)


def _some(hosts: list[str]) -> str:
    named = ", ".join(safe_term(host, limit=60) for host in hosts[:3])
    return named if len(hosts) <= 3 else f"{named} and {len(hosts) - 3:,} more"


def _figure(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.15g}"


def _assigned(assignments: Iterable[str]) -> dict[str, object]:
    """Return options by name. A pattern may be excluded several times, the last of others wins."""
    from mannerly.crawler.options.values import from_text

    options: dict[str, object] = {}
    globs: list[str] = []
    for text in assignments:
        key, equals, value = text.partition("=")
        name, value = key.strip().replace("-", "_"), value.strip()
        if not equals or not value:
            fail(f"{safe_term(text)} is not KEY=VALUE: write it like max_rate=2")
        if value.lower() == "none":
            options[name] = None
        elif name == "exclude":
            globs.append(value)
            options.setdefault(name, globs)
        else:
            option = OPTIONS.get(main_name(name))
            options[name] = value if option is None else from_text(option, value)
    return options
