"""`mannerly status|explain`: the progress of a crawl, or the state of one URL, from the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import click

from mannerly.crawler.options.option import declaration
from mannerly.crawler.web.words import many, span

from .command_line import Argument
from .retry import retry_command
from .steer import unpause_command
from .stored import Location, opened
from .terminal import STATE, failing_clearly, note, print_json, safe_term, show, table

if TYPE_CHECKING:
    from mannerly.crawler.inspection.status import Status

_COLUMNS = (
    *("queued", "waiting", "fetched", "failed", "requisites", "lists", "skipped", "given_up"),
    *("outgoing", "hosts"),
)
_SHARDS = 16  # that are shown one by one
_LEGEND = {
    "waiting": "queued URLs beyond --frontier-limit",
    "requisites": "what pages need to be shown",
    "lists": "sitemaps and public indexes",
    "outgoing": "links on their way to another shard",
}


def status(
    location: Location,
    *,
    json: Annotated[bool, declaration("Print JSON.")] = False,
) -> None:
    """Show the state, counts and queues of a crawl."""
    if "://" in location and "#" not in location:
        _list_crawls(location, as_json=json)
        return
    with failing_clearly(), opened(location) as crawl:
        facts = crawl.status()
    if json:
        print_json(facts._asdict())
    else:
        show(described(facts, now=time.time()))


def _list_crawls(url: str, *, as_json: bool) -> None:
    """Print the crawls in a server, one a line; exit 4 if one of them cannot be read."""
    from mannerly.crawler.store import crawls_in, in_server, name_of
    from mannerly.crawler.store.base import StoreError, StoreMissing
    from mannerly.crawler.store.fleet import StoreAway
    from mannerly.crawler.stored import open_crawl

    found, damaged = [], {}
    with failing_clearly():
        for name in crawls_in(url):
            try:
                with open_crawl(in_server(url, name)) as crawl:
                    found.append(crawl.status())
            except StoreAway:
                raise
            except StoreMissing:
                continue  # it was wiped since the names were read
            except StoreError as error:  # one damaged crawl does not hide the others
                damaged[name] = str(error)
    if as_json:
        print_json(
            [
                *(
                    {"crawl": each.crawl, "state": each.state, "total": each.total}
                    for each in found
                ),
                *({"crawl": in_server(url, name), "error": damaged[name]} for name in damaged),
            ]
        )
    else:
        rows = [
            [
                safe_term(name_of(each.crawl)),
                each.state,
                *(f"{each.total[column]:,}" for column in ("queued", "fetched", "failed")),
                f"{len(each.workers)}",
            ]
            for each in found
        ]
        show(table(["crawl", "state", "queued", "fetched", "failed", "workers"], rows, left=2))
        if not found and not damaged:
            note(f"There is no crawl in {url} yet: mannerly crawl SEED --redis-url {url}")
    for name, reason in damaged.items():
        note(f"{safe_term(name)} cannot be read: {safe_term(reason)}")
    if damaged:
        raise click.exceptions.Exit(STATE)


def described(facts: Status, *, now: float) -> str:
    """Return a status as text."""
    pid = f" (pid {facts.pid})" if facts.pid else ""
    if len(facts.workers) > 1:
        pid = f" ({len(facts.workers)} workers)"
    seed = safe_term(facts.seeds[0]) if facts.seeds else "no seed"
    more = f" and {facts.seed_count - 1:,} more" if facts.seed_count > 1 else ""
    named = [(str(number), each) for number, each in enumerate(facts.shards)]
    if len(named) == 1 or len(named) > _SHARDS:
        named = []  # the sum says the same, or tells more
    named.append(("all", facts.total))
    columns = [name for name in _COLUMNS if name not in _LEGEND or facts.total[name]]
    rows = [[name, *(f"{counts[column]:,}" for column in columns)] for name, counts in named]
    legend = "; ".join(f"{name}: {_LEGEND[name]}" for name in columns if name in _LEGEND)
    active = span(now - facts.last_activity_at)
    hint = f" (to continue: {unpause_command(facts.crawl)})" if facts.state == "paused" else ""
    lines = [
        f"{facts.crawl}: {facts.state}{pid}{hint}, last activity {active} ago",
        f"started from {seed}{more}, {span(now - facts.created_at)} ago",
        "",
        table(["shard", *(name.replace("_", " ") for name in columns)], rows),
        *([f"({legend})"] if legend else []),
    ]
    if facts.total["failed"] or facts.total["given_up"]:
        lines += ["", f"To try failed and given-up URLs again: {retry_command(facts.crawl)}"]
    if facts.workers:
        lines += ["", "Workers:", *map(_worker, facts.workers)]
    if facts.longest_queues:
        lines += ["", "Longest queues:"]
        lines += [
            f"  {count:>9,}  {safe_term(host, limit=80)}"
            for host, count in facts.longest_queues.items()
        ]
    return "\n".join(lines)


def _worker(of: dict[str, Any]) -> str:
    waits = f", waiting: {safe_term(of['waits_for'])}" if of["waits_for"] else ""
    return (
        f"  {safe_term(of['id'], limit=40)} on {safe_term(of['machine'], limit=40)}, "
        f"pid {of['pid']}: {many(len(of['shards']), 'shard')}, "
        f"{many(of['fetched'], 'page')} in this run, seen {span(of['seen_s'])} ago{waits}"
    )


def explain(
    location: Location,
    url: Annotated[str, Argument("URL", "The URL to explain.")],
    *,
    json: Annotated[bool, declaration("Print JSON.")] = False,
) -> None:
    """Show the state of one URL in a crawl, and the reason."""
    from mannerly.crawler.inspection.reasons import skip_words

    with failing_clearly(), opened(location) as crawl:
        facts = crawl.explain(url)
    if json:
        print_json(facts._asdict())
        return
    where, _, reason = facts.scope.partition(": ")
    scope = f"{where}: {skip_words(reason)}" if reason else where
    show(safe_term(facts.url))
    for name, text in (
        ("state", f"{facts.state}: {facts.because}"),
        ("found by", " ← ".join(facts.found_by)),
        ("scope", scope),
        ("robots.txt", facts.robots),
    ):
        if text:
            show(f"  {name:<12}{safe_term(text, limit=2000)}")
