"""The pages that one member of a shared crawl may still start, of the crawl's `--max-urls`.

The store knows the limit, and grants pages in chunks. What was not started is given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .budget import CHUNK, FREELY, PageBudget

if TYPE_CHECKING:
    from mannerly.crawler.store.fleet import Fleet


class FleetBudget(PageBudget):
    """The pages that a member may still start, of the crawl's `--max-urls`."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(0, ask=self._want)
        self._fleet = fleet
        self._wants = True
        self._is_refused = False

    def _want(self) -> None:
        self._wants = True

    @property
    def is_spent(self) -> bool:
        """Return whether nothing is left, here or in the store."""
        return self._is_refused and super().is_spent

    def set_limit(self, limit: int | None) -> None:  # noqa: ARG002 - the store knows it
        """Ask again: the limit of the crawl has changed."""
        self._wants = True

    @property
    def wants(self) -> bool:
        """Return whether pages are to be taken."""
        return self._wants

    def poll(self, *, is_limited: bool) -> None:
        """Take pages from the crawl's limit, if some are wanted."""
        if not self._wants:
            return
        pages = self._fleet.take_pages(CHUNK if is_limited else FREELY)
        self._is_refused = pages == 0
        if pages:
            self._wants = False
            self.granted(pages)

    def give_rest_back(self) -> None:
        """Return what was not started."""
        if unused := self.recalled():
            self._fleet.return_pages(unused)
        self._wants = True
