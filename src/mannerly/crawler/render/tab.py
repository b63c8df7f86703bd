"""One tab: it shows the pages of one site, one after the other, and reads their final DOM.

    opening ──► idle ──start──► loading ──► running ──► reading ──► clearing ──► idle
                                  │           │ ▲
                                  │           └─┘ the page came not to rest yet: more time
                                  └── its document is the answer that the crawl has

**Time.** The page's clock is ours (`Emulation.setVirtualTimePolicy`): it stands still while a
request of the page waits in the crawl's queue, and jumps over what the page would only wait for.
So a timer of two seconds costs nothing, and a slow pace does not use the page's time up. The page
is given `QUIET_S` at a time. It is finished when it has neither asked for anything nor changed
itself for as long. A page that never rests (a poller) is read when its time is up.

**Real time** is limited beside that, because a script without an end stops the page's clock. Then
the script is broken off and the DOM is read; a tab that does not answer after that is closed.

**Requests.** Each is paused by the browser and is answered from outside (`answer`), at every hop of
a redirect. The main document is answered with what the crawl has fetched; a second one means that
the page leaves, which is noted and not done. Whatever is no GET is refused and counted.

This module is long because the states of a page share all that is known of it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from enum import Enum, auto
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from .page_scripts import FORGET, IN_PAGE, INSPECT, OBSERVE, READ, WORLD
from .values import CUT, HUNG, NO_SELECTOR, OTHER_PROCESS, TIMEOUT, Rendered, SubRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .devtools import DevTools, Event, Values
    from .values import RenderJob, RenderLimits, SubAnswer

QUIET_S = 5.0  # of the page's time, without a request and without a change
STEP_S = 0.25  # of the page's time, between two looks whether a selector matches
READ_S = 10.0  # of real time, for the DOM to be read
CLEAR_S = 5.0  # of real time, for a tab to be closed

# Kinds of requests that a page cannot need to be shown, or that do not end.
_NEVER = frozenset({"prefetch", "ping", "cspviolationreport", "signedexchange", "fedcm"})
_STREAMS = frozenset({"websocket", "eventsource"})
# Set by the crawl's own client.
_OURS = frozenset({"user-agent", "accept-encoding", "cookie", "host", "connection", "range"})
_NOT_PASSED = ("sec-", "proxy-", "upgrade-insecure", "x-devtools")
# Of the crawl's connection, or true of the body before it was decoded.
_OF_TRANSPORT = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"}
)


class TabState(Enum):
    """The step that a tab is at."""

    OPENING = auto()
    IDLE = auto()
    LOADING = auto()  # until the document is there
    RUNNING = auto()
    READING = auto()
    CLEARING = auto()
    CLOSING = auto()
    CLOSED = auto()


class Tab:
    """One tab in a context of its own.

    Attributes:
        site: the pages that it may show.
        finished: the result of its page, until it is taken.
        asked: what its page asks for, until it is taken.
        is_stuck: it did not even close, so its browser must end.
    """

    def __init__(self, tools: DevTools, limits: RenderLimits, site: str) -> None:
        self._tools = tools
        self._limits = limits
        self.site = site
        self.state = TabState.OPENING
        self.session = self.target = self._context = ""
        self.finished: Rendered | None = None
        self.asked: list[SubRequest] = []
        self.job: RenderJob | None = None
        self.is_stuck = False
        self._numbers = 0
        self._reset()
        tools.send("Target.createBrowserContext", {"disposeOnDetach": True}, then=self._in_context)

    def _reset(self) -> None:
        self._pending: dict[int, tuple[str, str]] = {}  # session and name of paused requests
        self._urls: list[str] = []
        self._refused = 0
        self._asked_lately = 0
        self._lacks = False  # something that another process of the crawl would have to fetch
        self._error: str | None = None
        self._left_for: str | None = None
        self._is_document_given = False
        self._spent_s = self._granted_s = 0.0
        self._waits = False
        self._busy_s = 0.0  # real time in which it waited for nothing
        self._seen_at = 0.0
        self._until: float | None = None  # real time; then a tab that does not answer is closed
        self._html: bytes | None = None
        self._picture: bytes | None = None
        self._origins: set[str] = set()

    # ------------------------------------------------------------------ opening

    def _in_context(self, result: Values | None) -> None:
        if result is None:
            self._broke()
            return
        self._context = result["browserContextId"]
        self._tools.send(
            "Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": self._context}
        )
        self._tools.send(
            "Target.createTarget",
            {"url": "about:blank", "browserContextId": self._context},
            then=self._has_target,
        )

    def _has_target(self, result: Values | None) -> None:
        if result is None:
            self._broke()
            return
        self.target = result["targetId"]
        values = {"targetId": self.target, "flatten": True}
        self._tools.send("Target.attachToTarget", values, then=self._is_attached)

    def _is_attached(self, result: Values | None) -> None:
        if result is None:
            self._broke()
            return
        self.session = result["sessionId"]
        self._send("Page.enable")
        self._prepare(self.session)
        scripts = ({"source": IN_PAGE}, {"source": OBSERVE, "worldName": WORLD})
        for script in scripts:
            self._send("Page.addScriptToEvaluateOnNewDocument", script)
        self._send("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"}, self._is_ready)

    def _is_ready(self, _result: Values | None) -> None:
        if self.state is TabState.OPENING:
            self.state = TabState.IDLE
            if self.job is not None:
                self._navigate(self.job)

    def _prepare(self, session: str) -> None:
        """Have every request of a target paused, and every target that it opens attached."""
        send = self._tools.send
        send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session)
        sizes = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 65536}
        send("Network.enable", sizes, session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        send("Target.setAutoAttach", attach, session)

    def attached(self, session: str, kind: str) -> None:
        """A target that belongs to its page was opened: a frame of another site, or a worker."""
        if kind == "iframe":
            self._tools.send("Page.enable", {}, session)
            script = {"source": IN_PAGE}
            self._tools.send("Page.addScriptToEvaluateOnNewDocument", script, session)
        self._prepare(session)
        self._tools.send("Runtime.runIfWaitingForDebugger", {}, session)

    def _send(self, method: str, values: Values | None = None, then: Any = None) -> None:
        self._tools.send(method, values, self.session, then)

    # ------------------------------------------------------------------ a page

    def start(self, job: RenderJob, now: float) -> None:
        """Show a page."""
        assert self.job is None
        assert self.state in (TabState.IDLE, TabState.OPENING)
        self._reset()
        self.job, self._seen_at = job, now
        if self.state is TabState.IDLE:
            self._navigate(job)

    def _navigate(self, job: RenderJob) -> None:
        self.state = TabState.LOADING
        self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"})
        self._send("Page.navigate", {"url": job.url})

    def heard(self, event: Event) -> None:
        """Take an event of one of its sessions."""
        values = event.values
        match event.method:
            case "Fetch.requestPaused":
                self._paused(values, event.session)
            case "Page.frameNavigated":
                frame = values["frame"]
                if "parentId" not in frame and self.state is TabState.LOADING:
                    self._is_shown(frame)
            case "Emulation.virtualTimeBudgetExpired":
                if self.state is TabState.RUNNING and event.session == self.session:
                    self._spent_s += self._granted_s
                    self._inspect()
            case "Network.webSocketCreated":
                self._refused += 1
            case "Page.javascriptDialogOpening":
                self._tools.send("Page.handleJavaScriptDialog", {"accept": False}, event.session)
            case "Inspector.targetCrashed":
                if event.session == self.session:
                    self._broke()

    def _is_shown(self, frame: Values) -> None:
        if frame.get("unreachableUrl") or not self._is_document_given:
            return
        self.state = TabState.RUNNING
        self._grant(STEP_S if self._job.wait_for else QUIET_S)

    @property
    def _job(self) -> RenderJob:
        assert self.job is not None
        return self.job

    def _grant(self, seconds: float) -> None:
        """Let the page's clock go on."""
        self._granted_s = min(seconds, max(0.01, self._limits.page_s - self._spent_s))
        self._asked_lately = 0
        self._waits = False
        policy = "pauseIfNetworkFetchesPending"
        budget = {"policy": policy, "budget": self._granted_s * 1000.0}
        self._send("Emulation.setVirtualTimePolicy", budget)

    def _inspect(self) -> None:
        """Ask whether the page has come to rest."""
        selector = msgspec.json.encode(self._job.wait_for).decode()
        self._evaluate(INSPECT % selector, self._inspected)

    def _inspected(self, value: object) -> None:
        if self.state is not TabState.RUNNING:
            return
        idle_s, is_found = self._limits.page_s, True
        if isinstance(value, list) and len(value) == 2:
            idle_s, is_found = float(value[0]) / 1000.0, bool(value[1])
        is_out_of_time = self._spent_s >= self._limits.page_s
        if self._left_for is not None:
            self._read(None)
        elif self._job.wait_for is not None:
            if is_found and not self._pending:
                self._read(None)
            elif is_out_of_time:
                self._read(NO_SELECTOR)
            else:
                self._go_on(STEP_S)
        elif is_out_of_time:
            self._read(TIMEOUT)
        elif self._asked_lately:
            self._go_on(QUIET_S)
        elif idle_s < QUIET_S * 0.98:
            self._go_on(max(0.1, QUIET_S - idle_s))
        elif self._pending:
            self._go_on(STEP_S)
        else:
            self._read(None)

    def _go_on(self, seconds: float) -> None:
        if self._pending:
            self._waits = True  # for requests of workers the page's clock does not stop
        else:
            self._grant(seconds)

    def _evaluate(self, script: str, then: Any) -> None:
        """Run a script in a world that the page cannot reach; `then` gets its value or None."""

        def ran(result: Values | None) -> None:
            value = None if result is None else result.get("result", {}).get("value")
            then(value)

        def has_world(result: Values | None) -> None:
            if result is None:
                then(None)
                return
            values = {
                "expression": script,
                "contextId": result["executionContextId"],
                "returnByValue": True,
            }
            self._send("Runtime.evaluate", values, ran)

        self._send(
            "Page.createIsolatedWorld", {"frameId": self.target, "worldName": WORLD}, has_world
        )

    def _read(self, error: str | None) -> None:
        """Read the final DOM."""
        self._error = self._error or error
        self.state = TabState.READING
        self._until = self._seen_at + READ_S
        self._evaluate(READ % self._limits.max_bytes, self._has_dom)

    def _has_dom(self, value: object) -> None:
        if self.state is not TabState.READING:
            return
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
            self._html = value[0].encode("utf-8", "replace")[: self._limits.max_bytes]
            if value[1]:
                self._error = self._error or CUT
        if self._limits.takes_picture:
            self._send("Page.captureScreenshot", {"format": "png"}, self._has_picture)
        else:
            self._finish()

    def _has_picture(self, result: Values | None) -> None:
        if self.state is TabState.READING:
            if result is not None:
                self._picture = b64decode(result["data"])
            self._finish()

    def _finish(self) -> None:
        """Hand the result over, and forget all of this page."""
        job, self.job = self._job, None
        self.finished = Rendered(
            job.number,
            self._html,
            round(self._busy_s, 3),
            tuple(self._urls),
            self._refused,
            self._error or (OTHER_PROCESS if self._lacks else None),
            self._left_for,
            self._picture,
        )
        self._drop_pending()
        self.state = TabState.CLEARING
        self._until = self._seen_at + CLEAR_S
        if job.host in self._limits.keeps_session:
            self._is_cleared(None)
            return
        self._evaluate(FORGET, self._has_forgotten)

    def _has_forgotten(self, _value: object) -> None:
        for origin in self._origins:
            values = {"origin": origin, "storageTypes": "all"}
            self._send("Storage.clearDataForOrigin", values)
        self._tools.send(
            "Storage.clearCookies", {"browserContextId": self._context}, then=self._is_cleared
        )

    def _is_cleared(self, _result: Values | None) -> None:
        if self.state is TabState.CLEARING:
            self.state, self._until = TabState.IDLE, None

    # ------------------------------------------------------------------ requests

    def _paused(self, values: Values, session: str) -> None:
        asked, name = values["request"], values["requestId"]
        kind = values.get("resourceType", "Other").lower()
        url = asked["url"]
        if (
            self.job is None
            or self.state not in (TabState.LOADING, TabState.RUNNING)
            or not url.startswith(("http://", "https://"))
        ):
            self._fail(session, name)
        elif kind == "document" and values.get("frameId") == self.target:
            self._navigates(asked, session, name)
        else:
            self._wants(asked, kind, session, name)

    def _navigates(self, asked: Values, session: str, name: str) -> None:
        """The page itself: first the answer that is known, afterwards it wants to leave."""
        job = self._job
        self._origins.add(_origin(asked["url"]))
        if not self._is_document_given:
            self._is_document_given = True
            self._fulfil(session, name, job.status, job.headers, job.body)
            return
        if asked["method"] != "GET":
            self._refused += 1
        elif _same_page(asked["url"], job.url):
            pass  # it loads itself again
        elif self._left_for is None:
            self._left_for = asked["url"]
        self._fail(session, name)

    def _wants(self, asked: Values, kind: str, session: str, name: str) -> None:
        url, method, headers = asked["url"], asked["method"], asked.get("headers", {})
        accepts = next((text for key, text in headers.items() if key.lower() == "accept"), "")
        if kind == "other" and accepts.startswith("image/"):
            kind = "image"  # an icon
        host = urlsplit(url).hostname or ""
        is_post = method == "POST" and kind in ("xhr", "fetch") and host in self._limits.posts_to
        if kind in _STREAMS or (method != "GET" and not is_post):
            self._refused += 1
            self._fail(session, name, "BlockedByClient")
            return
        if kind in _NEVER or kind in self._limits.blocked:
            self._fail(session, name, "BlockedByClient")
            return
        if kind == "document":
            self._origins.add(_origin(url))
        self._numbers += 1
        self._pending[self._numbers] = (session, name)
        self._asked_lately += 1
        self._urls.append(url)
        passed = tuple((key, text) for key, text in headers.items() if _is_passed(key))
        body = asked.get("postData", "").encode() if is_post else b""
        job = self._job
        self.asked.append(
            SubRequest(self._numbers, job.number, job.url, url, kind, method, passed, body)
        )

    def answer(self, number: int, answer: SubAnswer) -> None:
        """Give the page what it has asked for."""
        paused = self._pending.pop(number, None)
        if paused is None:
            return
        session, name = paused
        if answer.reason == OTHER_PROCESS:
            self._lacks = True
        if answer.status is None:
            self._fail(session, name, "Failed")
        else:
            self._fulfil(session, name, answer.status, answer.headers, answer.body)
        if self._waits and not self._pending and self.state is TabState.RUNNING:
            self._grant(STEP_S)

    def _fulfil(
        self, session: str, name: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        given = [
            {"name": key, "value": text}
            for key, text in headers.items()
            if key not in _OF_TRANSPORT
        ]
        values = {
            "requestId": name,
            "responseCode": status,
            "responseHeaders": given,
            "body": b64encode(body).decode(),
        }
        self._tools.send("Fetch.fulfillRequest", values, session)

    def _fail(self, session: str, name: str, reason: str = "Aborted") -> None:
        self._tools.send("Fetch.failRequest", {"requestId": name, "errorReason": reason}, session)

    def _drop_pending(self) -> None:
        for session, name in self._pending.values():
            self._fail(session, name)
        self._pending.clear()
        self.asked.clear()

    # ------------------------------------------------------------------ time, and the end

    def tick(self, now: float) -> None:
        """Break off what takes too long."""
        passed_s, self._seen_at = now - self._seen_at, now
        if self.state in (TabState.LOADING, TabState.RUNNING) and not self._pending:
            self._busy_s += passed_s
            if self._left_for is not None:
                self._read(None)
            elif self._busy_s > self._limits.wall_s:
                self._error = TIMEOUT
                self._send("Runtime.terminateExecution")
                self._read(None)
        elif self.state is TabState.READING:
            self._busy_s += passed_s
        if self._until is not None and now > self._until:
            self._until = None
            if self.state is TabState.READING:
                self._error, self._html = HUNG, None
                self._give_up()
            elif self.state is TabState.CLEARING:
                self.close(now)
            else:
                self.is_stuck = True

    def _give_up(self) -> None:
        """Hand over a page without a DOM; the tab does not answer."""
        self._finish()
        self.close(self._seen_at)

    def close(self, now: float) -> None:
        """Close the tab and its context."""
        if self.state not in (TabState.CLOSING, TabState.CLOSED):
            self.state = TabState.CLOSING
            self._until = now + CLEAR_S
            values = {"browserContextId": self._context}
            self._tools.send("Target.disposeBrowserContext", values, then=self._is_closed)

    def _is_closed(self, _result: Values | None) -> None:
        self.state, self._until = TabState.CLOSED, None

    def _broke(self) -> None:
        """The tab has crashed: its page has no result here."""
        self.state = TabState.CLOSED


def _is_passed(header: str) -> bool:
    """Return whether a header of the page goes to the server, too."""
    name = header.lower()
    return name not in _OURS and not name.startswith(_NOT_PASSED)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _same_page(url: str, other: str) -> bool:
    return url.partition("#")[0] == other.partition("#")[0]
