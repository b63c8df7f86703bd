"""Sites of six kinds that are empty without a browser: their pages are what a person sees."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.crawler.render.render_world import CHROMIUM, HTML, Site, data, page, rendered, serving
from tests.harness.commands import run
from tests.harness.programs import program
from warcio.archiveiterator import ArchiveIterator

import mannerly
from mannerly.exports.handle import kept_page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.render.render_world import Answer
    from tests.harness.sites import Request

pytestmark = pytest.mark.processes

LINKS = """function show(links) {
  for (const [href, text] of links) {
    const a = document.createElement('a');
    a.href = href; a.textContent = text;
    app.append(a);
  }
}"""


def _script(text: str) -> Answer:
    return page(f"<script>{LINKS}\n{text}</script>")


def test_infinite_list_by_url(tmp_path: Path) -> None:
    """Each part of the list has a URL of its own, which the part before links to."""
    text = """fetch('/api' + location.search).then(r => r.json()).then(n => {
      document.title = 'Part ' + n; if (n < 3) show([['/list?part=' + (n + 1), 'more']]) })"""

    def respond(request: Request) -> None:
        if request.path.startswith("/api"):
            part = request.path.partition("part=")[2] or "0"
            request.answer(200, part, {"Content-Type": "application/json"})
        elif request.path == "/" or request.path.startswith("/list"):
            request.answer(200, _script(text)[2], {"Content-Type": HTML})
        else:
            request.answer(404)

    with serving(respond) as origin:
        pages = rendered(origin, tmp_path)

    assert {path: each.title for path, each in pages.items()} == {
        "/": "Part 0",
        "/list?part=1": "Part 1",
        "/list?part=2": "Part 2",
        "/list?part=3": "Part 3",
    }


def test_slow_api_takes_none_of_the_page_s_time(tmp_path: Path) -> None:
    """The page has one second; its requests wait for longer than that in the host's pace."""
    text = """(async () => { const seen = [];
      for (const n of [1, 2, 3]) seen.push(await (await fetch('/api/' + n)).json());
      document.title = seen.join(' ') })()"""
    site = Site({"/": _script(text), "/api/1": data("a"), "/api/2": data("b"), "/api/3": data("c")})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, pacing=True, delay=0.5, render_timeout=1.0)

    assert pages["/"].title == "a b c"


def test_hash_routes_are_one_page(tmp_path: Path) -> None:
    """A route behind a # is no URL; links of the route that is shown are followed."""
    text = """const routes = {'': [['#/tea', 'tea'], ['/real', 'real']], '#/tea': []};
      const draw = () => { app.textContent = ''; show(routes[location.hash] || []) };
      addEventListener('hashchange', draw); draw();"""
    site = Site({"/": _script(text), "/real": page("<p>real</p>", title="Real")})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert sorted(pages) == ["/", "/real"]
    assert site.count("/") == 1


def test_content_that_comes_late(tmp_path: Path) -> None:
    """Two timers of two seconds, one after the other."""
    text = """setTimeout(() => { show([['/a', 'a']]);
      setTimeout(() => show([['/b', 'b']]), 2000) }, 2000)"""
    site = Site({"/": _script(text), "/a": page("a"), "/b": page("b")})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert sorted(pages) == ["/", "/a", "/b"]


def test_poller_ends_when_its_time_is_up(tmp_path: Path) -> None:
    """Its DOM is used as it is then, and the record says so."""
    text = """let n = 0; setInterval(() => fetch('/api').then(() => {
      document.title = 'poll ' + ++n }), 500)"""
    site = Site({"/": _script(text), "/api": data(1)})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, render_timeout=4.0)

    assert pages["/"].record.render_error == "timeout"
    assert pages["/"].title is not None
    assert 6 <= site.count("/api") <= 9


def test_selector_that_is_waited_for(tmp_path: Path) -> None:
    """A page is finished when it matches; one that never does is recorded, and says so."""
    text = "setInterval(() => fetch('/api'), 400); setTimeout(() => show([['/a', 'a']]), 1500)"
    site = Site({"/": _script(text), "/a": page("a"), "/api": data(1)})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, wait_for=["127.0.0.1=a[href]"], render_timeout=5.0)

    assert pages["/"].record.render_error is None
    assert site.count("/api") < 8
    assert pages["/a"].record.render_error == "wait_for"
    assert pages["/a"].status == 200


