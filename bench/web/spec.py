"""The description of a web: a value that decides every page and every address of it.

A host is a loopback address, 127.1.x.y, so no name has to be resolved; page 0 of a host is its home
page, the next ones are the front pages of its sections, all others lie in a section:

    http://127.1.0.7:18080/   /section-3/   /section-3/page-12.html

`search.html?q=…` and `private/…` exist too, are linked, and are forbidden by robots.txt: a crawler
that obeys fetches exactly `hosts × pages` pages.

No file and no socket is touched here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .manners import MANNERS

PAGES_PER_SECTION = 12
PRIVATE_PAGES = 3
SEARCHES = ("slow", "kind", "early", "plain", "quiet")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSpec:
    """The size and shape of a web. Bytes and links are those of one page."""

    hosts: int = 200
    pages: int = 60
    scheme: str = "http"
    port: int = 18080
    min_bytes: int = 20_000
    usual_bytes: int = 55_000  # the peak of a triangle: the mean is 45 KB
    max_bytes: int = 60_000
    min_links: int = 60
    max_links: int = 120
    seed: int = 1
    kind: str = "pages"  # how they are written: see `manners`
    directory: str = ""  # serve this one on every host instead of generated pages

    @classmethod
    def of_kind(cls, kind: str, *, hosts: int, port: int) -> WebSpec:
        """Return a web whose pages have the sizes and links of their kind."""
        links, sizes = MANNERS[kind].links, MANNERS[kind].sizes
        return cls(
            hosts=hosts,
            port=port,
            kind=kind,
            min_bytes=sizes[0],
            usual_bytes=sizes[1],
            max_bytes=sizes[2],
            min_links=links[0],
            max_links=links[1],
        )

    @property
    def name(self) -> str:
        """Short, for directories; the whole value is written beside the pages."""
        kind = "manual" if self.directory else self.kind
        suffix = "" if kind == "pages" else f"-{kind}"
        return f"{self.scheme}-{self.hosts}x{self.pages}-{self.port}{suffix}"

    @property
    def sections(self) -> int:
        """Sections a host."""
        return max(1, self.pages // PAGES_PER_SECTION)

    @property
    def total(self) -> int:
        """Pages that robots.txt leaves to a crawler."""
        return self.hosts * self.pages

    @property
    def files(self) -> int:
        """Pages a host, the forbidden ones included."""
        return self.pages + PRIVATE_PAGES + 1

    def address(self, host: int) -> str:
        """127.1.0.1 and on; never .0 or .255, which some systems treat as broadcast."""
        return f"127.1.{host // 250}.{host % 250 + 1}"

    def origin(self, host: int) -> str:
        return f"{self.scheme}://{self.address(host)}:{self.port}"

    def section_of(self, page: int) -> int:
        """Return the section of a page; 0 for the home page, which has none."""
        return 0 if page == 0 else (page - 1) % self.sections + 1

    def path(self, page: int) -> str:
        """Return the path of a page on any host; forbidden pages have the last numbers."""
        if page == 0:
            return "/"
        if page >= self.pages:
            note = page - self.pages
            return f"/private/note-{note}.html" if note < PRIVATE_PAGES else "/search.html"
        section = f"/section-{self.section_of(page)}/"
        return section if page <= self.sections else f"{section}page-{page}.html"

    def homes(self) -> list[str]:
        """The home page of every host: the seeds."""
        return [f"{self.origin(host)}/" for host in range(self.hosts)]
