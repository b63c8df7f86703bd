"""A browser that cannot be started, and a thread of browsers that fails: neither is waited for."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.shard.shard_world import ShardWorld, brisk

from mannerly.crawler.render.chromium import BrowserError, Chromium, Installed, IsolationKind
from mannerly.crawler.render.values import RenderLimits
from mannerly.crawler.runtime.browser_desk import BrowserDesk, BrowserPlan
from mannerly.crawler.runtime.rendering import Browsers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTHING = Installed("/nowhere/chromium", IsolationKind.PROXY, has_sandbox=True)
PLAN = BrowserPlan(NOTHING, RenderLimits(), tabs=1, memory=1 << 30)
HOME = "https://a.example/"


def failing_after(count: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that works a few times, until no descriptor is left."""
    calls = iter(range(count))

    def fail(*arguments: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return call(*arguments, **options)

    return fail


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        (tempfile, "TemporaryDirectory", 0),
        (tempfile, "TemporaryFile", 0),
        (os, "pipe", 0),
        (os, "pipe", 1),
        (fcntl, "fcntl", 0),
        (fcntl, "fcntl", 1),
        (os, "posix_spawnp", 0),
    ],
    ids=["folder", "log", "pipe", "second pipe", "end", "second end", "process"],
)
def test_a_browser_that_cannot_be_started_leaves_nothing_open(
    module: Any, name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it lacks is said as the error of a browser, which its callers expect."""
    before = set(Path("/proc/self/fd").iterdir())
    monkeypatch.setattr(module, name, failing_after(count, getattr(module, name)))

    with pytest.raises(BrowserError, match="cannot be started"):
        Chromium(NOTHING)

    assert set(Path("/proc/self/fd").iterdir()) == before


@pytest.fixture
def browsers() -> Iterator[Browsers]:
    made = Browsers(PLAN, lambda _host: 0)
    yield made
    made.close()


def test_the_error_of_the_thread_is_raised_in_the_loop(
    browsers: Browsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl ends with it: its pages would never be finished."""

    def fail(_desk: BrowserDesk) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(BrowserDesk, "_turn", fail)
    settings = brisk(ignore_robots=True, render=("all",))
    world = ShardWorld(HOME, settings=settings, renderer=browsers)
    (request,) = world.start()
    world.answer(request, 200, body=b"<p>text", content_type="text/html")
    select.select([browsers.descriptor], [], [])

    with pytest.raises(RuntimeError, match="a mistake"):
        browsers.collect()
