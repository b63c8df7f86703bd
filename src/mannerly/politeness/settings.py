"""Every setting of the politeness core, with its meaning, allowed range and source.

`Settings` is a frozen dataclass that validates itself: `SettingsError` names the field, the value
and what is allowed. The reference page (docs/reference/settings.md) is generated from the fields
below, so the two cannot disagree. Nothing is read from the environment here; the command does that.
It is long because it is a table of all settings.
"""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from .bounds import LARGEST_SETTING
from .errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

STRATEGIES = ("learned", "linear", "aimd", "gradient", "fixed")
STRATEGY_ALIASES = {"leaky": "fixed"}  # a leaky bucket is a constant delay
UNLIMITED: Literal["unlimited"] = "unlimited"


class Range(NamedTuple):
    """The values that a setting may have."""

    low: float | None = None  # the smallest number
    high: float | None = None  # the largest number
    above: float | None = None  # the number must be greater than this
    choices: tuple[str, ...] = ()  # the allowed texts; empty: no list of texts
    word: str | None = None  # a text that is allowed besides numbers

    @property
    def words(self) -> str:
        """Return the allowed values in words, for errors and docs/reference; empty: any."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        parts = []
        if self.above is not None:
            parts.append(f"above {self.above:g}")
        if self.low is not None:
            parts.append(f"at least {self.low:g}")
        if self.high is not None:
            parts.append(f"at most {self.high:g}")
        if self.word is not None:
            parts.append(f'or "{self.word}"')
        return " ".join(parts) if len(parts) < 2 else ", ".join(parts)

    def allows(self, value: object) -> bool:
        """Return whether a value is allowed; without a range and a list of texts any is."""
        if self.choices:
            return value in self.choices
        if self.low is self.high is self.above is None:
            return True
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.word is not None and value == self.word
        return (
            -LARGEST_SETTING <= value <= LARGEST_SETTING
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
        )


def _option(
    default: Any,
    doc: str,
    source: str,
    *,
    default_words: str = "",
    for_one_host: bool = True,
    offer: Mapping[str, object] | None = None,
    **allowed: Any,
) -> Any:
    """Return a dataclass field with its documentation and allowed range.

    Args:
        default: the default value. None is allowed as a value only if it is the default.
        doc: one sentence for docs/reference/settings.md and for `mannerly crawl --help`.
        source: where the default comes from, for docs/reference/settings.md.
        default_words: the default in words, where the value does not tell it.
        for_one_host: whether a single host may have its own value.
        offer: how the crawler offers it as an option, where it differs from the usual:
            `crawler.options.option.Option` says what can be given.
        allowed: the allowed values: see `Range`.
    """
    metadata = {
        "doc": doc,
        "source": source,
        "range": Range(**allowed),
        "default_words": default_words,
        "for_one_host": for_one_host,
        "offer": offer or {},
    }
    return field(default=default, metadata=metadata)


_OFTEN_USED: dict[str, object] = {"is_advanced": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the politeness core. The defaults suit web sites you know nothing about."""

    enabled: bool = _option(
        True,
        "Pace requests; if off, each is granted at once, and only statistics are kept.",
        "requirement",
        # Without it a job would ignore what its hosts ask for: that is the operator's.
        offer={"name": "pacing", "for_jobs": False},
    )
    strategy: str = _option(
        "learned",
        "Strategy that sets the pace of each host: learned, linear, aimd, gradient or fixed.",
        "ADR 0004",
        offer=_OFTEN_USED,
        choices=(*STRATEGIES, *STRATEGY_ALIASES),
    )
    seed: int | None = _option(
        None,
        "Seed of the random jitter, to repeat a run exactly.",
        "project choice",
        offer={"name": "random_seed"},  # seeds are start URLs
        low=0,
        for_one_host=False,
    )

    # ------------------------------------------------------------------ pace
    start_delay_s: float = _option(
        1.0,
        "Delay between requests to a host about which nothing is known.",
        "requirement",
        offer={
            "name": "start_rate",
            "doc": "Requests per second to a host at first, until its limit is learned; not with "
            "--strategy fixed.",
            "metavar": "R",
            "is_inverse": True,
            "is_advanced": False,
        },
        above=0,
    )
    delay_s: float | None = _option(
        None,
        "Minimum delay between requests to one host; the exact delay with the strategy `fixed`.",
        "project choice",
        default_words="set by the strategy; with fixed, 1/max_rate",
        offer=_OFTEN_USED,
        above=0,
    )
    min_delay_s: float | None = _option(
        None,
        "Minimum delay for every strategy.",
        "project choice",
        default_words="0.1 s, or 1/max_rate if that is shorter",
        low=0,
    )
    max_delay_s: float = _option(
        60.0,
        "Longest delay that a strategy sets by itself; `learned` pauses longer after refusals.",
        "requirement",
        above=0,
    )
    max_rate: float | Literal["unlimited"] = _option(
        8.0,
        "Maximum requests per second to one host, or unlimited.",
        "requirement",
        offer=_OFTEN_USED | {"is_changeable": True},
        above=0,
        word=UNLIMITED,
    )
    max_concurrency: int = _option(
        8,
        "Maximum requests in flight to one host.",
        "Scrapy",
        offer={"name": "per_host", "is_advanced": False, "variables": ("MAX_INFLIGHT_PER_HOST",)},
        low=1,
    )
    delay_factor: float = _option(
        0.0,
        "After each response, wait this many times its latency; 0 is off, Heritrix uses 5.",
        "project choice",
        low=0,
    )
    max_bandwidth: float | None = _option(
        None,
        "Maximum bytes per second from one host: large responses lengthen the delay.",
        "Heritrix",
        above=0,
    )
    group_by: str = _option(
        "host",
        "What shares one request rate: a host, a site (registrable domain) or an IP address.",
        "requirement",
        choices=("host", "site", "ip"),
        for_one_host=False,
    )

    # ------------------------------------------------------------------ limits set by the server
    max_retry_after_s: float = _option(
        600.0,
        "After a longer Retry-After, requests are refused instead of delayed until it has passed.",
        "project choice",
        above=0,
    )
    max_crawl_delay_s: float = _option(
        60.0,
        "Longest robots.txt Crawl-delay that is used as it is; see `long_crawl_delay`.",
        "project choice",
        above=0,
    )
    long_crawl_delay: str = _option(
        "respect",
        "For a longer Crawl-delay: `respect` it, `cap` it at the maximum, or `skip_host`.",
        "project choice",
        choices=("respect", "cap", "skip_host"),
    )
    rate_limit_headers: bool = _option(
        True, "Obey RateLimit and X-RateLimit response headers.", "project choice"
    )

    # ------------------------------------------------------------------ learned
    probe_budget: float = _option(
        0.005,
        "ε: share of requests that may be refused because of probing.",
        "ADR 0004",
        above=0,
        high=0.2,
    )
    cruise: float = _option(
        0.98, "ρ: share of the estimated limit to use while cruising.", "ADR 0004", above=0, high=1
    )
    latency_factor: float = _option(
        2.0,
        "Slow down when the median latency is above this many times the lowest one of minutes.",
        "ADR 0004",
        above=1,
        high=100,
    )

    # ------------------------------------------------------------------ linear
    linear_base_delay_s: float = _option(0.5, "Initial and shortest delay.", "requirement", above=0)
    linear_step_s: float = _option(
        1.0,
        "Added to the delay per throttle episode, subtracted per probe.",
        "requirement",
        above=0,
    )
    linear_probe_after: int = _option(
        20, "Consecutive successes before a shorter delay is tried.", "requirement", low=1
    )
    linear_concurrency_step_s: float = _option(
        5.0,
        "One request in flight less for every this many seconds above the base delay.",
        "requirement",
        above=0,
    )

    # ------------------------------------------------------------------ aimd
    aimd_increase: float = _option(
        0.05, "α: requests per second added per fast success.", "project choice", above=0
    )
    aimd_decrease: float = _option(
        0.7,
        "β: factor on the rate after a throttle or a slow response.",
        "project choice",
        above=0,
        high=0.99,
    )
    aimd_cut_on_503: bool = _option(
        True,
        "Cut the rate after a 503 without Retry-After, too; the breaker counts it in any case.",
        "requirement",
    )
    aimd_latency_target_s: float | None = _option(
        None,
        "Target latency.",
        "requirement",
        default_words="1.5 times the lowest median so far",
        above=0,
    )
    aimd_degrade_factor: float = _option(
        2.0, "A response is slow at this many times the target latency.", "requirement", above=1
    )
    aimd_min_rate: float = _option(
        0.25, "Lowest rate, in requests per second.", "requirement", above=0
    )
    aimd_burst: int = _option(
        1,
        "Bucket capacity; used only without a minimum delay and Crawl-delay.",
        "requirement",
        low=1,
    )

    # ------------------------------------------------------------------ gradient
    gradient_tolerance: float = _option(
        1.5, "Latency growth that does not lower the limit.", "Netflix Gradient2", low=1
    )
    gradient_smoothing: float = _option(
        0.2, "Weight of the newest concurrency limit.", "Netflix Gradient2", above=0, high=1
    )

    # ------------------------------------------------------------------ statistics of answers
    error_window_s: float = _option(
        30.0,
        "Responses of this many seconds count for the error rate of a host. A change holds for "
        "hosts that are met after it.",
        "requirement",
        low=1,
    )
    error_slots: int = _option(
        15,
        "Steps in which that window moves, 2 s each by default; a host has two bytes for each.",
        "requirement",
        low=1,
        high=60,
    )
    latency_samples: int = _option(
        64,
        "Latest latencies that the p95 of a host is made from; each takes one byte a host.",
        "requirement",
        low=16,
        high=256,
    )

    # ------------------------------------------------------------------ the breaker
    breaker_error_rate: float = _option(
        0.5,
        "Share of failures in `error_window_s` that opens the breaker.",
        "requirement",
        above=0,
        high=1,
    )
    breaker_min_samples: int = _option(
        10, "Responses in `error_window_s` before that share is used.", "project choice", low=1
    )
    breaker_consecutive: int = _option(
        5, "Consecutive failures that open the breaker.", "project choice", low=1
    )
    breaker_within_s: float = _option(
        5.0,
        "Where requests are rare, open the breaker after fewer failures in a row, at least two, "
        "if one more would come later than this many seconds after the first.",
        "requirement",
        above=0,
    )
    breaker_open_s: float = _option(
        5.0, "First open time; doubles with each consecutive opening.", "project choice", above=0
    )
    breaker_open_max_s: float = _option(300.0, "Longest open time.", "project choice", above=0)
    breaker_probes: int = _option(
        3, "Consecutive successful probes that close the breaker.", "requirement", low=1
    )
    retire_after_opens: int = _option(
        10, "Consecutive openings after which the host is retired.", "requirement", low=1
    )
    request_timeout_s: float = _option(
        20.0,
        "The caller's request timeout; a breaker probe expires 5 s later.",
        "requirement",
        above=0,
        for_one_host=False,
    )

    # ------------------------------------------------------------------ retries
    max_attempts: int = _option(
        3,
        "Maximum attempts per URL; throttles do not count, see `refusal_retries`.",
        "requirement",
        low=1,
    )
    refusal_retries: int | None = _option(
        None,
        "Maximum retries of a URL that is refused (429, or another throttle).",
        "requirement",
        default_words="no limit, `give_up_after_s` of its host ends them",
        low=0,
    )
    retry_base_s: float = _option(
        0.5, "First backoff; doubles with each attempt.", "project choice", above=0
    )
    retry_max_s: float = _option(
        60.0, "Longest backoff; a longer Retry-After is still obeyed.", "project choice", above=0
    )
    retry_budget: float = _option(
        0.1,
        "Retries per request to a host: 0.1 allows one retry per ten requests.",
        "project choice",
        low=0,
        high=1,
    )
    retry_statuses: frozenset[int] = _option(
        frozenset({429, 500, 502, 503, 504}), "HTTP statuses that are retried.", "requirement"
    )

    # ------------------------------------------------------------------ many hosts
    give_up_after_s: float = _option(
        3600.0,
        "Give a host up after this long without a success since its first refusal or failure; at "
        "once if it asks for a longer pause and nothing else is left.",
        "project choice",
        offer=_OFTEN_USED,
        above=0,
    )
    idle_ttl_s: float = _option(
        3600.0,
        "Host state that was unused for this long may be dropped.",
        "requirement",
        above=0,
        for_one_host=False,
    )
    max_hosts: int = _option(
        1_000_000,
        "Maximum number of host states; idle ones are dropped first.",
        "requirement",
        offer={"name": "max_host_states"},  # it does not limit what is crawled
        low=1,
        for_one_host=False,
    )
    stall_after_s: float = _option(
        600.0,
        "Report a host as stalled after this long with failures and no success.",
        "project choice",
        above=0,
    )
    stall_throttles: int = _option(
        20,
        "Consecutive throttles at `max_delay_s` after which a host is reported as stalled.",
        "requirement",
        low=1,
    )
    memory_half_life_s: float = _option(
        7 * 86_400.0,
        "Age at which a remembered limit has half its weight.",
        "project choice",
        above=0,
    )

    def __new__(cls, **options: object) -> Self:
        """Refuse misspelled names: the message of a dataclass would suggest nothing."""
        for name in options.keys() - cls.__dataclass_fields__.keys():
            raise TypeError(f"there is no setting {name!r}{_suggestion(name)}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for option in fields(self):
            check_field(option, getattr(self, option.name))
        statuses: object = self.retry_statuses
        if not isinstance(statuses, frozenset):
            raise SettingsError(
                "retry_statuses", statuses, "a frozenset of HTTP statuses from 100 to 599"
            )
        if not all(map(_is_status, statuses)):
            allowed = "HTTP statuses from 100 to 599"
            raise SettingsError("retry_statuses", sorted(statuses, key=str), allowed)
        if self.retry_base_s > self.retry_max_s:
            allowed = f"above 0, at most the longest backoff ({self.retry_max_s:g})"
            raise SettingsError("retry_base_s", self.retry_base_s, allowed)

    @property
    def rate_ceiling(self) -> float:
        """Maximum requests per second; infinite if `max_rate` is "unlimited"."""
        return math.inf if self.max_rate == UNLIMITED else float(self.max_rate)

    @property
    def floor_s(self) -> float:
        """Minimum delay in force: `delay_s`, else `min_delay_s`, else the default."""
        if self.delay_s is not None:
            return self.delay_s
        if self.min_delay_s is not None:
            return self.min_delay_s
        return min(0.1, 1.0 / self.rate_ceiling)

    def with_changes(self, changes: Mapping[str, Any]) -> Settings:
        """Return these settings with some others; a list of statuses may be of any type."""
        statuses = changes.get("retry_statuses")
        if isinstance(statuses, list | tuple | set):
            changes = {**changes, "retry_statuses": frozenset(statuses)}
        return replace(self, **changes) if changes else self


# The first field of each group of settings, with the group's title.
_TITLES = {
    "enabled": "In general",
    "start_delay_s": "Pace",
    "max_retry_after_s": "Limits set by the server",
    "probe_budget": "Strategy learned",
    "linear_base_delay_s": "Strategy linear",
    "aimd_increase": "Strategy aimd",
    "gradient_tolerance": "Strategy gradient",
    "error_window_s": "Statistics of answers",
    "breaker_error_rate": "Breaker",
    "max_attempts": "Retries",
    "give_up_after_s": "Many hosts",
}


def groups() -> dict[str, list[Field[Any]]]:
    """Return all settings in their groups, by title."""
    found: dict[str, list[Field[Any]]] = {}
    members: list[Field[Any]] = []
    for each in fields(Settings):
        if each.name in _TITLES:
            members = found[_TITLES[each.name]] = []
        members.append(each)
    return found


def _suggestion(name: str) -> str:
    from difflib import get_close_matches  # here, because its import takes long

    close = get_close_matches(name, Settings.__dataclass_fields__, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _is_status(value: object) -> bool:
    return isinstance(value, int) and 100 <= value <= 599


def check_field(option: Field[Any], value: object) -> None:
    """Raise SettingsError if the value is outside the range of a field with a `Range`."""
    allowed: Range = option.metadata["range"]
    name, default = option.name, option.default
    if value is None and default is None:
        return
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingsError(name, value, "true or false")
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_whole = str(option.type).startswith("int")
    if not allowed.choices and is_number and is_whole and not isinstance(value, int):
        raise SettingsError(name, value, f"a whole number {allowed.words}")
    if not allowed.allows(value):
        raise SettingsError(name, value, allowed.words)
