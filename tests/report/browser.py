"""Open a report in Debian's Chromium, by Playwright.

Tests that need it are skipped with a clear word where there is no browser; with CI=true they fail,
so that CI cannot pass without having looked.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
MISSING = "there is no Chromium: apt-get install chromium"


class Seen(NamedTuple):
    """What a page did while it was open."""

    page: Page
    requests: list[str]
    messages: list[str]  # on the console, and errors
    errors: list[str]  # alone
    dialogs: list[str]


def require_browser() -> None:
    """Skip the test without a browser; fail in CI."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        missing = "there is no Playwright: pip install playwright"
    else:
        missing = "" if CHROMIUM else MISSING
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


_running: list[tuple[Playwright, Browser]] = []
_tabs: list[Page] = []


def browser() -> Browser:
    """One browser for all tests of a module: starting it takes longer than most of them."""
    from playwright.sync_api import sync_playwright

    if not _running:
        playwright = sync_playwright().start()
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        _running.append((playwright, started))
    return _running[0][1]


@pytest.fixture(scope="module", autouse=True)
def browser_ends() -> Iterator[None]:
    """End the browser with its module: its event loop would be in the way of other tests."""
    yield
    _tabs.clear()
    while _running:
        playwright, started = _running.pop()
        started.close()
        playwright.stop()


@contextmanager
def tab(*, width: int = 1280, scheme: str = "light", media: str = "screen") -> Iterator[Seen]:
    """Note what a page does in the tab of this module. One more would take a second of CPU time."""
    require_browser()
    if not _tabs:
        _tabs.append(browser().new_page())
    page = _tabs[0]
    page.set_default_timeout(30_000)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(
        media="print" if media == "print" else "screen",
        color_scheme="dark" if scheme == "dark" else "light",
    )
    seen = Seen(page, [], [], [], [])
    listeners: dict[Any, Callable[[Any], object]] = {
        "request": lambda each: seen.requests.append(each.url),
        "console": lambda each: seen.messages.append(each.text),
        "pageerror": lambda each: [kept.append(str(each)) for kept in (seen.messages, seen.errors)],
        "dialog": lambda each: (seen.dialogs.append(each.message), each.dismiss()),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield seen
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")


@contextmanager
def opened(
    path: Path, *, width: int = 1280, scheme: str = "light", media: str = "screen"
) -> Iterator[Seen]:
    """Open a file. Of its requests those count that no policy of its own has stopped."""
    left: list[str] = []

    def is_of_others(url: str) -> bool:
        return not url.startswith("file:")

    def refuse(route: Route) -> None:
        left.append(route.request.url)
        route.abort()

    with tab(width=width, scheme=scheme, media=media) as seen:
        seen.page.route(is_of_others, refuse)
        try:
            seen.page.goto(path.absolute().as_uri())
            yield seen._replace(requests=left)
        finally:
            seen.page.unroute(is_of_others)
