"""A page tries every way out that browsers have, and a canary counts what reaches it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.crawler.render.render_world import (
    HTML,
    SCRIPT,
    Site,
    canary,
    page,
    rendered,
    serving,
)
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.sites import Request

pytestmark = pytest.mark.processes

# Each is the body of a page; ORIGIN is that of the canary, HOST its host and port.
WAYS = {
    "fetch": "<script>fetch('ORIGIN/x'); fetch('ORIGIN/y', {mode: 'no-cors'})</script>",
    "metadata": "<script>fetch('http://169.254.169.254/latest/meta-data/')</script>",
    "post": "<script>fetch('ORIGIN/x', {method: 'POST', mode: 'no-cors', body: 'x'})</script>",
    "beacon": "<script>navigator.sendBeacon('ORIGIN/x', 'x')</script>",
    "later": "<script>try { fetchLater('ORIGIN/x') } catch {}</script>",
    "keepalive": "<script>fetch('ORIGIN/x', {keepalive: true, mode: 'no-cors'})</script>",
    "image": "<img src=ORIGIN/x><script>new Image().src = 'ORIGIN/y'</script>",
    "style": "<link rel=stylesheet href=ORIGIN/x>"
    "<style>@import 'ORIGIN/y'; body { background: url(ORIGIN/z) }</style>",
    "font": "<style>@font-face { font-family: f; src: url(ORIGIN/x) }"
    "body { font: 9px f }</style>text",
    "script": "<script src=ORIGIN/x></script><script type=module>import('ORIGIN/y')</script>",
    "media": "<video src=ORIGIN/x autoplay></video><audio src=ORIGIN/y preload=auto></audio>",
    "frame": "<iframe src=ORIGIN/x></iframe><object data=ORIGIN/y></object><embed src=ORIGIN/z>",
    "hints": "<link rel=preconnect href=ORIGIN><link rel=dns-prefetch href=ORIGIN>"
    "<link rel=prefetch href=ORIGIN/x><link rel=preload as=script href=ORIGIN/y>"
    "<link rel=modulepreload href=ORIGIN/z><link rel=prerender href=ORIGIN/w>",
    "speculation": '<script type=speculationrules>{"prefetch": [{"source": "list", "urls": '
    '["ORIGIN/x"]}], "prerender": [{"source": "list", "urls": ["ORIGIN/y", "/other"]}]}</script>',
    "websocket": "<script>new WebSocket('ws://HOST/x')</script>",
    "events": "<script>new EventSource('ORIGIN/x')</script>",
    "webtransport": "<script>try { new WebTransport('https://HOST/x') } catch {}</script>",
    "webrtc": "<script>const p = new RTCPeerConnection({iceServers: [{urls: 'stun:HOST'}, "
    "{urls: 'turn:HOST?transport=tcp', username: 'u', credential: 'c'}]});"
    "p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o))</script>",
    "worker": "<script>new Worker('/worker.js')</script>",
    "nested worker": "<script>new Worker('/nested.js')</script>",
    "shared worker": "<script>new SharedWorker('/worker.js');new SharedWorker('ORIGIN/x')</script>",
    "service worker": "<script>navigator.serviceWorker.register('/worker.js')</script>",
    "pop-up": "<script>window.open('ORIGIN/x'); window.open('about:blank', 'b')</script>"
    "<a id=a href=ORIGIN/y target=_blank>x</a><script>a.click()</script>",
    "form": "<form id=f action=ORIGIN/x method=post target=_blank></form>"
    "<script>f.submit()</script>",
    "download": "<a id=a href=ORIGIN/x download>x</a><script>a.click()</script>",
    "ping": "<a id=a href=/other ping=ORIGIN/x>x</a><script>a.click()</script>",
    "leaving": "<script>location = 'ORIGIN/x'</script>",
    "refresh": "<meta http-equiv=refresh content='0; url=ORIGIN/x'>",
    "redirect": "<script src=/redirect></script><script>fetch('/redirect')</script>",
    "frame redirect": "<iframe src=/redirect></iframe>",
    "data frame": '<iframe srcdoc="<img src=ORIGIN/x>'
    "<script>fetch('ORIGIN/y')</script>\"></iframe>",
    "payment": "<script>try { new PaymentRequest([{supportedMethods: 'ORIGIN/pay'}], {total: "
    "{label: 'x', amount: {currency: 'EUR', value: '1'}}}).canMakePayment() } catch {}</script>",
    "fedcm": "<script>try { navigator.credentials.get({identity: {providers: [{clientId: 'x', "
    "configURL: 'ORIGIN/x'}]}}) } catch {}</script>",
    "reporting": "<script>new ReportingObserver(() => 0); document.createElement('x')</script>",
    "manifest": "<link rel=manifest href=ORIGIN/x><link rel=icon href=ORIGIN/y>",
    "sheet worklet": "<script>try { CSS.paintWorklet.addModule('ORIGIN/x') } catch {}</script>",
    "xslt": "<script>const x = new XMLHttpRequest(); x.open('GET', 'ORIGIN/x'); x.send()</script>",
}
WORKER = "fetch('ORIGIN/x', {mode: 'no-cors'}); try { importScripts('ORIGIN/y') } catch {} new WebSocket('ws://HOST/z')"


def test_nothing_reaches_the_canary(tmp_path: Path) -> None:
    """No request and no socket, though the crawl renders every page; the site's own works."""
    links = "".join(f"<a href='/{number}'>{name}</a>" for number, name in enumerate(WAYS))
    with canary() as watched:
        origin, host = f"http://127.0.0.1:{watched.port}", f"127.0.0.1:{watched.port}"

        def told(text: str) -> str:
            return text.replace("ORIGIN", origin).replace("HOST", host)

        site = Site(
            {
                "/": (200, HTML, links),
                "/own.js": (200, SCRIPT, "document.title = 'its own script ran'"),
                "/worker.js": (200, SCRIPT, told(WORKER)),
                "/nested.js": (200, SCRIPT, "new Worker('/worker.js')"),
            }
            | {
                f"/{number}": page(told(body) + "<script src=/own.js></script>")
                for number, body in enumerate(WAYS.values())
            }
        )
        redirect = {"Location": origin + "/redirected"}

        def respond(request: Request) -> None:
            if request.path == "/redirect":
                request.answer(302, b"", redirect)
            else:
                site(request)

        with serving(respond) as own:
            pages = rendered(own, tmp_path, render_block="none", scope="host")

        assert watched.contacts == []
        with socket.create_connection(("127.0.0.1", watched.port)):
            eventually(lambda: len(watched.contacts) == 1)  # it does count
    shown = [path for path, each in pages.items() if each.title == "its own script ran"]
    left = [path for path, each in pages.items() if each.record.rendered and each.redirect_to]
    assert len(shown) + len(left) == len(WAYS)
