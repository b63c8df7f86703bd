"""Find what is broken: targets without an answer, redirects that never end, missing anchors.

A redirect that ends at a broken target is no fault of its own: it *leads* to that target, and so
does every link to it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.page.checks import anchors_of, leads_to_anchor

from .pages import answer, given_up_answer, is_broken, is_html, is_lost, is_ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.inspection.view import View
    from mannerly.crawler.model import Link, PageRecord, Skipped

LOOP = "redirect loop"
NO_ANCHOR = "no such anchor"


class Verdict(NamedTuple):
    """The broken targets."""

    answers: dict[str, str]  # of each, in words
    leads: dict[str, str]  # by URL: the broken target that it is, or is redirected to

    def broken(self, link: Link) -> str | None:
        """Return the broken target that a link leads to; None if it is sound."""
        if link.fragment is not None:
            anchor = f"{link.target}#{link.fragment}"
            if anchor in self.answers:
                return anchor
        return self.leads.get(link.target)


def judge(
    pages: Mapping[str, PageRecord], checked: Mapping[str, PageRecord], given_up: list[Skipped]
) -> Verdict:
    """Find targets that do not answer, and redirects that never end."""
    own = {page.host for page in pages.values()}
    answers = {each.url: given_up_answer(each) for each in given_up if is_lost(each)}
    target: dict[str, str] = {}
    for known in (checked, pages):
        for url, page in known.items():
            if page.redirect_to:
                target[url] = page.redirect_to
            if is_broken(page, is_foreign=page.host not in own):
                answers[url] = answer(page)
    leads = {url: url for url in answers}
    for loop in loops(target):
        first = min(loop)
        answers[first] = LOOP
        leads |= dict.fromkeys(loop, first)
    return Verdict(answers, _with_redirects(leads, target))


def loops(target: Mapping[str, str]) -> list[list[str]]:
    """Return the loops of redirects, given where each leads to."""
    found = []
    done: set[str] = set()
    for start in target:
        path: dict[str, None] = {}
        url = start
        while url in target and url not in done:
            done.add(url)
            path[url] = None
            url = target[url]
        if url in path:
            members = list(path)
            found.append(members[members.index(url) :])
    return found


def _with_redirects(leads: dict[str, str], target: Mapping[str, str]) -> dict[str, str]:
    """Add the redirects that lead to broken targets, by any number of hops."""
    before: dict[str, list[str]] = {}
    for url, there in target.items():
        before.setdefault(there, []).append(url)
    reached = list(leads)
    while reached:
        there = reached.pop()
        for url in before.get(there, ()):
            if url not in leads:
                leads[url] = leads[there]
                reached.append(url)
    return leads


def missing_anchors(view: View, pages: Mapping[str, PageRecord]) -> dict[str, str]:
    """Return the answers of links to anchors that their page does not have (--anchors).

    A page is read if its anchors were kept; a redirected link means the anchor of its last page.
    """
    wanted: dict[str, set[tuple[str, str]]] = {}
    for link in view.links():
        if link.fragment and link.kind in ("a", "area"):
            page = _end(link.target, pages)
            if page is not None and is_ok(page) and is_html(page):
                wanted.setdefault(page.url, set()).add((link.target, link.fragment))
    missing: dict[str, str] = {}
    # Elements are read fastest in the order of the records.
    for record, kept in chain.from_iterable(reader.elements() for reader in view.readers):
        links = wanted.get(record.url)
        if links and (anchors := anchors_of(kept)) is not None:
            for target, fragment in links:
                if not leads_to_anchor(fragment, anchors):
                    missing[f"{target}#{fragment}"] = NO_ANCHOR
    return missing


def _end(url: str, pages: Mapping[str, PageRecord]) -> PageRecord | None:
    """Return the page that a URL leads to, by at most 20 redirects, as in browsers."""
    for _ in range(20):
        page = pages.get(url)
        if page is None or page.redirect_to is None:
            return page
        url = page.redirect_to
    return None
