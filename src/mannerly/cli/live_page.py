"""`crawl --dashboard`: the live page of a crawl beside what the terminal shows."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from .command_line import ANYWHERE
from .listening import address, fail_without_packages, is_loopback
from .terminal import fail, note

if TYPE_CHECKING:
    from types import TracebackType

    from mannerly.crawler.runtime.news import Told
    from mannerly.crawler.stats import Stats
    from mannerly.live.meter import Limits


class LivePage:
    """The page of one crawl: `with LivePage(place, location, limits) as page: …`."""

    is_close = True

    def __init__(self, place: str, location: str, limits: Limits) -> None:
        from mannerly.service.beside import PACKAGES, Dashboard, PageOrder, name_of

        if not all(map(find_spec, PACKAGES)):
            fail_without_packages("--dashboard")
        host, port = ("127.0.0.1", 0) if place == ANYWHERE else address("--dashboard", place)
        # On loopback, too: another user of this machine must not steer the crawl, nor lead it into
        # the networks that its operator has opened.
        self._page = Dashboard(
            PageOrder(
                location,
                name_of(location),
                limits,
                host,
                port,
                allow_hosts=(host,),
                token=_token(),
                has_open_metrics=is_loopback(host),
            )
        )

    def __enter__(self) -> Self:
        ready = self._page.ready()
        if ready.error:
            self._page.close()
            fail(f"--dashboard: {ready.error}")
        note(f"Live page: {ready.address}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._page.close()

    def __call__(self, stats: Stats, elapsed_s: float) -> None:
        """Show a report."""
        self._page.show(stats, elapsed_s)

    def hear(self, told: Told) -> None:
        """Show what happened."""
        self._page.hear(told)

    def stopping(self) -> None:
        """The next reports show it."""

    def leaving(self) -> None:
        """The page ends with this process."""


def _token() -> str:
    import secrets

    return secrets.token_urlsafe(32)
