"""Pages that hurt their browser: the crawl goes on, and the page's record says what happened."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawler.render.render_world import Site, page, rendered, serving
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.sites import Request

    from mannerly import Page

pytestmark = pytest.mark.processes

GOOD = page("<script>document.title = 'good'</script>")


def _browsers() -> list[int]:
    """Return the first process of each browser that this process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            is_child = int(stat.rpartition(")")[2].split()[1]) == os.getpid()
            if is_child and b"--remote-debugging-pipe" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _beside(bad: str) -> Site:
    """Return a site with a page that hurts between two good ones."""
    links = "<a href=/a>a</a><a href=/bad>bad</a><a href=/b>b</a>"
    return Site({"/": page(links), "/a": GOOD, "/bad": page(bad), "/b": GOOD})


@pytest.mark.parametrize(
    ("script", "errors"),
    [
        ("while (true) {}", {"timeout"}),
        pytest.param("while (true) alert('hello')", {"timeout"}, marks=pytest.mark.long),
        pytest.param(
            "const all = []; while (true) all.push(new Array(1e6).fill(Math.random()))",
            {"crashed", "timeout"},
            marks=pytest.mark.long,
        ),
        ("setInterval(() => { app.textContent = Date.now() }, 50)", {"timeout"}),
    ],
    ids=["endless", "alerts", "memory", "clock"],
)
def test_script_that_never_ends(script: str, errors: set[str], tmp_path: Path) -> None:
    """What is there is used; the other pages are rendered."""
    site = _beside(f"<p>before</p><script>{script}</script>")
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, render_timeout=3.0)

    bad = pages["/bad"]
    assert bad.record.render_error in errors
    assert "before" in bad.html
    assert {pages["/a"].title, pages["/b"].title} == {"good"}
    assert site.count("/bad") == 1


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)],
    ids=["killed", "frozen"],
)
def test_browser_that_dies_or_freezes(number: signal.Signals, tmp_path: Path) -> None:
    """Its pages are shown again in another one, and nothing is asked of the server twice."""
    waiting, hurt = threading.Event(), threading.Event()
    site = _beside("<script src=/slow.js></script><script>document.title = 'good'</script>")

    def respond(request: Request) -> None:
        if request.path == "/slow.js":
            waiting.set()
            hurt.wait(30.0)
            request.answer(200, b"", {"Content-Type": "text/javascript"})
        else:
            site(request)

    def hurts() -> None:
        waiting.wait(30.0)
        for process in _browsers():
            os.kill(process, number)
        hurt.set()

    thread = threading.Thread(target=hurts)
    thread.start()
    with serving(respond) as origin:
        pages = rendered(origin, tmp_path, render_timeout=2.0)
    thread.join()

    assert {pages[path].title for path in ("/a", "/b", "/bad")} == {"good"}
    assert site.count("/bad") == 1
    eventually(lambda: not _browsers())


def _much(count: int) -> str:
    return (
        "<script>const p = document.createElement('p'); p.textContent = 'x'.repeat(1000);"
        f"for (let n = 0; n < {count}; n++) app.append(p.cloneNode(true))</script>"
    )


def _many(count: int) -> str:
    return f"<script>for (let n = 0; n < {count}; n++) fetch('/api?' + n)</script>"


@pytest.mark.long
@pytest.mark.parametrize(
    ("bad", "check"),
    [
        (_much(20_000), lambda bad: bad.record.render_error == "too_large"),
        (_many(300), lambda bad: bad.record.requests == 300),
    ],
    ids=["large DOM", "many requests"],
)
def test_page_that_is_too_much(bad: str, check: Callable[[Page], bool], tmp_path: Path) -> None:
    """A DOM is cut at --max-bytes; requests are made one after the other."""
    with serving(_beside(bad)) as origin:
        pages = rendered(origin, tmp_path)

    assert check(pages["/bad"])
    assert {pages["/a"].title, pages["/b"].title} == {"good"}


@pytest.mark.long
def test_host_that_is_not_reached_costs_its_own_page(tmp_path: Path) -> None:
    """A page that asks a host which refuses connections is recorded, as are the others."""
    with serving(_beside("<script src=http://127.0.0.1:9/x.js></script><p>here</p>")) as origin:
        pages = rendered(origin, tmp_path, allow_net=["127.0.0.1:9"])

    assert "here" in pages["/bad"].html
    assert pages["/bad"].record.render_error is None
