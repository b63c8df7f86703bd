"""The options of `crawl`: one table from which everything else is made.

An option is a command-line option, an environment variable (MANNERLY_ and its name) and a key of a
configuration file, with the same meaning in all three, because each is made from its line here.
`target` is the field of `CrawlSettings` that it sets, or `politeness.` and a field of the
politeness core's `Settings`; without one it is about this run only. Ranges are not repeated here:
the settings check themselves. Names of the source documents work as variables, too (`ALIASES`).

Reads nothing and imports nothing of the crawler: `--help` must stay fast.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """How an option's text is read."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    RATE = 'a number, or "unlimited"'
    TEXT = "text of visible characters"
    FLAG = "true or false"
    LIST = "a list of texts"
    FILE = "the path of a file"
    NOT_YET = "nothing"  # known, promised, and not built: refused, never ignored


class Option(NamedTuple):
    """One option. `help` is what `--help` says; for what is not built, why it is refused."""

    name: str
    kind: Kind
    help: str
    target: str | None = None
    metavar: str | None = None
    short: str | None = None
    choices: tuple[str, ...] = ()
    has_password: bool = False  # a URL whose password is never printed

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "MANNERLY_" + self.name.upper()


def _limits() -> tuple[Option, ...]:
    return (
        Option("max_urls", Kind.INTEGER, "Stop after this many pages.", "max_urls", "N"),
        Option("max_depth", Kind.INTEGER, "Links from a seed at most.", "max_depth", "N"),
        Option("max_per_host", Kind.INTEGER, "Pages of one host at most.", "max_per_host", "N"),
        Option("duration", Kind.NUMBER, "Stop after this many seconds.", "duration_s", "S"),
        Option(
            "scope", Kind.TEXT, "How far from the seeds: host, site, prefix, any.", "scope", "WORD"
        ),
        Option("include", Kind.LIST, "Only URLs that match; repeatable.", "include", "GLOB"),
        Option("exclude", Kind.LIST, "No URLs that match; repeatable.", "exclude", "GLOB"),
        Option(
            "drop_tracking",
            Kind.FLAG,
            "Take utm_… and other tracking parameters off links (default).",
            "drop_tracking",
        ),
        Option(
            "seeding_strategy",
            Kind.TEXT,
            "Further seeds: none, sitemap (default), ct, commoncrawl, all.",
            "seeding",
            "WORD",
        ),
        Option(
            "ct_url",
            Kind.TEXT,
            "Certificate-transparency index; {site} stands for the site.",
            "ct_url",
            "URL",
        ),
        Option(
            "commoncrawl_url", Kind.TEXT, "Common Crawl index, likewise.", "commoncrawl_url", "URL"
        ),
    )


def _manners() -> tuple[Option, ...]:
    return (
        Option(
            "strategy",
            Kind.TEXT,
            "Who sets the pace: learned (default), linear, aimd, gradient, fixed.",
            "politeness.strategy",
            "NAME",
        ),
        Option("delay", Kind.NUMBER, "Smallest gap between requests.", "politeness.delay_s", "S"),
        Option(
            "max_rate",
            Kind.RATE,
            "Requests/s to one host, never exceeded (default 8), or unlimited.",
            "politeness.max_rate",
            "R",
        ),
        Option(
            "per_host",
            Kind.INTEGER,
            "Requests to one host under way at once (default 8).",
            "politeness.max_concurrency",
            "N",
        ),
        Option("ignore_robots", Kind.FLAG, "Fetch what robots.txt forbids.", "ignore_robots"),
        Option(
            "robots_unreachable",
            Kind.TEXT,
            "An unreachable robots.txt: disallow (default) or allow.",
            "robots_unreachable",
            "WORD",
        ),
        Option(
            "robots_timeout", Kind.NUMBER, "Patience with a robots.txt.", "robots_timeout_s", "S"
        ),
        Option(
            "robots_limit", Kind.INTEGER, "robots.txt files fetched at once.", "robots_limit", "N"
        ),
        Option(
            "robots_patience",
            Kind.NUMBER,
            "Wait this long for an unreachable robots.txt.",
            "robots_patience_s",
            "S",
        ),
        Option("user_agent", Kind.TEXT, "What we call ourselves.", "user_agent", "TEXT"),
        Option("contact", Kind.TEXT, "Whom to write to: the From header.", "contact", "MAIL"),
        Option(
            "host_failure_limit",
            Kind.INTEGER,
            "Failures in a row after which a host is given up.",
            "host_failure_limit",
            "N",
        ),
        Option(
            "give_up_stalled",
            Kind.FLAG,
            "Give a host up when it does nothing but throttle.",
            "give_up_stalled",
        ),
    )


