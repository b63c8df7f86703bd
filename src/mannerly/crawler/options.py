"""The options of a crawl: one table from which everything else is made.

An option is a keyword of the library, a command-line option, an environment variable (MANNERLY_ and
its name) and a key of a configuration file, with the same meaning everywhere, because each is made
from its line here. `target` is the field of `CrawlSettings` that it sets, or `politeness.` and a
field of the politeness core's `Settings`; without one it is for one run of the command only. Ranges
are not repeated here: the settings check themselves.

This module imports nothing of the crawler: `mannerly --help` must stay fast.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence  # noqa: TC003 - read by typing.get_type_hints
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

from mannerly.crawler.web.words import without_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ValueKind(Enum):
    """How an option's text is read."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    RATE = 'a number, or "unlimited"'
    TEXT = "text of visible characters"
    FLAG = "true or false"
    LIST = "a list of texts"
    FILE = "the path of a file"


class Option(NamedTuple):
    """One option. `help` is what `--help` says."""

    name: str
    kind: ValueKind
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
        Option("max_urls", ValueKind.INTEGER, "Stop after this many pages.", "max_urls", "N"),
        Option("max_depth", ValueKind.INTEGER, "Links from a seed at most.", "max_depth", "N"),
        Option(
            "max_per_host", ValueKind.INTEGER, "Pages of one host at most.", "max_per_host", "N"
        ),
        Option("duration", ValueKind.NUMBER, "Stop after this many seconds.", "duration_s", "S"),
        Option(
            "scope",
            ValueKind.TEXT,
            "How far from the seeds: host, site, prefix, any.",
            "scope",
            "WORD",
        ),
        Option("include", ValueKind.LIST, "Only URLs that match; repeatable.", "include", "GLOB"),
        Option("exclude", ValueKind.LIST, "No URLs that match; repeatable.", "exclude", "GLOB"),
        Option(
            "drop_tracking",
            ValueKind.FLAG,
            "Take utm_… and other tracking parameters off links (default).",
            "drop_tracking",
        ),
        Option(
            "seeding_strategy",
            ValueKind.TEXT,
            "Further seeds: none, sitemap (default), ct, commoncrawl, all.",
            "seeding",
            "WORD",
        ),
        Option(
            "ct_url",
            ValueKind.TEXT,
            "Certificate-transparency index; {site} stands for the site.",
            "ct_url",
            "URL",
        ),
        Option(
            "commoncrawl_url",
            ValueKind.TEXT,
            "Common Crawl index, likewise.",
            "commoncrawl_url",
            "URL",
        ),
    )


def _manners() -> tuple[Option, ...]:
    return (
        Option(
            "strategy",
            ValueKind.TEXT,
            "Who sets the pace: learned (default), linear, aimd, gradient, fixed.",
            "politeness.strategy",
            "NAME",
        ),
        Option(
            "delay", ValueKind.NUMBER, "Smallest gap between requests.", "politeness.delay_s", "S"
        ),
        Option(
            "max_rate",
            ValueKind.RATE,
            "Requests/s to one host, never exceeded (default 8), or unlimited.",
            "politeness.max_rate",
            "R",
        ),
        Option(
            "per_host",
            ValueKind.INTEGER,
            "Requests to one host under way at once (default 8).",
            "politeness.max_concurrency",
            "N",
        ),
        Option("ignore_robots", ValueKind.FLAG, "Fetch what robots.txt forbids.", "ignore_robots"),
        Option(
            "robots_unreachable",
            ValueKind.TEXT,
            "An unreachable robots.txt: disallow (default) or allow.",
            "robots_unreachable",
            "WORD",
        ),
        Option(
            "robots_timeout",
            ValueKind.NUMBER,
            "Patience with a robots.txt.",
            "robots_timeout_s",
            "S",
        ),
        Option(
            "robots_limit",
            ValueKind.INTEGER,
            "robots.txt files fetched at once.",
            "robots_limit",
            "N",
        ),
        Option(
            "robots_patience",
            ValueKind.NUMBER,
            "Wait this long for an unreachable robots.txt.",
            "robots_patience_s",
            "S",
        ),
        Option("user_agent", ValueKind.TEXT, "What we call ourselves.", "user_agent", "TEXT"),
        Option("contact", ValueKind.TEXT, "Whom to write to: the From header.", "contact", "MAIL"),
        Option(
            "host_failure_limit",
            ValueKind.INTEGER,
            "Failures in a row after which a host is given up.",
            "host_failure_limit",
            "N",
        ),
        Option(
            "give_up_stalled",
            ValueKind.FLAG,
            "Give a host up when it does nothing but throttle.",
            "give_up_stalled",
        ),
    )


