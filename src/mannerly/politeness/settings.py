"""Every number of the politeness core, each with a sentence, an allowed range and its source.

One frozen value, validated when it is made: a bad value names the field, the value and what is
allowed. The reference page (docs/settings.md) is generated from the fields below, so it cannot
disagree with them. Nothing here is read from the environment; that is the command's business.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from .errors import SettingsError
from .value import Described, Value

STRATEGIES = ("learned", "linear", "aimd", "gradient", "fixed")
UNLIMITED: Literal["unlimited"] = "unlimited"


def _option(
    default: Any,
    doc: str,
    source: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    word: str | None = None,
) -> Any:
    """A field with its range: `low`..`high` inclusive, `above` exclusive, or one of `choices`.

    `word` is a spelled-out value that is allowed beside the numbers; None is allowed only as
    the default.
    """
    rule = {"low": low, "high": high, "above": above, "choices": choices, "word": word}
    return Described(default, {"doc": doc, "source": source, "rule": rule})


class Settings(Value, kw_only=True):
    """How polite to be. The defaults suit a stranger's web site."""

    enabled: bool = _option(
        True, "Off grants every request at once; bookkeeping and snapshots go on.", "document 002"
    )
    strategy: str = _option(
        "learned", "Who decides how fast: see docs/strategies.md.", "pace §1.3", choices=STRATEGIES
    )
    seed: int | None = _option(
        None, "Seeds the jitter, so that a run can be repeated exactly.", "design §4.2", low=0
    )

    # ------------------------------------------------------------------ pace
    start_delay_s: float = _option(
        1.0, "Gap between requests to a host nothing is known about.", "decision 7", above=0
    )
    delay_s: float | None = _option(
        None,
        "The operator's word: the gap of `fixed`, the smallest gap of every other strategy.",
        "design §4.3",
        above=0,
    )
    min_delay_s: float | None = _option(
        None,
        "Hard floor of the gap. Default: 0.1 s, or 1/max_rate where that is shorter.",
        "pace §1.2",
        low=0,
    )
    max_delay_s: float = _option(
        60.0, "No strategy makes the gap longer than this by itself.", "document 001", above=0
    )
    max_rate: float | Literal["unlimited"] = _option(
        8.0, "Requests a second to one host, never exceeded.", "decision 7", above=0, word=UNLIMITED
    )
    max_concurrency: int = _option(
        8, "Requests to one host under way at once.", "Scrapy's per-domain default", low=1
    )
    delay_factor: float = _option(
        0.0,
        "After each answer, wait this many times as long as it took (Heritrix uses 5).",
        "pace §1.2",
        low=0,
    )
    max_bandwidth: float | None = _option(
        None, "Bytes a second from one host: a large page earns a longer gap.", "Heritrix", above=0
    )
    group_by: str = _option(
        "host",
        "What shares one budget: a host, a site (registrable domain) or an address.",
        "decision 3",
        choices=("host", "site", "ip"),
    )

    # ------------------------------------------------------------------ what the server asked for
    max_retry_after_s: float = _option(
        600.0,
        "A longer Retry-After parks the host: it is honoured, but callers are told not to wait.",
        "pace §1.2",
        above=0,
    )
    max_crawl_delay_s: float = _option(
        60.0, "Longest robots.txt Crawl-delay that is simply waited for.", "pace §1.2", above=0
    )
    long_crawl_delay: str = _option(
        "respect",
        "A longer one: `respect` waits, `cap` uses the longest, `skip_host` retires the host.",
        "pace §1.2",
        choices=("respect", "cap", "skip_host"),
    )
    rate_limit_headers: bool = _option(
        True, "Follow RateLimit and X-RateLimit headers while they are fresh.", "pace §1.5"
    )

    # ------------------------------------------------------------------ learned
    probe_budget: float = _option(
        0.005, "Share of requests that may be refused by probing.", "pace §1.3 ε", above=0, high=0.2
    )
    cruise: float = _option(
        0.98, "Share of the estimated limit at which to cruise.", "pace §1.3 ρ", above=0, high=1
    )

    # ------------------------------------------------------------------ linear
    linear_base_delay_s: float = _option(0.5, "Where the delay starts.", "document 001", above=0)
    linear_step_s: float = _option(
        1.0, "Added per throttle episode, taken off per probe.", "document 001", above=0
    )
    linear_probe_after: int = _option(
        20, "Successes in a row before a shorter delay is tried.", "document 001", low=1
    )
    linear_concurrency_step_s: float = _option(
        5.0,
        "Every this much delay over the base costs one request in flight.",
        "document 001",
        above=0,
    )

    # ------------------------------------------------------------------ aimd
    aimd_increase: float = _option(
        0.05, "α: requests/s gained per fast success.", "pace §1.4", above=0
    )
    aimd_decrease: float = _option(
        0.7, "β: factor on a throttle or a slow answer.", "pace §1.4", above=0, high=0.99
    )
    aimd_latency_target_s: float | None = _option(
        None,
        "Answers slower than degrade × this cut the rate; None: 1.5 × median.",
        "document 002",
        above=0,
    )
    aimd_degrade_factor: float = _option(
        2.0, "How many times the target counts as slow.", "document 002", above=1
    )
    aimd_min_rate: float = _option(0.25, "Lowest rate AIMD goes to.", "document 002", above=0)
    aimd_burst: int = _option(
        1,
        "Bucket capacity; counts only without a minimum delay and Crawl-delay.",
        "decision 1",
        low=1,
    )

    # ------------------------------------------------------------------ gradient
    gradient_tolerance: float = _option(
        1.5, "Latency growth that is still called steady.", "Netflix Gradient2", low=1
    )
    gradient_smoothing: float = _option(
        0.2, "Weight of a new concurrency limit.", "Netflix Gradient2", above=0, high=1
    )

    # ------------------------------------------------------------------ the breaker
    breaker_error_rate: float = _option(
        0.5, "Share of failures in the window that opens.", "document 002", above=0, high=1
    )
    breaker_min_samples: int = _option(10, "Answers before the share counts.", "pace §1.6", low=1)
    breaker_consecutive: int = _option(
        5, "Failures in a row that open it at once.", "pace §1.6", low=1
    )
    breaker_open_s: float = _option(
        5.0, "First open time; doubles with each opening in a row.", "pace §1.6", above=0
    )
    breaker_open_max_s: float = _option(300.0, "Longest open time.", "pace §1.6", above=0)
    breaker_probes: int = _option(
        3, "Successful probes, one after another, that close it.", "document 002", low=1
    )
    retire_after_opens: int = _option(
        10, "Openings in a row after which the host is retired.", "decision 5", low=1
    )
    request_timeout_s: float = _option(
        20.0, "What callers give a request; a probe's lease lasts 5 s longer.", "row H5", above=0
    )

    # ------------------------------------------------------------------ retries
    max_attempts: int = _option(3, "Tries of one URL; throttles cost none.", "document 001", low=1)
    retry_base_s: float = _option(
        0.5, "First backoff; doubles with each try.", "pace §1.7", above=0
    )
    retry_max_s: float = _option(60.0, "Longest backoff of our own.", "pace §1.7", above=0)
    retry_budget: float = _option(
        0.1, "Retries per request a host may cost.", "pace §1.7", low=0, high=1
    )
    retry_statuses: frozenset[int] = _option(
        frozenset({429, 500, 502, 503, 504}), "Statuses worth another try.", "document 002 §12"
    )

    # ------------------------------------------------------------------ many hosts
    idle_ttl_s: float = _option(
        3600.0, "A host untouched this long may be forgotten.", "document 000", above=0
    )
    max_hosts: int = _option(
        1_000_000, "Host states kept; beyond it the idlest go first.", "document 002 §16", low=1
    )
    stall_after_s: float = _option(
        600.0, "A host with demand and no success for this long is stalled.", "pace §1.6", above=0
    )
    stall_throttles: int = _option(
        20, "Throttles in a row at the longest delay that count as stalled.", "document 001", low=1
    )
    memory_half_life_s: float = _option(
        7 * 86_400.0, "Age at which a learned limit counts half.", "pace §1.8", above=0
    )

    def __post_init__(self) -> None:
        for name, option in self._described.items():
            is_whole = self.__annotations__[name].startswith("int")
            rule = option.metadata["rule"]
            _check(name, getattr(self, name), option.default, rule, is_whole=is_whole)
        statuses: object = self.retry_statuses
        if not isinstance(statuses, frozenset) or not all(map(_is_status, statuses)):
            allowed = "a frozenset of HTTP statuses from 100 to 599"
            raise SettingsError("retry_statuses", statuses, allowed)
        if self.retry_base_s > self.retry_max_s:
            allowed = f"above 0, at most retry_max_s ({self.retry_max_s:g})"
            raise SettingsError("retry_base_s", self.retry_base_s, allowed)

    @property
    def rate_ceiling(self) -> float:
        """Requests a second never exceeded; infinite when "unlimited" was spelled out."""
        return math.inf if self.max_rate == UNLIMITED else float(self.max_rate)

    @property
    def floor_s(self) -> float:
        """The hard floor of the gap in force: an explicit delay is the operator's word and wins."""
        if self.delay_s is not None:
            return self.delay_s
        if self.min_delay_s is not None:
            return self.min_delay_s
        return min(0.1, 1.0 / self.rate_ceiling)


