"""The totals of crawls in the text format of Prometheus: for `/metrics` and `--metrics-file`.

Counters are those of this process's life: a crawl that has ended stays counted. By default there is
no label for a host, whose number has no bound; on request the busiest hosts have some. It needs the
extra `metrics` (prometheus-client).
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mannerly.crawler.host_view import NOT_FETCHING
from mannerly.crawler.stats import FETCHING_BY
from mannerly.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mannerly.crawler.stats import Latencies, Stats
    from mannerly.live.meter import LimitUse

    from .background import TaskHealth

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_HOSTS = 100  # that have labels of their own, at most
RESPONSE_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
COMMIT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
WAIT_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)

_COUNTERS = (
    ("requests", "Requests that were sent, of every kind.", "requests.audited"),
    ("throttles", "Answers that asked for fewer requests: 429 and others.", "requests.throttles"),
    ("retry_afters", "Refusals that said for how long to wait.", "requests.retry_afters"),
    ("retries", "Requests that will be repeated.", "requests.retries"),
    ("cancellations", "Requests that were granted and not sent.", "requests.cancellations"),
    (
        "concurrency_overrides",
        "Changes of the maximum of requests in flight to a host.",
        "requests.concurrency_changes",
    ),
    (
        "politeness_violations",
        "Requests that were sent too early; must stay 0.",
        "requests.too_early",
    ),
    ("requisites", "Answers for what pages need to be shown.", "requisites"),
    ("requisites_failed", "Of these, errors and 400 or above.", "requisites_failed"),
    ("received_bytes", "Bytes of bodies, decompressed.", "bytes"),
    ("found_urls", "URLs that were new.", "found"),
    ("hosts_given_up", "Hosts that were given up.", "hosts_given_up"),
    (
        "shards_lost",
        "Shards whose latest pages were refused: another run has them, or the server was away.",
        "shards_lost",
    ),
)
_GAUGES = (
    ("queue_urls", "URLs that wait to be fetched.", "now.queued"),
    ("in_flight_requests", "Requests that wait for their answer.", "now.in_flight"),
    ("known_hosts", "Hosts that the crawls have met.", "hosts_known"),
)
# Of a crawl in a server, as one process sees it (`FleetFigures`).
_STORE_COUNTERS = (
    ("shard_takeovers", "Shards that were claimed after their owner was lost.", "takeovers"),
    ("store_writes", "Writes to shards in the server.", "commits"),
    (
        "store_writes_refused",
        "Writes that came too late: the shard had another owner.",
        "refused",
    ),
    ("store_wait_seconds", "Time for which answers of the server were waited for.", "waited_s"),
)
_STORE_GAUGES = (
    ("shard_leases", "Shards that this process owns.", "leases"),
    ("store_memory_bytes", "Memory that the server uses.", "memory_bytes"),
    (
        "store_memory_limit_bytes",
        "Memory that the server may use; 0 for no limit.",
        "memory_limit_bytes",
    ),
)
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class Reading(NamedTuple):
    """Everything that metrics are made of, at one moment."""

    stats: Stats
    limits: Mapping[str, LimitUse]
    at: float  # wall time of the totals
    jobs: Mapping[str, int] | None = None  # number of jobs by state; None: this is no service
    job_ends: Mapping[str, int] = MappingProxyType({})  # runs of jobs that ended, by state
    background: Mapping[str, TaskHealth] = MappingProxyType({})


def metrics_text(reading: Reading, *, hosts: int = 0) -> bytes:
    """Return all metrics as text; with labels for so many of the busiest hosts."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Crawls(reading, min(hosts, MOST_HOSTS)))
    return generate_latest(registry)


class _Crawls(Collector):
    """Makes metrics of one reading."""

    def __init__(self, reading: Reading, hosts: int) -> None:
        self._reading = reading
        self._hosts = hosts

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        stats, limits, at, *_ = self._reading
        build = GaugeMetricFamily("mannerly_build_info", "Version.", labels=["version"])
        build.add_metric([VERSION], 1)
        yield build
        yield GaugeMetricFamily(
            "mannerly_updated_timestamp_seconds", "Time of these totals, since 1970.", value=at
        )
        for name, text, field in _COUNTERS:
            yield CounterMetricFamily(f"mannerly_{name}", text, value=attrgetter(field)(stats))
        yield from _by_status(stats)
        for name, text, field in _GAUGES:
            yield GaugeMetricFamily(f"mannerly_{name}", text, value=attrgetter(field)(stats))
        yield from _host_counts(stats)
        yield from _store(stats)
        yield from _limits(limits)
        yield from _jobs(self._reading)
        yield from _background(self._reading.background)
        yield from _histograms(stats)
        if self._hosts:
            yield from _single_hosts(stats, self._hosts)


def _jobs(reading: Reading) -> Iterator[Metric]:
    if reading.jobs is None:
        return
    states = GaugeMetricFamily("mannerly_jobs", "Jobs by state.", labels=["state"])
    for state, count in reading.jobs.items():
        states.add_metric([state], count)
    yield states
    ends = CounterMetricFamily(
        "mannerly_job_ends",
        "Runs of jobs that ended, by the state of the job then; cancelled: by its 429 limit.",
        labels=["state"],
    )
    for state, count in reading.job_ends.items():
        ends.add_metric([state], count)
    yield ends


def _background(tasks: Mapping[str, TaskHealth]) -> Iterator[Metric]:
    failures = CounterMetricFamily(
        "mannerly_background_failures",
        "Failed steps of the background tasks of this server.",
        labels=["task"],
    )
    working = GaugeMetricFamily(
        "mannerly_background_working",
        "Whether the latest step of a background task succeeded: 1 or 0.",
        labels=["task"],
    )
    for name, task in tasks.items():
        failures.add_metric([name], task.failures)
        working.add_metric([name], int(task.error is None))
    yield failures
    yield working


