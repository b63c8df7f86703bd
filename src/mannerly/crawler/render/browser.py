"""One Chromium and its tabs: which page goes into which tab, and what happens if it dies.

A tab keeps its context, and shows pages of one site only: a new context for each page takes four
times as long. A page of another site gets a tab of its own, or that of a site which has none left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .devtools import BrowserClosed
from .tab import Tab, TabState

if TYPE_CHECKING:
    from .chromium import Chromium
    from .devtools import Event
    from .values import Rendered, RenderJob, RenderLimits, SubAnswer, SubRequest

_FREE = (TabState.IDLE, TabState.OPENING)


class Browser:
    """A Chromium that renders up to `tabs` pages at once.

    Attributes:
        pages: how many it was given.
        is_ready: it has answered.
    """

    def __init__(self, chromium: Chromium, limits: RenderLimits, tabs: int, now: float) -> None:
        self.chromium = chromium
        self._limits = limits
        self._most = tabs
        self._tabs: list[Tab] = []
        self._by_session: dict[str, Tab] = {}
        self._of_job: dict[int, Tab] = {}
        self.pages = 0
        self.started_at = now
        self.is_ready = False
        self.is_dead = False
        tools = chromium.devtools
        tools.send("Target.setDiscoverTargets", {"discover": True})
        tools.send("Browser.getVersion", then=lambda result: self._answered(result is not None))

    def _answered(self, is_well: bool) -> None:  # noqa: FBT001 - the reply to one command
        self.is_ready = is_well

    @property
    def jobs(self) -> list[RenderJob]:
        """Return the pages that it works on."""
        return [tab.job for tab in self._tabs if tab.job is not None]

    def start(self, job: RenderJob, now: float) -> bool:
        """Show a page; return False if there is no tab for it now.

        Raises:
            BrowserClosed: the browser has ended.
        """
        tab = self._tab_for(job.site, now)
        if tab is None:
            return False
        self.pages += 1
        self._of_job[job.number] = tab
        tab.start(job, now)
        return True

    def _tab_for(self, site: str, now: float) -> Tab | None:
        free = [tab for tab in self._tabs if tab.job is None and tab.state in _FREE]
        for tab in free:
            if tab.site == site:
                return tab
        if len(self._tabs) >= self._most:
            if not free:
                return None
            free[0].close(now)
            self._tabs.remove(free[0])
        tab = Tab(self.chromium.devtools, self._limits, site)
        self._tabs.append(tab)
        return tab

    def receive(self) -> None:
        """Take what the browser says.

        Raises:
            BrowserClosed: the browser has ended.
        """
        for event in self.chromium.devtools.receive():
            self._hear(event)

    def _hear(self, event: Event) -> None:
        values = event.values
        if event.method == "Target.targetCreated":
            self._opened(values["targetInfo"])
            return
        tab = self._tab_of(event.session)
        if event.method == "Target.attachedToTarget" and event.session and tab is not None:
            self._by_session[values["sessionId"]] = tab
            tab.attached(values["sessionId"], values["targetInfo"]["type"])
        elif event.method == "Target.detachedFromTarget":
            self._by_session.pop(values.get("sessionId", ""), None)
        elif tab is not None:
            tab.heard(event)

    def _tab_of(self, session: str) -> Tab | None:
        tab = self._by_session.get(session)
        if tab is None and session:
            tab = next((each for each in self._tabs if each.session == session), None)
            if tab is not None:
                self._by_session[session] = tab
        return tab

    def _opened(self, target: dict[str, object]) -> None:
        """Close what a page opens beside itself."""
        if target.get("type") == "page" and target.get("openerId"):
            values = {"targetId": target["targetId"]}
            self.chromium.devtools.send("Target.closeTarget", values)

    def asked(self) -> list[SubRequest]:
        """Return what pages have asked for since the last call."""
        found: list[SubRequest] = []
        for tab in self._tabs:
            if tab.asked:
                found += tab.asked
                tab.asked = []
        return found

    def answer(self, request: SubRequest, answer: SubAnswer) -> None:
        """Give a page what it has asked for."""
        tab = self._of_job.get(request.job)
        if tab is not None and tab.job is not None and tab.job.number == request.job:
            tab.answer(request.number, answer)

    def finished(self) -> list[Rendered]:
        """Return the results since the last call."""
        found = []
        for tab in self._tabs:
            if tab.finished is not None:
                found.append(tab.finished)
                self._of_job.pop(tab.finished.job, None)
                tab.finished = None
        return found

    def broken(self) -> list[RenderJob]:
        """Return the pages whose tab has died since the last call; they have no result."""
        dead = [tab for tab in self._tabs if tab.state is TabState.CLOSED]
        self._tabs = [tab for tab in self._tabs if tab.state is not TabState.CLOSED]
        lost = [tab.job for tab in dead if tab.job is not None]
        for job in lost:
            self._of_job.pop(job.number, None)
        gone = {id(tab) for tab in dead}
        self._by_session = {
            name: tab for name, tab in self._by_session.items() if id(tab) not in gone
        }
        return lost

    def tick(self, now: float) -> None:
        """Break off what takes too long.

        Raises:
            BrowserClosed: it does not answer at all.
        """
        for tab in self._tabs:
            tab.tick(now)
            if tab.is_stuck:
                raise BrowserClosed("a tab of it does not close")

    def kill(self) -> None:
        """End it."""
        self.is_dead = True
        self.chromium.kill()