def _is_status(value: object) -> bool:
    return isinstance(value, int) and 100 <= value <= 599


def _check(
    name: str, value: object, default: object, rule: dict[str, Any], *, is_whole: bool
) -> None:
    """Refuse a value outside its rule, in words that say what is allowed."""
    if value is None and default is None:
        return
    if rule["choices"] is not None:
        if value not in rule["choices"]:
            raise SettingsError(name, value, "one of " + ", ".join(rule["choices"]))
        return
    if rule["word"] is not None and value == rule["word"]:
        return
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingsError(name, value, "true or false")
        return
    if all(rule[key] is None for key in ("low", "high", "above")):
        return
    allowed = describe_range(rule)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingsError(name, value, allowed)
    if is_whole and not isinstance(value, int):
        raise SettingsError(name, value, f"a whole number {allowed}")
    inside = (
        math.isfinite(value)
        and (rule["low"] is None or value >= rule["low"])
        and (rule["high"] is None or value <= rule["high"])
        and (rule["above"] is None or value > rule["above"])
    )
    if not inside:
        raise SettingsError(name, value, allowed)


def describe_range(rule: dict[str, Any]) -> str:
    """The allowed values in words, for errors and for the reference page."""
    if rule["choices"] is not None:
        return "one of " + ", ".join(rule["choices"])
    parts = []
    if rule["above"] is not None:
        parts.append(f"above {rule['above']:g}")
    if rule["low"] is not None:
        parts.append(f"at least {rule['low']:g}")
    if rule["high"] is not None:
        parts.append(f"at most {rule['high']:g}")
    if rule["word"] is not None:
        parts.append(f'or "{rule["word"]}"')
    return " ".join(parts) if len(parts) < 2 else ", ".join(parts)
