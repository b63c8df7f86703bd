"""`mannerly hosts` and `mannerly host …`: show the hosts of a crawl, and steer them.

Steering appends a control record to the crawl's store: a running crawl acts on it within a second,
a stopped one when it is resumed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.web.choices import HostSort
from mannerly.crawler.web.words import many, span, without_userinfo

from .command_line import Argument
from .display import display_of
from .steer import host_resume_command, pace
from .stored import Location, opened, when
from .terminal import fail, failing_clearly, note, print_json, safe_term, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.control import HostOrders
    from mannerly.crawler.host_view import HostView
    from mannerly.crawler.inspection.hosts import HostDetails
    from mannerly.crawler.model import HostRecord
    from mannerly.crawler.stored import HostHandle, StoredCrawl
    from mannerly.hosts.base import HostBudget

    from .display import Display

Host = Annotated[
    str,
    Argument("HOST", "A host name, with :port if it is not the default one, or a URL of the host."),
]
_SET = ("delay_s", "max_rate", "per_host")
_COMPARED = 1000  # hosts, those with the most pages, that a name may be a misspelling of
_MISSPELLED = 0.85  # how alike names have to be, from 0 to 1
AsJson = Annotated[bool, declaration("Print JSON.")]


def hosts(
    location: Location,
    *,
    sort: Annotated[
        HostSort, declaration(f"Sort by {', '.join(HostSort)}; largest first.")
    ] = HostSort.QUEUED,
    limit: Annotated[int, declaration("Number of hosts to show.", low=1, metavar="N")] = 20,
    json: AsJson = False,
) -> None:
    """List the hosts: queue, pace, limit, and why they wait."""
    with failing_clearly(), opened(location) as crawl:
        if json:
            orders = _orders(crawl)
            print_json([_fields(view, orders) for view in crawl.hosts(sort, limit)])
            return
        found = crawl.hosts(sort, limit)
        total = crawl.status().total["hosts"]
    if found:
        print_table(found, sort, total, display_of(sys.stdout))


def print_table(found: list[HostView], sort: str, total: int, display: Display) -> None:
    """Print hosts as a table, with what its columns mean."""
    from .host_table import has_states, host_table, legend

    all_of_them = f" --limit {total} shows all." if len(found) < total else ""
    lines = [
        *host_table(found, display),
        "",
        *([] if has_states(display) else [legend(found, display)]),
    ]
    by = {"queued": "queue", "given_up": "URLs given up"}.get(sort, sort)
    lines.append(
        f"{len(found):,} of {many(total, 'host')}, by {by}. Pace and limit in requests/s."
        f"{all_of_them}"
    )
    click.echo("\n".join(lines))


def show_host(location: Location, host: Host, *, json: AsJson = False) -> None:
    """Show what is known about one host."""
    with failing_clearly(), opened(location) as crawl:
        view, next_urls = _shown(crawl, crawl.host(host), host)
        orders = _orders(crawl)
        options = _own_options(crawl, view.host)
        shared = crawl.host(host).shared()
    if json:
        fields = {**_fields(view, orders), "options": options, "next_urls": list(next_urls)}
        print_json(fields | {"shared": _shared_fields(shared)})
        return
    for name, value in _described(view, orders):
        show(f"{name:<16}{value}")
    if options:
        own = ", ".join(f"{name} = {value}" for name, value in options.items())
        show(f"{'own options':<16}{own}")
    if shared is not None and shared.lesson is not None:
        show(f"{'all crawls know':<16}{_lesson(shared)}")
    show(f"{'given up':<16}{view.given_up:,}")
    show(f"{'queued':<16}{view.queued:,}")
    for url in next_urls:
        show(f"  {safe_term(url)}")


def pause(location: Location, host: Host) -> None:
    """Pause one host: nothing is sent to it until `host resume`."""
    with failing_clearly(), opened(location) as crawl:
        handle = crawl.host(host)
        handle.pause()
        command = safe_term(host_resume_command(crawl.location, handle.name))
        note(f"Paused {_named(crawl, handle)}{when(crawl)}. To continue: {command}")


def resume(location: Location, host: Host) -> None:
    """Continue with a host that was paused or given up."""
    with failing_clearly(), opened(location) as crawl:
        handle = crawl.host(host)
        if handle.name not in _orders(crawl):
            _shown(crawl, handle, host)
        handle.resume()
        note(f"Resumed {safe_term(handle.name)}{when(crawl)}")


def set_pace(
    location: Location,
    host: Host,
    *,
    delay: Annotated[
        float | None,
        declaration("Minimum delay between requests, in seconds.", metavar="S", is_order=True),
    ] = None,
    max_rate: Annotated[
        str | None,
        declaration("Maximum requests per second, or unlimited.", metavar="R", is_order=True),
    ] = None,
    per_host: Annotated[
        int | None, declaration("Maximum requests in flight.", metavar="N", is_order=True)
    ] = None,
) -> None:
    """Set the pace of one host.

    Options that are not given stay as they are. These values replace those of the crawl until
    they are set again. Crawl-delay and Retry-After are still obeyed.
    """
    from mannerly.crawler.options.table import OPTIONS
    from mannerly.crawler.options.values import from_text

    if delay is None and max_rate is None and per_host is None:
        fail("nothing to set: give --delay, --max-rate or --per-host")
    rate: Any = None if max_rate is None else from_text(OPTIONS["max_rate"], max_rate)
    with failing_clearly(), opened(location) as crawl:
        handle = crawl.host(host)
        handle.set(delay_s=delay, max_rate=rate, per_host=per_host)
        said = pace(_orders(crawl)[handle.name])
        note(f"Set the pace of {_named(crawl, handle)} to {said}{when(crawl)}")


def forget(location: Location, host: Host) -> None:
    """Forget the learned pace of a host; Retry-After still applies."""
    with failing_clearly(), opened(location) as crawl:
        handle = crawl.host(host)
        _shown(crawl, handle, host)
        handle.forget()
        note(
            f"Forgot the pace learned for {safe_term(handle.name)}{when(crawl)}; "
            "its robots.txt will be fetched again"
        )


def _lesson(shared: HostBudget) -> str:
    """Return where a lesson came from: 2.0/s, refused at 4.1/s, by crawl a, 3 h ago."""
    from mannerly.hosts.base import said_of

    assert shared.lesson is not None
    rate, floor = shared.lesson.delay_s, shared.lesson.floor_s
    known = [f"{1.0 / rate:.1f}/s"] if rate else []
    known += [f"refused at {1.0 / floor:.1f}/s"] if floor else []
    said = ", ".join(known) or "no limit"
    return f"{said}, from {safe_term(said_of(shared.learned_by))} {span(shared.learned_s_ago)} ago"


def _shared_fields(shared: HostBudget | None) -> dict[str, object] | None:
    if shared is None:
        return None
    lesson = shared.lesson
    return {
        "adaptive_delay_s": lesson.delay_s if lesson else 0.0,
        "adaptive_delay_floor_s": lesson.floor_s if lesson else 0.0,
        "learned_by": shared.learned_by,
        "learned_s_ago": round(shared.learned_s_ago, 1),
        "gap_s": shared.gap_s,
        "next_in_s": round(shared.next_in_s, 3),
    }


def _orders(crawl: StoredCrawl) -> Mapping[str, HostOrders]:
    from mannerly.crawler.control import in_force

    return in_force(crawl.store.orders()).hosts


def _own_options(crawl: StoredCrawl, host: str) -> dict[str, object]:
    """Return the options that the crawl began with for this host alone."""
    from mannerly.crawler.inspection.view import settings_of
    from mannerly.crawler.options.table import OPTIONS
    from mannerly.crawler.settings import in_force

    tables = in_force(settings_of(crawl.store.manifest), OPTIONS["host"])
    assert isinstance(tables, dict)
    return dict(tables.get(host, {}))


def _shown(crawl: StoredCrawl, handle: HostHandle, text: str) -> HostDetails:
    details = handle.show()
    if details is None:
        fail(
            f"{safe_term(without_userinfo(text))} is not a host of the crawl in {crawl.location}"
            f"{_meant(crawl, handle.name)}"
        )
    return details


def _named(crawl: StoredCrawl, handle: HostHandle) -> str:
    """Return a host's name; a host may be steered before its first URL is found."""
    name = safe_term(handle.name)
    if handle.show() is not None:
        return name
    return f"{name} (not a host of the crawl yet{_meant(crawl, handle.name)})"