def _machine() -> tuple[Option, ...]:
    return (
        Option("workers", Kind.INTEGER, "Requests under way in all (512).", "workers", "N"),
        Option(
            "processes",
            Kind.INTEGER,
            "Processes (default: by cores and hosts).",
            "processes",
            "N",
        ),
        Option("timeout", Kind.NUMBER, "Patience with one answer (20).", "timeout_s", "S"),
        Option("max_bytes", Kind.INTEGER, "A body is cut here (10 MiB).", "max_bytes", "N"),
        Option("max_redirects", Kind.INTEGER, "Hops from one URL (10).", "max_redirects", "N"),
        Option(
            "allow_net",
            Kind.LIST,
            "A private network or host:port that may be contacted; repeatable.",
            "allow_net",
            "CIDR",
        ),
        Option(
            "proxy",
            Kind.TEXT,
            "Send all requests through this proxy: http://, https://, socks5:// or socks5h://, "
            "with user:password@ if needed. The network guard cannot see which addresses the "
            "proxy contacts.",
            "proxy",
            "URL",
            has_password=True,
        ),
        Option(
            "ca_file",
            Kind.FILE,
            "Trust the certificate authorities in this PEM file instead of the system's.",
            "ca_file",
            "FILE",
        ),
        Option(
            "insecure_host",
            Kind.LIST,
            "Do not verify the TLS certificate of this host (name or address); repeatable.",
            "insecure_hosts",
            "HOST",
        ),
        Option("frontier_limit", Kind.INTEGER, "URLs queued at most.", "frontier_limit", "N"),
        Option("heap_limit", Kind.INTEGER, "Hosts scheduled at most.", "heap_limit", "N"),
        Option(
            "parse_limit",
            Kind.INTEGER,
            "Processes that parse big pages beside the crawl's own (2).",
            "parse_limit",
            "N",
        ),
        Option(
            "check_limit",
            Kind.INTEGER,
            "URLs that the store is asked about at once (512).",
            "check_limit",
            "N",
        ),
        Option("governor", Kind.FLAG, "Fewer requests while we are slow.", "governor"),
        Option("durable", Kind.FLAG, "Survive a power cut, too: slower.", "durable"),
    )


def _run() -> tuple[Option, ...]:
    return (
        Option("data_dir", Kind.TEXT, "Where the crawl lives (./crawl-<host>).", metavar="DIR"),
        Option("fresh", Kind.FLAG, "Start over: removes what the data directory holds."),
        Option(
            "output",
            Kind.LIST,
            "Export when done, by suffix: .jsonl .csv .xml (sitemap); - is stdout; repeatable.",
            metavar="FILE",
            short="-o",
        ),
        Option("json", Kind.FLAG, "The result as JSON on stdout."),
        Option("quiet", Kind.FLAG, "Say nothing but errors.", short="-q"),
        Option("verbose", Kind.FLAG, "Say more.", short="-v"),
        Option(
            "log_format",
            Kind.TEXT,
            "Log lines instead of the live line: text or json.",
            metavar="WORD",
            choices=("text", "json"),
        ),
        Option("log_interval", Kind.NUMBER, "Seconds between two log lines (10).", metavar="S"),
        Option("redis_url", Kind.NOT_YET, "crawls on many machines are not built yet"),
        Option("dashboard", Kind.NOT_YET, "the dashboard is not built yet"),
    )


GROUPS = {
    "What to crawl": _limits(),
    "Manners": _manners(),
    "The machine": _machine(),
    "This run": _run(),
}
OPTIONS = {option.name: option for group in GROUPS.values() for option in group}

# The source documents' variables, and the options that they are.
ALIASES = {
    "GLOBAL_FRONTIER_SIZE_LIMIT": "frontier_limit",
    "READY_HEAP_SIZE_LIMIT": "heap_limit",
    "ROBOTS_FETCH_SEMAPHORE_LIMIT": "robots_limit",
    "MAX_INFLIGHT_PER_HOST": "per_host",
    "GOVERNOR_ENABLED": "governor",
    "BBB_JOB_FAILURE_THRESHOLD": "host_failure_limit",
    "METRIC_EXPORT_INTERVAL_SECS": "log_interval",
    "PARSE_SEMAPHORE_LIMIT": "parse_limit",
    "FP_CHECK_SEMAPHORE_LIMIT": "check_limit",
}


def run_defaults() -> dict[str, object]:
    """What the options that are no crawl settings are without being given."""
    return {
        "data_dir": None,
        "fresh": False,
        "output": [],
        "json": False,
        "quiet": False,
        "verbose": False,
        "log_format": None,
        "log_interval": 10.0,
    }


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