def test_posts_are_refused_and_counted_unless_they_are_allowed(tmp_path: Path) -> None:
    """A WebSocket is refused in any case."""
    text = """new WebSocket('ws://' + location.host + '/ws');
      fetch('/api', {method: 'POST', body: 'q=tea'}).then(r => r.json())
        .then(v => document.title = v, () => document.title = 'refused')"""
    site = Site({"/": _script(text), "/api": data("found")})
    with serving(site) as origin:
        refused = rendered(origin, tmp_path / "1")["/"]
        allowed = rendered(origin, tmp_path / "2", render_post=["127.0.0.1"])["/"]

    assert (refused.title, refused.record.render_refused) == ("refused", 2)
    assert (allowed.title, allowed.record.render_refused) == ("found", 1)
    assert site.log.count("POST /api") == 1


def test_pages_see_nothing_of_each_other_without_a_session(tmp_path: Path) -> None:
    """Cookies and storage of a page are gone for the next one."""
    text = """const seen = [document.cookie, localStorage.x, sessionStorage.x, window.name];
      document.title = seen.some(Boolean) ? 'seen' : 'clean';
      document.cookie = 'x=1'; localStorage.x = sessionStorage.x = window.name = '1';
      show([['/a', 'a'], ['/b', 'b']])"""
    site = Site({"/": _script(text), "/a": _script(text), "/b": _script(text)})
    with serving(site) as origin:
        apart = rendered(origin, tmp_path / "1", render_tabs=1)
        kept = rendered(origin, tmp_path / "2", render_tabs=1, render_session=["127.0.0.1"])

    assert [each.title for each in apart.values()] == ["clean"] * 3
    assert sorted(each.title or "" for each in kept.values()) == ["clean", "seen", "seen"]


def test_script_that_leaves_makes_a_redirect(tmp_path: Path) -> None:
    """Its target goes back to the queue."""
    site = Site({"/": _script("location = '/home'"), "/home": page("home", title="Home")})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert pages["/"].redirect_to == origin + "/home"
    assert pages["/home"].title == "Home"


def test_raw_html_is_the_answer(tmp_path: Path) -> None:
    """`html` is the final DOM."""
    site = Site({"/": _script("document.title = 'done'")})
    with serving(site) as origin:
        shown = rendered(origin, tmp_path)["/"]

    assert "<title>done</title>" in shown.html
    assert shown.raw_html == site.answers["/"][2]


def test_picture_is_kept(tmp_path: Path) -> None:
    """A PNG beside the page, with its images."""
    site = Site({"/": page("<img src=/i.png><h1>Tea</h1>")})
    with serving(site) as origin:
        shown = rendered(origin, tmp_path, screenshot=True)["/"]

    assert shown.record.render_error is None
    (picture,) = (tmp_path / "crawl" / "screenshots").iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert site.count("/i.png") == 1


def test_text_in_shadow_roots_is_read(tmp_path: Path) -> None:
    """With slots filled, as a person sees it."""
    text = """const host = document.createElement('div'); host.innerHTML = '<b>slotted</b>';
      host.attachShadow({mode: 'open'}).innerHTML = '<a href=/in>inside</a><slot></slot>';
      app.append(host)"""
    site = Site({"/": _script(text), "/in": page("in")})
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert sorted(pages) == ["/", "/in"]
    assert "<b>slotted</b>" in pages["/"].html


def test_answers_that_are_alike_are_no_challenge(tmp_path: Path) -> None:
    """Shells and empty lists have the same bytes for every URL; each is asked for once."""
    text = "fetch('/api' + location.pathname).then(r => r.json()).then(show)"
    links = [[f"/{name}", name] for name in "abcdefgh"]
    site = Site(
        {f"/{name}": _script(text) for name in "abcdefgh"}
        | {f"/api/{name}": data([]) for name in "abcdefgh"}
        | {"/": _script(text), "/api/": data(links)}
    )
    with serving(site) as origin:
        pages = rendered(origin, tmp_path)

    assert len(pages) == 9
    assert max(site.count(f"/api/{name}") for name in "abcdefgh") == 1


