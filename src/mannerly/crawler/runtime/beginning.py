"""Prepare a crawl: the rules for its links, and its first candidates."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.fetch.credentials import Credentials
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.inspection.view import settings_of
from mannerly.crawler.model import Candidate, Now
from mannerly.crawler.options.secrets import revealed
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.page.extract import Extracting
from mannerly.crawler.page.links import HrefMemory, LinkRules
from mannerly.crawler.render.values import RenderLimits
from mannerly.crawler.store import is_in_server, name_of
from mannerly.crawler.store.base import Manifest
from mannerly.crawler.web.seeds import COMMONCRAWL, CT, seed_candidates, sitemap, usual_sitemaps
from mannerly.crawler.web.urls import Url, host_key_of, site_of

from .messages import worker_id

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import CrawlStore
    from mannerly.hosts.leases import Leases
    from mannerly.politeness.clock import TimeSource

    from .rendering import Browsers

# Settings that decide about URLs: a resumed crawl keeps them, half a crawl under each is neither.
KEPT = tuple(option.target for option in OPTIONS.values() if option.target and option.is_fixed)


def rules_of(settings: CrawlSettings, manifest: Manifest) -> LinkRules:
    """Return the rules that decide which links this crawl follows."""
    scope = settings.scope_of(manifest.seeds)
    return LinkRules(
        scope,
        settings.agent_token,
        settings.max_redirects,
        settings.url_rules,
        HrefMemory(),
        keeps_links=settings.links,
        keeps_anchors=settings.anchors,
        follows=settings.follow,
        text_digest=settings.text_digest,
    )


def extracting(settings: CrawlSettings) -> Extracting | None:
    """Return the extract function of a crawl; None: it has none."""
    name = settings.extract
    return None if name is None else Extracting(name, settings.extract_timeout_s)


def browsers_of(settings: CrawlSettings, shards: int) -> Browsers | None:
    """Return the browsers of a process; None: no page is rendered."""
    if not settings.render:
        return None
    from mannerly.crawler.render.chromium import installed  # with the next: rarely needed

    from .browser_desk import BrowserPlan
    from .rendering import Browsers

    limits = RenderLimits(
        settings.render_timeout_s,
        settings.render_timeout_s,
        settings.max_bytes,
        settings.blocked_kinds,
        frozenset(host.lower() for host in settings.render_post),
        frozenset(host.lower() for host in settings.render_session),
        takes_picture=settings.screenshot,
    )
    browser = installed(settings.browser, no_sandbox=settings.browser_no_sandbox)
    plan = BrowserPlan(browser, limits, settings.render_tabs, settings.render_memory)
    return Browsers(plan, Sharding(shards).shard_of)


def first_candidates(settings: CrawlSettings, manifest: Manifest) -> list[Candidate]:
    """Return the seeds, the usual places of their sitemaps, and public indexes of their sites."""
    candidates = seed_candidates(manifest.seeds)
    if settings.seeding in ("sitemap", "all"):
        candidates += usual_sitemaps(manifest.seeds)
    candidates += [sitemap(url, None) for url in settings.sitemaps]
    for source, template in ((CT, settings.ct_url), (COMMONCRAWL, settings.commoncrawl_url)):
        if settings.seeding in (source.name, "all"):
            # Asked for here only: the first question reads the list of public suffixes.
            sites = dict.fromkeys(site_of(Url.of(url).host) for url in manifest.seeds)
            urls = (source.address(template, site) for site in sites)
            candidates += [
                Candidate(url, host_key_of(url), 0, 0, None, kind=source.kind) for url in urls
            ]
    return candidates


def fetch_settings(
    settings: CrawlSettings, seeds: list[str], max_connections: int
) -> FetchSettings:
    """Return the settings of the fetcher; secrets that are referred to are read here."""
    proxies = None
    if settings.proxy_env:
        from mannerly.crawler.fetch.settings import EnvironmentProxies  # slow to import

        proxies = EnvironmentProxies()
    return FetchSettings(
        user_agent=settings.full_user_agent,
        max_connections=max_connections,
        proxy=settings.proxy and revealed("proxy", settings.proxy),
        proxy_for=proxies,
        ca_file=settings.ca_file,
        insecure_hosts=settings.insecure_hosts,
        credentials=Credentials(settings.headers, settings.auth, seeds),
        keeps_cookies=settings.cookies,
        keep_raw=settings.keep_bodies,
    )


def new_manifest(settings: CrawlSettings, seeds: list[str], shards: int | None = None) -> Manifest:
    """Return the manifest of a crawl that begins now; by default with a shard for each process.

    Raises:
        ValueError: there is no seed, or no scope can be made of them.
    """
    if not seeds:
        raise ValueError("a crawl needs at least one URL to start from")
    settings.scope_of(seeds)  # raises ValueError
    return Manifest.new(
        seeds=seeds,
        settings=msgspec.to_builtins(settings.without_secrets()),
        shards=shards or settings.processes,
        created_at=time.time(),
    )


def resumed_settings(manifest: Manifest, now: CrawlSettings) -> CrawlSettings:
    """A resumed crawl keeps what decides about URLs, and takes the rest from this run."""
    kept = settings_of(manifest)
    return replace(now, **{name: getattr(kept, name) for name in KEPT})


def join_others(settings: CrawlSettings, store: CrawlStore, clock: TimeSource) -> Leases | None:
    """Join the crawls that share a memory of hosts; None: this crawl uses none.

    Raises:
        StoreError: the memory is damaged, of another version, or cannot be written.
    """
    from mannerly.hosts import host_memory_location, open_host_memory  # slow to import
    from mannerly.hosts.leases import Leases

    chosen = settings.memory or os.environ.get("MANNERLY_MEMORY")
    if chosen is None and is_in_server(store.location):
        chosen = store.location.partition("#")[0]  # one budget for all crawls of a server
    location = host_memory_location(chosen, os.environ)
    if location is None or not settings.politeness.enabled:
        return None
    return Leases(
        open_host_memory(location),
        crawl=store.manifest.id,
        name=name_of(store.location),
        worker=worker_id(os.getpid()),
        now=Now(clock.now(), clock.wall()),
        clock=clock.now,
    )
