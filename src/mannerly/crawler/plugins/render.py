"""Rendering: pages that `--render` names are shown in a browser before they are read.

The page itself is fetched as any other. What a browser then makes of it takes the place of its
body, for all who read it afterwards; what the page asks for meanwhile are requests of the crawl
(`shard.subrequests`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Entry
from mannerly.crawler.page.html import is_html
from mannerly.crawler.page.shells import looks_like_shell
from mannerly.crawler.render.choice import PageChoice
from mannerly.crawler.shard.follows import Read, Render, Settled
from mannerly.crawler.shard.plugin import Plugin
from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.model import Fetched, Now, RobotsRequest
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.follows import Follows


class RenderPages(Plugin):
    """Has pages of a shard rendered."""

    def __init__(self, settings: CrawlSettings, folder: Path | None) -> None:
        self._choice = PageChoice(settings.render)
        self._pictures = None if folder is None else folder / "screenshots"
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
        content_type = answer.headers.get("content-type")
        if not answer.body or not is_html(content_type, answer.body):
            return follows
        if not self._choice.takes(item.url, partial(looks_like_shell, answer.body, content_type)):
            return follows
        selector = self._selectors.get(without_port(item.host)) or self._selectors.get(item.host)
        return Render(selector)

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest:
        """Keep the picture of a page."""
        picture = None if answer.rendering is None else answer.rendering.picture
        if picture is None or self._pictures is None:
            return found
        try:
            self._pictures.mkdir(mode=0o700, exist_ok=True)
            self._pictures.joinpath(picture_name(entry.url)).write_bytes(picture)
        except OSError as error:
            words = found.record.render_error or f"screenshot: {error.strerror}"
            return found._replace(record=found.record._replace(render_error=words))
        return found


def picture_name(url: str) -> str:
    """Return the name of the file with the picture of a page."""
    return f"{xxh3_128_hexdigest(url.encode())}.png"


def _host_and_selector(text: str) -> tuple[str, str]:
    """Return the parts of an entry of `--wait-for`."""
    host, _, selector = text.partition("=")
    return host.strip().lower(), selector.strip()
