"""The links of a page, in the proportions of ordinary sites.

    the menu        every section, root-relative, the same on all pages of a host
    the tree        page n links to 2n+1 and 2n+2 and back to its parent: all pages of a host are
                    reachable from home in a few hops, so no crawler is starved of work
    the body        relative, root-relative and absolute links to the own host; others, to pages
                    of other hosts; some of them twice, with fragments or tracking parameters
    the forbidden   two that robots.txt does not allow; a mail address; a script

Only choice is here: no markup, no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .spec import PRIVATE_PAGES, SEARCHES

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from .spec import WebSpec

FRAGMENTS = ("top", "content", "comments", "notes", "section-2")
CAMPAIGNS = (
    "utm_source=newsletter&utm_medium=email",
    "utm_source=home&utm_campaign=spring",
    "utm_source=feed&utm_medium=rss&utm_campaign=daily",
)

# Shares of the links that the menu and the tree leave over.
KINDS = {
    "relative": 34,
    "root_relative": 22,
    "absolute": 12,
    "cross_host": 12,
    "repeated": 9,
    "fragment": 6,
    "tracked": 5,
}


class LinkChooser:
    """Chooses links for the pages of one host."""

    def __init__(self, spec: WebSpec, host: int) -> None:
        self._spec = spec
        self._host = host
        self._choose: dict[str, Callable[[Random, int], str]] = {
            "relative": self._relative,
            "root_relative": lambda rng, _: spec.path(rng.randrange(spec.pages)),
            "absolute": lambda rng, _: spec.origin(host) + spec.path(rng.randrange(spec.pages)),
            "cross_host": self._cross_host,
            "fragment": self._fragment,
            "tracked": self._tracked,
        }

    def menu(self) -> list[str]:
        """Home and the front pages of all sections."""
        spec = self._spec
        return [spec.path(page) for page in range(spec.sections + 1)]

    def tree(self, page: int) -> list[str]:
        """Up and down, and to the next host, so that the hosts form a ring."""
        spec = self._spec
        near = [(page - 1) // 2, 2 * page + 1, 2 * page + 2]
        links = [spec.path(each) for each in near if 0 <= each < spec.pages]
        return [*links, f"{spec.origin((self._host + 1) % spec.hosts)}/"]

    def body(self, rng: Random, page: int, count: int) -> list[str]:
        """So many links for the text, the forbidden and the useless ones included."""
        links = [
            self._spec.path(self._spec.pages + rng.randrange(PRIVATE_PAGES)),
            f"{self._spec.path(self._spec.files - 1)}?q={rng.choice(SEARCHES)}",
            f"mailto:editor-{self._host}@example.org",
            "javascript:void(0)",
        ]
        kinds = rng.choices(list(KINDS), list(KINDS.values()), k=max(0, count - len(links)))
        for kind in kinds:
            again = kind == "repeated"
            links.append(rng.choice(links) if again else self._choose[kind](rng, page))
        rng.shuffle(links)
        return links

    def _relative(self, rng: Random, page: int) -> str:
        spec = self._spec
        target = spec.path(rng.randrange(spec.pages))
        here, there = spec.path(page).rpartition("/")[0], target.rpartition("/")[0]
        if here == there:
            return target.rpartition("/")[2] or "./"
        return f"..{target}" if here else target[1:]

    def _cross_host(self, rng: Random, _page: int) -> str:
        spec = self._spec
        return spec.origin(rng.randrange(spec.hosts)) + spec.path(rng.randrange(spec.pages))

    def _fragment(self, rng: Random, _page: int) -> str:
        page = rng.randrange(self._spec.pages)
        return f"{self._spec.path(page)}#{rng.choice(FRAGMENTS)}"

    def _tracked(self, rng: Random, _page: int) -> str:
        page = rng.randrange(self._spec.pages)
        return f"{self._spec.path(page)}?{rng.choice(CAMPAIGNS)}"
