"""Open a report in Debian's Chromium, by Playwright.

Tests that need it are skipped with a clear word where there is no browser; with CI=true they fail,
so that CI cannot pass without having looked.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Playwright, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
MISSING = "there is no Chromium: apt-get install chromium"


class Seen(NamedTuple):
    """What a page did while it was open."""

    page: Page
    requests: list[str]  # that left the browser
    messages: list[str]  # on the console, and errors
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
    while _running:
        playwright, started = _running.pop()
        started.close()
        playwright.stop()


@contextmanager
def opened(
    path: Path, *, width: int = 1280, scheme: str = "light", print_view: bool = False
) -> Iterator[Seen]:
    """Open a file, and note everything that it tries to do."""
    require_browser()
    context = browser().new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    seen = Seen(page, [], [], [])

    def refuse(route: Route) -> None:
        seen.requests.append(route.request.url)
        route.abort()

    context.route(lambda url: not url.startswith("file:"), refuse)
    page.on("console", lambda each: seen.messages.append(each.text))
    page.on("pageerror", lambda each: seen.messages.append(str(each)))
    page.on("dialog", lambda each: (seen.dialogs.append(each.message), each.dismiss()))
    if print_view:
        page.emulate_media(media="print")
    page.goto(path.absolute().as_uri())
    try:
        yield seen
    finally:
        context.close()
