"""Write the end of a crawl: a headline, a small table, and alone on the last line what to do next.

Politeness comes first, then what came, then what did not. The number of pages is that of the
records in an export and of `mannerly status`: pages with a response and pages that failed. The line
about politeness is from the crawl's own audit, which compares every request with all that was in
force when it left (`host.audit`): the operator's delay, robots.txt, the learned pace, Retry-After,
the breaker.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.inspection.reasons import failure_words, skip_words
from mannerly.crawler.model import CRASHED, GIVEN_UP, NOT_READ, UNFINISHED
from mannerly.crawler.stats import NOT_MODIFIED
from mannerly.crawler.web.words import many, size, span
from mannerly.politeness.keys import without_port

from .block import percent, short_time
from .display import Display, Tone, short_host, wrapped
from .endings import is_incomplete, resume_command
from .retry import retry_command
from .seeds import astray_lines, failed_seed_lines
from .terminal import plain, safe_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.crawl import CrawlResult
    from mannerly.crawler.stats import HostTally, Stats

_FAILURES = 3  # kinds that the headline names
_REASONS = 6  # of each kind; the rest is one number
_EARLY_HOSTS = 3  # named where a request was sent too early
_PATTERNS = 3
_MANY_HELD_BACK = 500  # URLs that come last: fewer are not worth a line
_SLOW_S = 1.0  # hosts with a shorter mean response time are not named


class Ended(NamedTuple):
    """The end of a run, and what the operator had asked for."""

    result: CrawlResult
    location: str | None = None  # of the crawl; None: it cannot be gone on with
    hosts: int = 1  # of the slowest and the most refusing hosts that are named
    is_resumed: bool = False  # earlier runs have fetched pages, too
    limit: str = ""  # --max-urls, --max-requests or --duration with its value, if that was reached
    is_long: bool = False  # print the table in any case
    next_command: str = ""  # what most people do next with a finished crawl
    data_dir: str = ""  # of this worker, if the crawl is in a server
    render: tuple[str, ...] = ()  # the pages that were to be rendered

    @property
    def pages(self) -> str:
        """Return the number of pages in words, and how many of them failed, and why."""
        stats = self.result.stats
        pages = many(stats.pages, "more page" if self.is_resumed else "page")
        failures = +stats.failures
        if not failures:
            return pages
        return ", ".join([f"{stats.pages - failures.total():,} of {pages}", *_failures(failures)])

    @property
    def speed(self) -> str:
        """Return pages, time and pages a second."""
        result = self.result
        per_second = result.stats.pages / result.seconds if result.seconds > 0 else 0.0
        took = f"in {span(result.seconds)}, {per_second:,.1f} pages/s"
        return f"{self.pages}, {took}" if +result.stats.failures else f"{self.pages} {took}"

    @property
    def resume(self) -> list[str]:
        """Return the command that goes on, alone on its line."""
        return (
            [] if self.location is None else [f"  {resume_command(self.location, self.data_dir)}"]
        )


def _failures(failures: Mapping[str, int]) -> list[str]:
    """Return how many pages failed: those with the most frequent statuses, then the others."""
    kinds: Counter[str] = Counter()
    for code, count in failures.items():
        unanswered = "not read" if code in NOT_READ else "without an answer"
        kinds[failure_words(code) if code.isdigit() else unanswered] += count
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count:,} {kind}" for kind, count in ranked[:_FAILURES]]
    others = sum(count for _, count in ranked[_FAILURES:])
    return [*named, f"{others:,} failed otherwise"] if others else named


class _Text(NamedTuple):
    state: str  # a glyph and a word
    tone: Tone
    said: str  # the rest of the headline
    lines: list[str]


def summary(ended: Ended, display: Display | None = None) -> str:
    """Return the end of a run in words, in the width of a terminal."""
    display = display or Display()
    text = _text(ended, display)
    head = display.painted(display.spelled(text.state), text.tone) + display.spelled(text.said)
    return "\n".join([head, *(plain(display.spelled(line)) for line in text.lines)])


def _text(ended: Ended, display: Display) -> _Text:
    result = ended.result
    ending = result.ending.value
    if ending in ("stopped", "terminated"):
        return _stopped(ended, display)
    if ending == "crashed":
        return _crashed(ended, display)
    if ending == "no_seed":
        lines = failed_seed_lines(result.seed_problems, display)
        return _Text("× Failed", Tone.REFUSED, ": no seed could be fetched", lines)
    if ending == "error_rate":
        return _failing(ended, display)
    if ending in ("max_urls", "max_requests", "duration"):
        return _limited(ended, display)
    if result.astray:
        said, lines = astray_lines(result.astray, ended.pages)
        return _Text("◇ Incomplete", Tone.PLAIN, said, lines)
    if is_incomplete(result):
        return _incomplete(ended, display)
    volume = f", {size(result.stats.bytes)}" if result.stats.bytes else ""
    lines = ["", *_table(ended, display)]
    if +result.stats.failures and ended.location is not None:
        lines += ["", f"  {retry_command(ended.location)}   # try the failed ones again"]
    elif ended.next_command:
        lines += ["", f"  {ended.next_command}"]
    return _Text("✓ Finished", Tone.DONE, f": {ended.speed}{volume}", lines)


# ---------------------------------------------------------------------- the endings


def _stopped(ended: Ended, display: Display) -> _Text:
    result = ended.result
    by = "by you" if result.ending.value == "stopped" else "by a signal or an order"
    left = f", {many(result.pending, 'URL')} left" if result.pending else ""
    lines = ["", *_table(ended, display), ""] if ended.is_long else _violated(result.stats, display)
    lines += ["  Nothing is lost. Go on with:", *ended.resume] if ended.resume else []
    said = f" {by} after {span(result.seconds)}: {ended.pages}{left}"
    return _Text("■ Stopped", Tone.WAITING, said, lines)


def _crashed(ended: Ended, display: Display) -> _Text:
    trouble = safe_term(ended.result.stats.now.trouble or "a worker process died too often")
    said = f": {trouble}, after {ended.pages}"
    lines = ["", *_table(ended, display), "", *ended.resume]
    return _Text("× Failed", Tone.REFUSED, said, lines)


def _failing(ended: Ended, display: Display) -> _Text:
    said = f" at {ended.limit}: too many requests fail, after {ended.pages}"
    lines = ["", *_table(ended, display), "", *ended.resume]
    return _Text("× Stopped", Tone.REFUSED, said, lines)


def _limited(ended: Ended, display: Display) -> _Text:
    result = ended.result
    left = [many(result.pending, "URL") + " in the queue"] if result.pending else []
    lines = _table(ended, display)
    lines += wrapped("Left", left, display.columns) if left else []
    lines += _row("Held back", _held_back(result.stats), display)
    lines += _given_up(ended, display)
    return _Text(
        "✓ Stopped", Tone.DONE, f" at {ended.limit}: {ended.speed}", ["", *lines, *_on(ended)]
    )


def _on(ended: Ended) -> list[str]:
    return ["", *ended.resume] if ended.result.pending and ended.resume else []


def _incomplete(ended: Ended, display: Display) -> _Text:
    result = ended.result
    left = []
    if result.given_up:
        hosts = result.given_up_hosts
        more = "or more hosts" if len(hosts) == 10 else "host" if len(hosts) == 1 else "hosts"
        given_up = many(result.given_up, "URL")
        left.append(
            f"{given_up} of {len(hosts)} {more} {'is' if result.given_up == 1 else 'are'} left"
        )
    if result.pending:
        left.append(f"{many(result.pending, 'URL')} in the queue")
    if unread := result.unread or result.stats.crashed:
        left.append(f"the links of {many(unread, 'page')} are missing")
    said = f": {ended.pages} in {span(result.seconds)}; {', '.join(left)}"
    lines = ["", *_table(ended, display), *_given_up(ended, display)]
    if ended.location is not None:
        again = retry_command(ended.location) + (" --given-up" if not unread else "")
        lines += ["", ended.resume[0] if result.pending else f"  {again}"]
    return _Text("◇ Incomplete", Tone.PLAIN, said, lines)


def _given_up(ended: Ended, display: Display) -> list[str]:
    """Return one line for each host that was given up: how many URLs, and why."""
    hosts = ended.result.given_up_hosts
    if not hosts:
        return []
    columns = min(40, max(len(each.host) for each in hosts))
    return [
        "",
        *(
            display.line(
                [
                    f"  × {short_host(each.host, columns):<{columns}} {each.urls:>7,}   ",
                    safe_term(each.reason),
                ]
            )
            for each in hosts
        ),
    ]


# ---------------------------------------------------------------------- the table


def _table(ended: Ended, display: Display) -> list[str]:
    stats = ended.result.stats
    skipped = {reason: count for reason, count in stats.skipped.items() if reason not in GIVEN_UP}
    rows = [
        ("Politeness", _politeness(stats)),
        ("Answers", _answers(stats)),
        ("Failed", _reasons(_failed(stats), failure_words)),
        ("Requisites", _requisites(stats)),
        ("Not read", _not_read(ended.result)),
        ("Refused", _refused(stats, ended.hosts)),
        ("Retries", [f"{stats.requests.retries:,}"] if stats.requests.retries else []),
        ("Skipped", _reasons(skipped, skip_words)),
        ("Slowest", _slowest(stats, ended.hosts)),
        ("Items", _items(stats)),
        ("Browser", _browser(ended)),
        ("Mended", [safe_term("; ".join(stats.mended))] if stats.mended else []),
        ("Kept in", _kept_in(ended.location)),
    ]
    return [line for label, parts in rows for line in _row(label, parts, display)]


def _row(label: str, parts: list[str], display: Display) -> list[str]:
    if not parts:
        return []
    gap = " " if label in ("Politeness", "Requisites") else "   "
    return wrapped(label, parts, display.columns, gap=gap)


def _requisites(stats: Stats) -> list[str]:
    if not stats.requisites:
        return []
    failed = f", {stats.requisites_failed:,} of them failed" if stats.requisites_failed else ""
    return f"{many(stats.requisites, 'file')} that pages need to be shown{failed}".split(" ")


def _browser(ended: Ended) -> list[str]:
    """Return how many pages a browser has shown, and which hosts seem to need one."""
    stats, said = ended.result.stats, []
    if stats.rendered:
        said.append(f"{many(stats.rendered, 'page')} rendered")
    elif ended.render and stats.pages:
        named = " ".join(safe_term(each) for each in ended.render)
        said.append(f"no page was rendered: none matches --render {named}")
    for error, count in sorted(stats.render_errors.items()):
        said.append(f"{count:,} with {safe_term(error)}")
    for host, count in stats.shells.most_common(_REASONS):
        seems = f"{many(count, 'page')} of {safe_term(host)} seem{'s' * (count == 1)} to need"
        name = safe_term(without_port(host))
        said.append(f"{seems} JavaScript: --render {name}")
    return said


def _items(stats: Stats) -> list[str]:
    said = [f"{stats.extracted.items:,} extracted"] if stats.extracted.items else []
    if stats.extracted.errors:
        pages = many(stats.extracted.errors, "page")
        said.append(f"extract failed on {pages}: {safe_term(stats.extracted.first_error or '')}")
    for label, count in sorted(stats.extracted.lacking.items()):
        said.append(f"no handler for label {safe_term(label)}: {many(count, 'page')}")
    return said


def _politeness(stats: Stats) -> list[str]:
    """Return words, to be wrapped one by one."""
    if stats.requests.too_early:
        early = many(stats.requests.too_early, "request")
        hosts = [safe_term(host, limit=80) for host, tally in stats.tallies.items() if tally.early]
        named = f" ({', '.join(hosts[:_EARLY_HOSTS])})" if hosts else ""
        said = f"VIOLATED: {early} sent before the host's gap was over{named}: please report this"
        return said.split(" ")
    requests, kept = stats.requests.audited, stats.requests.retry_afters
    if not requests:
        return []
    said = f"all {requests:,} requests kept each host's gap"
    if requests == 1:
        said = "the one request kept its host's gap"
    if kept:
        said += f", and {kept:,} of {kept:,} Retry-After were kept"
    return said.split(" ")


def _violated(stats: Stats, display: Display) -> list[str]:
    return _row("Politeness", _politeness(stats), display) if stats.requests.too_early else []


def _answers(stats: Stats) -> list[str]:
    classes: Counter[int] = Counter()
    for status, count in stats.statuses.items():
        if status != NOT_MODIFIED:
            classes[status // 100] += count
    same = stats.statuses[NOT_MODIFIED]
    said = [f"{count:,} × {first}xx" for first, count in sorted(classes.items())]
    return said + ([f"{same:,} × 304 (the same)"] if same else [])


def _refused(stats: Stats, hosts: int) -> list[str]:
    if not stats.requests.throttles:
        return []
    share = percent(
        stats.requests.throttles, stats.fetched + stats.robots + stats.requests.throttles
    )
    ranked = sorted(stats.tallies.items(), key=lambda item: (-item[1].refused, item[0]))
    named = [
        f"{safe_term(host, limit=80)} ({tally.refused:,})"
        for host, tally in ranked[:hosts]
        if tally.refused
    ]
    most = f", most by {', '.join(named)}" if named else ""
    return [f"{stats.requests.throttles:,} ({share}){most}"]


def _reasons(counts: Mapping[str, int], words: Callable[[str, int], str]) -> list[str]:
    happened = [item for item in counts.items() if item[1]]
    ranked = sorted(happened, key=lambda item: (-item[1], item[0]))
    said = [f"{count:,} {safe_term(words(reason, count))}" for reason, count in ranked[:_REASONS]]
    if len(ranked) > _REASONS:
        said.append(f"{sum(count for _, count in ranked[_REASONS:]):,} for other reasons")
    return said


def _failed(stats: Stats) -> Mapping[str, int]:
    """Return the failures, but for pages that crashed their reader: they have a line."""
    return {code: count for code, count in stats.failures.items() if code != CRASHED}


def _not_read(result: CrawlResult) -> list[str]:
    """Return how many pages crashed their reader now, and how many were not read before."""
    said, crashed = [], result.stats.crashed
    if crashed:
        said = [f"{many(crashed, 'page')} that crashed the parser twice:"]
    before = result.unread - sum(result.stats.failures[code] for code in UNFINISHED)
    if before > 0:
        said.append(f"{many(before, 'page')} in earlier runs:")
    return [*said, "their links are missing"] if said else []


def _slowest(stats: Stats, hosts: int) -> list[str]:
    def mean_s(tally: HostTally) -> float:
        return tally.latency_s / tally.fetched if tally.fetched else 0.0

    ranked = sorted(stats.tallies.items(), key=lambda item: (-mean_s(item[1]), item[0]))
    return [
        f"{safe_term(host, limit=80)}, {short_time(mean_s(tally))} a response"
        for host, tally in ranked[:hosts]
        if mean_s(tally) >= _SLOW_S
    ]


def _kept_in(location: str | None) -> list[str]:
    """Return where the crawl is, and its size if it is a directory."""
    if location is None:
        return []
    try:
        taken = sum(each.lstat().st_size for each in Path(location).iterdir())
    except OSError:
        return [safe_term(location)]
    return [f"{safe_term(location)} ({size(taken)})"]


def _held_back(stats: Stats) -> list[str]:
    """Return how many of the URLs that are left come last, and their patterns, if many do."""
    ranked = sorted((+stats.held_back).items(), key=lambda item: (-item[1], item[0]))
    if sum(urls for _, urls in ranked) < _MANY_HELD_BACK:
        return []
    named = [f"{safe_term(pattern, limit=80)} ({urls:,})" for pattern, urls in ranked[:_PATTERNS]]
    if len(ranked) > _PATTERNS:
        named.append("…")
    count = sum(urls for _, urls in ranked)
    return [f"{count:,} of these are fetched last: such pages led mostly to more of them:", *named]
