"""Rendering: pages that `--render` names are shown in a browser before they are read.

The page itself is fetched as any other. What a browser then makes of it takes the place of its
body, for all who read it afterwards; what the page asks for meanwhile are requests of the crawl
(`shard.subrequests`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry
from mannerly.crawler.page.html import is_html
from mannerly.crawler.render.choice import PageChoice
from mannerly.crawler.shard.follows import Read, Render, Settled
from mannerly.crawler.shard.plugin import Plugin
from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from mannerly.crawler.model import Fetched, Now, RobotsRequest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.follows import Follows


class RenderPages(Plugin):
    """Has pages of a shard rendered."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._choice = PageChoice(settings.render)
        self._selectors = dict(_host_and_selector(each) for each in settings.wait_for)

    def after_answer(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Have a page shown that is complete, and that was chosen."""
        if not isinstance(item, Entry) or not isinstance(follows, Settled | Read):
            return follows
        status = answer.status
        if status is None or not 200 <= status < 300 or not KINDS[item.kind].is_page:
            return follows
        if isinstance(follows, Settled) and follows.failure is not None:
            return follows
        is_page = is_html(answer.headers.get("content-type"), answer.body)
        if not is_page or not answer.body or not self._choice.takes(item.url, answer.body):
            return follows
        selector = self._selectors.get(without_port(item.host)) or self._selectors.get(item.host)
        return Render(selector)


def _host_and_selector(text: str) -> tuple[str, str]:
    """Return the parts of an entry of `--wait-for`."""
    host, _, selector = text.partition("=")
    return host.strip().lower(), selector.strip()