def _machine() -> tuple[Option, ...]:
    return (
        Option("workers", ValueKind.INTEGER, "Requests under way in all (512).", "workers", "N"),
        Option(
            "processes",
            ValueKind.INTEGER,
            "Processes (default: by cores and hosts).",
            "processes",
            "N",
        ),
        Option("timeout", ValueKind.NUMBER, "Patience with one answer (20).", "timeout_s", "S"),
        Option("max_bytes", ValueKind.INTEGER, "A body is cut here (10 MiB).", "max_bytes", "N"),
        Option("max_redirects", ValueKind.INTEGER, "Hops from one URL (10).", "max_redirects", "N"),
        Option(
            "allow_net",
            ValueKind.LIST,
            "A private network or host:port that may be contacted; repeatable.",
            "allow_net",
            "CIDR",
        ),
        Option(
            "proxy",
            ValueKind.TEXT,
            "Send all requests through this proxy: http://, https://, socks5:// or socks5h://, "
            "with user:password@ if needed. The network guard cannot see which addresses the "
            "proxy contacts.",
            "proxy",
            "URL",
            has_password=True,
        ),
        Option(
            "ca_file",
            ValueKind.FILE,
            "Trust the certificate authorities in this PEM file instead of the system's.",
            "ca_file",
            "FILE",
        ),
        Option(
            "insecure_host",
            ValueKind.LIST,
            "Do not verify the TLS certificate of this host (name or address); repeatable.",
            "insecure_hosts",
            "HOST",
        ),
        Option("frontier_limit", ValueKind.INTEGER, "URLs queued at most.", "frontier_limit", "N"),
        Option("heap_limit", ValueKind.INTEGER, "Hosts scheduled at most.", "heap_limit", "N"),
        Option(
            "parse_limit",
            ValueKind.INTEGER,
            "Processes that parse big pages beside the crawl's own (2).",
            "parse_limit",
            "N",
        ),
        Option(
            "check_limit",
            ValueKind.INTEGER,
            "URLs that the store is asked about at once (512).",
            "check_limit",
            "N",
        ),
        Option("governor", ValueKind.FLAG, "Fewer requests while we are slow.", "governor"),
        Option("durable", ValueKind.FLAG, "Survive a power cut, too: slower.", "durable"),
    )


def _run() -> tuple[Option, ...]:
    return (
        Option(
            "data_dir", ValueKind.TEXT, "Where the crawl lives (./crawl-<host>).", metavar="DIR"
        ),
        Option("fresh", ValueKind.FLAG, "Start over: removes what the data directory holds."),
        Option(
            "output",
            ValueKind.LIST,
            "Export when done, by suffix: .jsonl .csv .xml (sitemap); - is stdout; repeatable.",
            metavar="FILE",
            short="-o",
        ),
        Option("json", ValueKind.FLAG, "The result as JSON on stdout."),
        Option("quiet", ValueKind.FLAG, "Say nothing but errors.", short="-q"),
        Option("verbose", ValueKind.FLAG, "Say more.", short="-v"),
        Option(
            "log_format",
            ValueKind.TEXT,
            "Log lines instead of the live line: text or json.",
            metavar="WORD",
            choices=("text", "json"),
        ),
        Option(
            "log_interval", ValueKind.NUMBER, "Seconds between two log lines (10).", metavar="S"
        ),
    )


GROUPS = {
    "What to crawl": _limits(),
    "Manners": _manners(),
    "The machine": _machine(),
    "This run": _run(),
}
OPTIONS = {option.name: option for group in GROUPS.values() for option in group}

# The options that are keywords of the library: those that are about the crawl.
KEYWORDS = tuple(name for name, option in OPTIONS.items() if option.target is not None)

# Other names of environment variables, by the options that they set.
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


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---------------------------------------------------------------------- values that were given


Value: TypeAlias = "str | int | float | bool | list[str]"

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_OTHER_KEYWORDS = ("data_dir", "fresh", "politeness")  # of the library, beside KEYWORDS
_ALIKE = 0.85  # similarity (difflib) from which a name is taken for a misspelled one


