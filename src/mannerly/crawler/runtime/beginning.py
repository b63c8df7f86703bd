"""Prepare a crawl: the rules for its links, and its first candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import Candidate
from mannerly.crawler.page.links import HrefMemory
from mannerly.crawler.page.rules import LinkRules
from mannerly.crawler.web.seeds import seed_candidates, sitemap_candidates
from mannerly.crawler.web.sources import COMMONCRAWL, CT
from mannerly.crawler.web.urls import Url, UrlRules, host_key_of, site_of

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import Manifest


def rules_of(settings: CrawlSettings, manifest: Manifest) -> LinkRules:
    """Return the rules that decide which links this crawl follows."""
    urls = (
        UrlRules()
        if settings.drop_tracking
        else UrlRules(drop_params=frozenset(), drop_prefixes=())
    )
    scope = settings.scope_of(manifest.seeds)
    return LinkRules(scope, settings.agent_token, settings.max_redirects, urls, HrefMemory())


def first_candidates(settings: CrawlSettings, manifest: Manifest) -> list[Candidate]:
    """Return the seeds, the usual places of their sitemaps, and public indexes of their sites."""
    candidates = seed_candidates(manifest.seeds)
    if settings.seeding in ("sitemap", "all"):
        origins = dict.fromkeys(url[: url.index("/", 8)] for url in manifest.seeds)
        candidates += sitemap_candidates([f"{origin}/sitemap.xml" for origin in origins], None)
    for source, template in ((CT, settings.ct_url), (COMMONCRAWL, settings.commoncrawl_url)):
        if settings.seeding in (source.name, "all"):
            # Asked for here only: the first question reads the list of public suffixes.
            sites = dict.fromkeys(site_of(Url.of(url).host) for url in manifest.seeds)
            urls = (source.address(template, site) for site in sites)
            candidates += [
                Candidate(url, host_key_of(url), 0, 0, None, kind=source.kind) for url in urls
            ]
    return candidates
