"""The options of a crawl as keywords of the library, for type checkers.

A test holds that these are exactly the options of the table that have a target.
"""

from __future__ import annotations

import os  # noqa: TC003 - these are read by typing.get_type_hints
from collections.abc import Callable, Iterable, Mapping, Sequence  # noqa: TC003
from typing import Literal, TypedDict


class CrawlOptions(TypedDict, total=False):
    """The options of a crawl. The sentence of each is in docs/reference/options.md."""

    max_urls: int | None
    max_depth: int | None
    follow: bool | None
    max_per_host: int | None
    duration: float | None
    grace: float | None
    scope: str | None
    include: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    drop_tracking: bool | None
    links: bool | None
    anchors: bool | None
    text_digest: str | None
    seeding_strategy: str | None
    sitemap: str | Sequence[str] | None
    max_sitemaps: int | None
    ct_url: str | None
    commoncrawl_url: str | None
    strategy: str | None
    delay: float | None
    max_rate: float | Literal["unlimited"] | None
    start_rate: float | None
    address_max_rate: float | None
    per_host: int | None
    ignore_robots: bool | None
    robots_unreachable: str | None
    robots_timeout: float | None
    robots_limit: int | None
    robots_patience: float | None
    user_agent: str | None
    contact: str | None
    host_failure_limit: int | None
    give_up_after: float | None
    host: Mapping[str, Mapping[str, object]] | None
    pacing: bool | None
    random_seed: int | None
    min_delay: float | None
    max_delay: float | None
    delay_factor: float | None
    max_bandwidth: float | None
    group_by: str | None
    max_retry_after: float | None
    max_crawl_delay: float | None
    long_crawl_delay: str | None
    rate_limit_headers: bool | None
    probe_budget: float | None
    cruise: float | None
    latency_factor: float | None
    linear_base_delay: float | None
    linear_step: float | None
    linear_probe_after: int | None
    linear_concurrency_step: float | None
    aimd_increase: float | None
    aimd_decrease: float | None
    aimd_cut_on_503: bool | None
    aimd_latency_target: float | None
    aimd_degrade_factor: float | None
    aimd_min_rate: float | None
    aimd_burst: int | None
    gradient_tolerance: float | None
    gradient_smoothing: float | None
    error_window: float | None
    error_slots: int | None
    latency_samples: int | None
    breaker_error_rate: float | None
    breaker_min_samples: int | None
    breaker_consecutive: int | None
    breaker_within: float | None
    breaker_open: float | None
    breaker_open_max: float | None
    breaker_probes: int | None
    retire_after_opens: int | None
    max_attempts: int | None
    refusal_retries: int | None
    retry_base: float | None
    retry_max: float | None
    retry_budget: float | None
    retry_statuses: Iterable[int] | None
    idle_ttl: float | None
    max_host_states: int | None
    stall_after: float | None
    stall_throttles: int | None
    memory_half_life: float | None
    workers: int | None
    processes: int | None
    timeout: float | None
    max_bytes: int | str | None
    memory_limit: int | str | None
    memory: str | os.PathLike[str] | None
    max_redirects: int | None
    allow_net: str | Sequence[str] | None
    header: str | Sequence[str] | None
    auth: str | Sequence[str] | None
    cookies: bool | None
    proxy: str | None
    proxy_env: bool | None
    ca_file: str | os.PathLike[str] | None
    insecure_host: str | Sequence[str] | None
    frontier_limit: int | None
    heap_limit: int | None
    parse_limit: int | None
    parse_processes: int | None
    check_limit: int | None
    governor: bool | None
    extract: str | Callable[..., object] | None
    extract_timeout: float | None
    keep_bodies: bool | None
    segment_size: int | str | None
    durable: bool | None
    warm: bool | None
    variant: str | Sequence[str] | None
    max_error_rate: float | None