def test_pages_in_browsers_leave_room_for_their_requests(tmp_path: Path) -> None:
    """As many pages as --concurrency allows are shown at once, and each of them asks."""
    text = "fetch('/api' + location.pathname).then(r => r.json()).then(t => document.title = t)"
    names = "abcd"
    links = "".join(f"<a href=/{name}>{name}</a>" for name in names)
    site = Site(
        {f"/{name}": _script(text) for name in names}
        | {f"/api/{name}": data(f"page {name}") for name in names}
        | {"/": page(links)}
    )
    with serving(site) as origin:
        pages = rendered(origin, tmp_path, concurrency=2, duration=60.0)

    assert [pages[f"/{name}"].title for name in names] == [f"page {name}" for name in names]


def test_requests_of_pages_are_counted_and_archived(tmp_path: Path) -> None:
    """As requisites; those that fail, too."""
    text = "fetch('/api').then(r => r.json()).then(t => document.title = t); fetch('/none')"
    site = Site({"/": _script(text), "/api": data("tea in the archive")})
    program(*CHROMIUM)
    options = ["--render", "all", "--no-pacing", "--data-dir", tmp_path / "crawl", "--keep-bodies"]
    options += ["--browser-no-sandbox"] if os.geteuid() == 0 else []
    with serving(site) as origin:
        ended = run("crawl", origin + "/", *options, "-o", tmp_path / "all.warc.gz")

    assert ended.returncode == 0, ended.stderr
    said = " ".join(ended.stderr.split())
    assert "2 files that pages need to be shown, 1 of them failed" in said
    archive = gzip.decompress((tmp_path / "all.warc.gz").read_bytes())
    for path in ("", "api", "none"):
        assert archive.count(f"WARC-Target-URI: {origin}/{path}\r\n".encode()) == 2, path
    assert b"tea in the archive" in archive


def test_kept_pages_are_as_they_were_shown(tmp_path: Path) -> None:
    """Handlers that run later and exports read the final DOM; the answer is kept, too."""
    answer = _script("document.title = 'Shown'; app.textContent = 'of a script'")
    with serving(Site({"/": answer})) as origin:
        page = rendered(origin, tmp_path, keep_bodies=True)["/"]

    with mannerly.open(tmp_path / "crawl") as crawl, crawl.view() as view:
        kept = kept_page(view, f"{origin}/")
    for given in (["pages.jsonl", "--content", "text"], ["pages.warc.gz"]):
        done = run("export", "crawl", "-q", "-o", *given, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with (tmp_path / "pages.warc.gz").open("rb") as file:
        found = {
            record.rec_type: record.content_stream().read()
            for record in ArchiveIterator(file)
            if record.rec_type != "warcinfo"
            if record.rec_headers.get_header("WARC-Target-URI").endswith(f"{origin}/")
        }

    assert kept is not None
    assert kept.html == page.html
    assert kept.headers["content-type"] == "text/html; charset=utf-8"
    assert "of a script" in (tmp_path / "pages.jsonl").read_text()
    assert found["response"] == answer[2].encode()
    assert set(found) == {"response", "request", "conversion"}


def test_handlers_that_run_again_get_what_was_shown(tmp_path: Path) -> None:
    """Without a request: `retry --failed-handlers` reads the kept final DOM."""
    handler = tmp_path / "late.py"
    code = "def found(page):\n    {}\n    return {{'text': page.select_one('#app').text}}\n"
    handler.write_text(code.format("assert 0"))
    site = Site({"/": _script("app.textContent = 'of a script'")})
    with serving(site) as origin:
        rendered(origin, tmp_path, keep_bodies=True, extract=f"{handler}:found")
        handler.write_text(code.format("pass"))
        again = run("retry", "crawl", "--failed-handlers", "-q", cwd=tmp_path)
    items = run("export", "crawl", "-q", "-o", "items:items.jsonl", cwd=tmp_path)

    assert again.returncode == items.returncode == 0, again.stderr + items.stderr
    assert json.loads((tmp_path / "items.jsonl").read_text()) == {"text": "of a script"}
    assert site.count("/") == 1