def _meant(crawl: StoredCrawl, name: str) -> str:
    """Return "; did you mean …?" if a host differs by its port only, or looks misspelled."""
    from mannerly.crawler.options.values import nearest

    names = [view.host for view in crawl.hosts("fetched", _COMPARED)]
    bare = _without_port(name)
    ports = [each for each in names if _without_port(each) == bare]
    return safe_term(nearest(ports[0] if ports else name, names, alike=_MISSPELLED))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _fields(view: HostView, orders: Mapping[str, HostOrders]) -> dict[str, object]:
    from mannerly.crawler.inspection.host_words import fields_of

    own = orders.get(view.host)
    return {
        **fields_of(view),
        "is_paused": own is not None and own.is_paused,
        "set": None if own is None else {name: getattr(own, name) for name in _SET},
    }


def _described(view: HostView, orders: Mapping[str, HostOrders]) -> list[tuple[str, str]]:
    from mannerly.crawler.inspection.host_words import sentence

    record, own = view.record, orders.get(view.host)
    return [
        ("host", safe_term(view.host)),
        ("state", safe_term(sentence(view), limit=120)),
        ("pace", _pace(view)),
        ("limit", _limit(view)),
        ("pace set", (own and pace(own)) or "-"),
        ("Crawl-delay", _delay(record.crawl_delay_s)),
        ("in flight", f"at most {record.concurrency}" if record.concurrency else "not known"),
        ("fetched", f"{record.fetched:,}"),
        ("refused", f"{record.refused:,}"),
        ("failed", f"{record.failed:,}"),
        ("smallest gap", _gap(record)),
        ("seen", f"{span(view.age_s)} ago" if record.updated_at else "never"),
    ]


