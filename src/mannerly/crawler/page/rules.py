"""The rules for links that every page of a crawl is read by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mannerly.crawler.web.urls import DEFAULT_RULES, UrlRules

from .links import HrefMemory

if TYPE_CHECKING:
    from mannerly.crawler.web.scope import Scope


@dataclass(slots=True)
class LinkRules:
    """Scope, spelling and limits of links. The scope grows when a seed has moved."""

    scope: Scope
    agent: str  # our name in robots directives that are addressed to one crawler
    max_redirects: int
    urls: UrlRules = DEFAULT_RULES
    hrefs: HrefMemory = field(default_factory=HrefMemory)

    def has_seed_on(self, host: str) -> bool:
        """Return whether a seed is on this host, given as a host key."""
        return self.scope.has_seed_on(host)

    def widen(self, *urls: str) -> None:
        """Include further URLs in the scope: added seeds, or where a seed has moved to."""
        seeds = dict.fromkeys((*self.scope.seeds, *urls))
        if len(seeds) > len(self.scope.seeds):
            self.scope = replace(self.scope, seeds=tuple(seeds))
