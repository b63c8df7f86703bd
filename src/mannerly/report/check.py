"""`mannerly check`: which links of a crawl still have to be asked for, and what was found.

Pages are crawled first. Then every other target of their links (images, styles, scripts, pages of
other sites) is asked for once, by the same frontier, politeness, guard and robots.txt as any page.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mannerly.crawler.control import CheckUrls
from mannerly.crawler.fetch.guard import split_origin
from mannerly.crawler.inspection.reasons import skip_words
from mannerly.crawler.model import LocalError

from .facts import pages_of_links
from .pages import answer, is_lost, is_unchecked

if TYPE_CHECKING:
    from mannerly.crawler.stored import StoredCrawl

    from .findings import Findings

_AT_ONCE = 1000  # URLs of one control record
_PRIVATE = (LocalError.BLOCKED_ADDRESS, LocalError.BLOCKED_PORT)
_REFUSED = "refused us, so nothing is known"


@dataclass(slots=True)
class Broken:
    """A broken target, and every link to it."""

    target: str
    answer: str
    linked_from: list[dict[str, str | None]] = field(default_factory=list)  # page, text, kind


@dataclass(slots=True)
class Checked:
    """The outcome of a check."""

    broken: list[Broken]
    pages: int  # that were crawled
    links: int  # other targets that were asked for
    unchecked: dict[str, int]  # by the reason in words
    private: list[str]  # host:port of each target that is in a private network, for --allow-net


def targets(crawl: StoredCrawl) -> list[str]:
    """Return the targets of links that the crawl has not visited, each once."""
    with crawl.view() as view:
        known = {page.url for page in view.pages()}
        known.update(each.url for each in view.skipped())
        known.update(each.url for each in view.given_up())
        found = (link.target for _, group in pages_of_links(view) for link in group)
        return list(dict.fromkeys(target for target in found if target not in known))


def order_checks(crawl: StoredCrawl) -> int:
    """Order a crawl to check what it has not visited; return how many URLs that are."""
    found = targets(crawl)
    for start in range(0, len(found), _AT_ONCE):
        crawl.order(CheckUrls(tuple(found[start : start + _AT_ONCE])))
    return len(found)


def outcome(findings: Findings) -> Checked:
    """Return what is broken, the most linked first, and what could not be checked."""
    facts = findings.facts
    found = {url: Broken(url, said) for url, said in facts.verdict.answers.items()}
    linked: set[str] = set()
    with facts.crawl.view() as view:
        for source, group in pages_of_links(view):
            for link in group:
                linked.add(link.target)
                if (target := facts.verdict.broken(link)) is not None:
                    found[target].linked_from.append(
                        {"page": source, "text": link.text, "kind": link.kind}
                    )
        skipped = [each for each in view.skipped() if each.url in linked]
    own = {page.host for page in facts.pages.values()}
    unchecked = Counter(skip_words(each.reason) for each in skipped)
    unchecked.update(
        f"{_REFUSED} ({answer(page)})" if page.status else answer(page)
        for page in facts.checked.values()
        if is_unchecked(page, is_foreign=page.host not in own)
    )
    unchecked.update(_REFUSED for each in facts.given_up if not is_lost(each))
    private = [each.url for each in skipped if each.reason in _PRIVATE]
    private += [page.url for page in facts.checked.values() if page.error in _PRIVATE]
    order = sorted(found.values(), key=lambda each: (-len(each.linked_from), each.target))
    places = sorted({_place(url) for url in private})
    return Checked(order, len(facts.pages), len(facts.checked), dict(unchecked), places)


def _place(url: str) -> str:
    """Return the host and port of a URL, as --allow-net takes it."""
    origin = split_origin(url)
    assert origin is not None, "a record has a serialised URL"
    _, host, port = origin
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