def _by_status(stats: Stats) -> Iterator[Metric]:
    pages = CounterMetricFamily("mannerly_pages", "Pages by class of status.", labels=["status"])
    answers = CounterMetricFamily(
        "mannerly_answers",
        "Requests that ended, of every kind, by class of status; error: there was no answer.",
        labels=["status"],
    )
    for number, status in enumerate(_CLASSES, 1):
        of_pages, of_others = (
            sum(count for code, count in counts.items() if code // 100 == number)
            for counts in (stats.statuses, stats.other_statuses)
        )
        pages.add_metric([status], of_pages)
        answers.add_metric([status], of_pages + of_others)
    failed = sum(stats.failed.values())
    pages.add_metric(["error"], failed)
    answers.add_metric(["error"], failed + stats.other_statuses[0])
    yield pages
    yield answers


def _store(stats: Stats) -> Iterator[Metric]:
    if stats.fleet is None:
        return
    for name, text, field in _STORE_COUNTERS:
        yield CounterMetricFamily(f"mannerly_{name}", text, value=getattr(stats.fleet, field))
    for name, text, field in _STORE_GAUGES:
        yield GaugeMetricFamily(f"mannerly_{name}", text, value=getattr(stats.fleet, field))


def _host_counts(stats: Stats) -> Iterator[Metric]:
    hosts = GaugeMetricFamily(
        "mannerly_hosts", "Hosts with queued URLs, by what they do or wait for.", labels=["state"]
    )
    for name in FETCHING_BY:
        hosts.add_metric([name], getattr(stats.now.waits, name))
    for state in NOT_FETCHING:
        hosts.add_metric([state.value], stats.now.waits.states[state])
    yield hosts
    yield GaugeMetricFamily(
        "mannerly_over_rate_hosts",
        "Hosts that got a request before the gap in force was over; must stay 0.",
        value=sum(tally.early > 0 for tally in stats.tallies.values()),
    )


def _limits(uses: Mapping[str, LimitUse]) -> Iterator[Metric]:
    limits = GaugeMetricFamily("mannerly_limit", "Limits that are set.", labels=["name"])
    used = GaugeMetricFamily("mannerly_limit_used", "How much of a limit is used.", labels=["name"])
    for name, use in uses.items():
        limits.add_metric([name], use.limit)
        used.add_metric([name], use.used)
    yield limits
    yield used


def _histograms(stats: Stats) -> Iterator[Metric]:
    response = HistogramMetricFamily(
        "mannerly_response_seconds", "Time to the first byte of an answer, in steps of an eighth."
    )
    _add(response, [], stats.latencies, RESPONSE_S)
    yield response
    commits = HistogramMetricFamily(
        "mannerly_commit_seconds", "Duration of a commit to the store, in steps of an eighth."
    )
    _add(commits, [], stats.loop.commits, COMMIT_S)
    yield commits
    waits = HistogramMetricFamily(
        "mannerly_wait_seconds",
        "Time for which the next request to a host had to wait, by the limit that decided it.",
        labels=["reason"],
    )
    for reason, blocked in sorted(stats.requests.blocked.items()):
        _add(waits, [reason], blocked, WAIT_S)
    yield waits


def _add(
    family: HistogramMetricFamily,
    labels: list[str],
    times: Latencies,
    bounds: tuple[float, ...],
) -> None:
    """Add times to a histogram, in fewer steps than they are counted in."""
    counts = dict.fromkeys(bounds, 0)
    sum_s = 0.0
    for step, count in times.items():
        seconds = times.seconds(step)
        sum_s += seconds * count
        for bound in bounds:
            if seconds <= bound:
                counts[bound] += count
    buckets = [(str(bound), float(count)) for bound, count in counts.items()]
    family.add_metric(labels, [*buckets, ("+Inf", float(times.total()))], sum_value=sum_s)


def _single_hosts(stats: Stats, most: int) -> Iterator[Metric]:
    """Yield metrics of the hosts with the longest queues, and of those that had a violation."""
    chosen = sorted(stats.now.host_views, key=lambda host: -host.queued)[:most]
    for name, text, field in (
        ("queue_urls", "URLs of one host that wait to be fetched.", "queued"),
        ("delay_seconds", "Delay in force between two requests to one host.", "delay_s"),
        ("pages", "Pages of one host that were fetched, earlier runs included.", "fetched"),
        ("refusals", "Requests that one host has refused.", "refused"),
        ("p95_latency_seconds", "95 % of its latest answers came faster.", "p95_latency_s"),
        ("error_rate", "Share of failures among the latest answers of one host.", "error_rate"),
        ("tokens", "Requests to one host that could start at once.", "tokens"),
        ("success_streak", "Answers of one host since a refusal or failure.", "success_streak"),
        ("error_streak", "Refusals of one host since its latest success.", "error_streak"),
    ):
        family = GaugeMetricFamily(f"mannerly_host_{name}", text, labels=["host"])
        for host in chosen:
            family.add_metric([host.host], getattr(host, field))
        yield family
    early = CounterMetricFamily(
        "mannerly_host_politeness_violations",
        "Requests to one host that were sent too early; must stay 0.",
        labels=["host"],
    )
    counts = {each.host: 0 for each in chosen}
    counts |= {name: tally.early for name, tally in stats.tallies.items() if tally.early}
    for name, count in list(counts.items())[: 2 * most]:
        early.add_metric([name], count)
    yield early