class CrawlOptions(TypedDict, total=False):
    """The options of a crawl as keywords of the library, for type checkers."""

    max_urls: int | None
    max_depth: int | None
    max_per_host: int | None
    duration: float | None
    scope: str | None
    include: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    drop_tracking: bool | None
    seeding_strategy: str | None
    ct_url: str | None
    commoncrawl_url: str | None
    strategy: str | None
    delay: float | None
    max_rate: float | Literal["unlimited"] | None
    per_host: int | None
    ignore_robots: bool | None
    robots_unreachable: str | None
    robots_timeout: float | None
    robots_limit: int | None
    robots_patience: float | None
    user_agent: str | None
    contact: str | None
    host_failure_limit: int | None
    give_up_stalled: bool | None
    workers: int | None
    processes: int | None
    timeout: float | None
    max_bytes: int | None
    max_redirects: int | None
    allow_net: str | Sequence[str] | None
    proxy: str | None
    ca_file: str | os.PathLike[str] | None
    insecure_host: str | Sequence[str] | None
    frontier_limit: int | None
    heap_limit: int | None
    parse_limit: int | None
    check_limit: int | None
    governor: bool | None
    durable: bool | None


class OptionError(ValueError):
    """A name that is no option, or a value that an option does not take, and where it stands."""


class Given(NamedTuple):
    """A value that somebody gave. `where` names the place, for error messages."""

    value: Value
    where: str


def checked(option: Option, value: object, where: str) -> Given:
    """Return a value of the type that its option takes.

    Raises:
        OptionError: it is of another type.
    """
    if not _fits(option.kind, value):
        raise OptionError(refusal(where, printable(option.name, value), option.kind.value))
    if option.choices and value not in option.choices:
        raise OptionError(refusal(where, value, "one of " + ", ".join(option.choices)))
    if option.name == "log_interval" and not 0 < value < math.inf:  # type: ignore[operator]
        raise OptionError(refusal(where, value, "a number above 0"))
    return Given(value, where)  # type: ignore[arg-type]


def from_keywords(keywords: Mapping[str, object]) -> dict[str, Given]:
    """Check the keyword arguments of the library's functions.

    Raises:
        OptionError: an unknown name (with the nearest right one), or a value of another type.
    """
    given: dict[str, Given] = {}
    for name, value in keywords.items():
        option = OPTIONS.get(name)
        if option is None or option.target is None:
            what = "is an option of the command only" if option else "is no option"
            raise OptionError(f"{name} {what}{nearest(name, (*KEYWORDS, *_OTHER_KEYWORDS))}")
        if option.kind is ValueKind.FILE and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if option.kind is ValueKind.LIST and isinstance(value, (str, tuple)):
            value = [value] if isinstance(value, str) else list(value)
        if value is not None:
            given[name] = checked(option, value, name)
    return given


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean …?" if a name looks like a misspelled one, else nothing."""
    close = get_close_matches(name, list(names), n=1, cutoff=_ALIKE)
    return f"; did you mean {close[0]}?" if close else ""


def from_text(option: Option, text: str) -> object:
    """Return the value that a word on a command line or in the environment stands for."""
    match option.kind:
        case ValueKind.FLAG:
            return _WORDS.get(text.lower(), text)
        case ValueKind.LIST:
            return text.split()
        case ValueKind.INTEGER:
            return int(text) if text.isascii() and text.lstrip("+-").isdigit() else text
        case ValueKind.NUMBER | ValueKind.RATE if text != "unlimited":
            try:
                return float(text)
            except ValueError:
                return text
    return text


def printable(name: str, value: object) -> object:
    """Return the value of an option as it may be printed: without the password of a URL."""
    if not OPTIONS[name].has_password or not isinstance(value, str):
        return value
    return without_password(value)


def refusal(where: str, value: object, allowed: str) -> str:
    """Return the sentence that refuses a value."""
    return f"{where} is {value!r}; allowed: {allowed}"


def _fits(kind: ValueKind, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case ValueKind.FLAG:
            return isinstance(value, bool)
        case ValueKind.INTEGER:
            return is_number and isinstance(value, int)
        case ValueKind.NUMBER:
            return is_number and not math.isnan(value)  # type: ignore[arg-type]
        case ValueKind.RATE:
            return is_number or value == "unlimited"
        case ValueKind.LIST:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    # A line end in a user agent would be a header of its own.
    return isinstance(value, str) and value.isprintable() and bool(value.strip())
