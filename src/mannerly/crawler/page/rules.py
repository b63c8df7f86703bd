"""The rules for links that every page of a crawl is read by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.crawler.web.urls import DEFAULT_RULES, UrlRules

from .links import HrefMemory

if TYPE_CHECKING:
    from mannerly.crawler.web.scope import Scope


@dataclass(slots=True)
class LinkRules:
    """Scope, spelling and limits of links. The scope grows when a seed has moved.

    `moved` are the targets that the scope had to grow for, until other processes are told.
    """

    scope: Scope
    agent: str  # our name in robots directives that are addressed to one crawler
    max_redirects: int
    urls: UrlRules = DEFAULT_RULES
    hrefs: HrefMemory = field(default_factory=HrefMemory)
    moved: list[str] = field(default_factory=list)
    keeps_links: bool = False  # keep what readers of the links ask for
    keeps_anchors: bool = False  # and what links with a fragment can lead to
    follows: bool = True  # the links of pages
    text_digest: str = "none"  # pages whose text is digested: auto, all or none

    def has_seed_on(self, host: str) -> bool:
        """Return whether a seed is on this host, given as a host key."""
        return self.scope.has_seed_on(host)

    def widen(self, *urls: str) -> None:
        """Include further URLs in the scope: added seeds, or where a seed has moved to."""
        self.scope = self.scope.including(*urls)

    def seed_moved(self, target: str) -> None:
        """Include where a seed was redirected to."""
        before = self.scope
        self.widen(target)
        if self.scope is not before:
            self.moved.append(target)