def _pace(view: HostView) -> str:
    """Return the delay in force, and where it comes from."""
    from mannerly.crawler.host_view import LimitedBy

    limit = {
        LimitedBy.LEARNED: ", near the limit"
        if view.limit
        else ", lowered by refusals or failures",
        LimitedBy.ROBOTS: ", as robots.txt asks",
        LimitedBy.MAX_RATE: ", your maximum",
        LimitedBy.ANNOUNCED: ", as its headers announce",
    }
    if not view.delay_s:
        return "-"
    return (
        f"{view.pace:.2f}/s, {view.delay_s:.2f} s between requests{limit.get(view.limited_by, '')}"
    )


def _limit(view: HostView) -> str:
    from mannerly.crawler.inspection.host_words import limit_words

    said = []
    if view.limit:
        confirmed = "confirmed by refusals" if view.record.is_proven else "not sure"
        said.append(f"{view.limit:.2f}/s, {confirmed}")
    return "; ".join([*said, *limit_words(view)]) or "none found yet"


def _gap(record: HostRecord) -> str:
    """Return the smallest time between two requests, with what was required then."""
    if not record.smallest_gap_s and not record.early:
        return "-"
    said = f"{record.smallest_gap_s:.3f} s, required {record.required_gap_s:.3f} s"
    return f"{said}, {record.early:,} too early: please report this" if record.early else said


def _delay(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds else "-"
