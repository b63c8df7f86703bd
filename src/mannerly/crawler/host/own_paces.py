"""The politeness settings of single hosts: those of the configuration, then those of `host set`.

A host's own value is stronger than that of the crawl, also when the crawl's changes while it runs.
Hosts that share a budget share their settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.control import HostOrders, merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.control import HostSet
    from mannerly.politeness import Politeness

    from .hosts import Hosts


class OwnPaces:
    """Keeps what was set for single hosts, and tells the politeness core and the audits."""

    def __init__(
        self,
        hosts: Mapping[str, Mapping[str, Any]],
        politeness: Politeness,
        registry: Hosts,
    ) -> None:
        self._politeness = politeness
        self._registry = registry
        self._orders: dict[str, HostOrders] = {}
        self._configured: dict[str, dict[str, Any]] = {}
        for host, own in hosts.items():
            self._configured.setdefault(politeness.key(host), {}).update(own)
        self.apply()

    def order(self, key: str, order: HostSet) -> None:
        """Take a `host set` for a budget."""
        self._orders[key] = merged(self._orders.get(key, HostOrders()), order)
        self._apply(key)

    def apply(self) -> None:
        """Set all of them again, after the settings of the crawl have changed."""
        for key in self._configured.keys() | self._orders.keys():
            self._apply(key)

    def _apply(self, key: str) -> None:
        own = self._configured.get(key, {}) | self._orders.get(key, HostOrders()).settings
        settings = self._politeness.settings.with_changes(own)
        self._politeness.configure(settings, host=key)
        self._registry.configure(settings, key=key)
