"""Requisites: what a page needs to be shown is asked for, too (`page.requisites`).

They join the batch of their page: a page that is recorded has its requisites queued. Each is asked
for once in a crawl. Those that were passed on lately are left out here, because the pages of a site
have most of them in common; the store knows all of them.

What a browser was given while it showed a page (`render`) is left out, too, and what its
stylesheets need joins the batch of that page. What it asked for and was not given is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Candidate, Entry
from mannerly.crawler.page.html import is_html
from mannerly.crawler.page.long_work import is_long_page
from mannerly.crawler.page.parsed import ParseFailed
from mannerly.crawler.page.requisites import CAPPED, Needed, read_file, read_page, requisite
from mannerly.crawler.shard.follows import Settled
from mannerly.crawler.shard.plugin import HelperWork, Plugin
from mannerly.crawler.web.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Fetched, Now, RobotsRequest
    from mannerly.crawler.page.record import Harvest
    from mannerly.crawler.shard.follows import Follows

REMEMBERED = 10_000  # files that a browser was given: some MB


class Requisites(Plugin):
    """Asks for what pages need to be shown."""

    def __init__(self) -> None:
        self._recent = Recent()
        # What a browser has asked for in this shard, with what each file needs; None: it failed.
        self._of_browser: OrderedDict[str, list[str] | None] = OrderedDict()

    def after_answer(
        self, item: Entry | RobotsRequest, answer: Fetched, follows: Follows, now: Now
    ) -> Follows:
        """Note what a browser was given, which is in no queue."""
        is_of_browser = isinstance(item, Entry) and item.seq < 0
        if is_of_browser and isinstance(follows, Settled) and answer.request.method == "GET":
            if answer.status is None:
                self._of_browser.setdefault(item.url, None)
            else:
                found = read_file(answer.body, answer.headers.get("content-type"), item.url)
                self._of_browser[item.url] = found.urls
            if len(self._of_browser) > REMEMBERED:
                self._of_browser.popitem(last=False)
        return follows

    def after_reading(self, entry: Entry, answer: Fetched, found: Harvest) -> Harvest | HelperWork:
        """Add the requisites of a page, or of a stylesheet; a long page is read elsewhere."""
        row, status = KINDS[entry.kind], answer.status
        if row.is_requisite:
            return found._replace(requests=self._new(found.requests))
        if not row.is_page or status is None or not 200 <= status < 300:
            return found
        content_type = answer.headers.get("content-type")
        if found.is_unchanged or not is_html(content_type, answer.body):
            return found
        work = partial(read_page, answer.body, content_type, entry.url)
        finish = partial(self._with_needed, entry, answer.requisites)
        if is_long_page(answer.body):
            return HelperWork(work, finish, is_users=False)
        return finish(found, work())

    def _with_needed(
        self, entry: Entry, asked: tuple[str, ...], found: Harvest, needed: object
    ) -> Harvest:
        if isinstance(needed, ParseFailed):  # it is recorded without them
            return found
        assert isinstance(needed, Needed)
        linked = {each.url for each in found.found}  # they are fetched as pages
        urls = dict.fromkeys((*needed.urls, *asked))
        waiting, wanted = list(urls), list[Candidate]()
        while waiting:
            url = waiting.pop(0)
            needs = self._of_browser.get(url)
            if needs is not None:
                waiting += [each for each in needs if each not in urls]
                urls |= dict.fromkeys(needs)
            elif url not in linked and (url not in asked or url in self._of_browser):
                wanted.append(requisite(url, entry))
        passed_over = found.passed_over
        if needed.is_capped:
            passed_over = {**passed_over, CAPPED: passed_over.get(CAPPED, 0) + 1}
        return found._replace(
            requests=[*found.requests, *self._new(wanted)], passed_over=passed_over
        )

    def _new(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        is_new = self._recent.add
        return [each for each in candidates if is_new(each.url)]
