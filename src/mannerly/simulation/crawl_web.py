"""A web of any size, made on request: which pages link where, and how each host behaves.

    host n    https://h<n>.example, one of the `limits` and one of the `crawl_delays_s`
    page p    `/` or `/p<p>`; links to its children in the host's tree of pages and to some others
    home      links to its children in the tree of hosts, too, so that host 0 leads everywhere

Every page has two ways to it at least (the tree and a random link), so that one failed page does
not cut off the rest. What is arbitrary is a hash of (seed, page, slot) and not a generator's
state: a million hosts cost nothing before they are visited, and whoever wants to know what a crawl
should have found asks `links` again afterwards.

Pure text: this file knows no time, no client and no crawl.
"""

from __future__ import annotations

from dataclasses import dataclass

FORBIDDEN = "/private/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """The pages of many hosts.

    Args:
        hosts: how many, all of which can be reached from host 0.
        pages: of each host.
        fan_out: children of a page among its host's pages, and of a host among the hosts.
        others: links to random pages of random hosts on each page.
        forbids: whether every home page links to a place that robots.txt forbids.
        limits: server specs of the simulator, dealt out to the hosts; "" answers everything.
        crawl_delays_s: dealt out likewise; 0 asks for none.
        seed: another seed gives other links and deals the hosts anew.
    """

    hosts: int
    pages: int = 1
    fan_out: int = 4
    others: int = 2
    forbids: bool = False
    limits: tuple[str, ...] = ("",)
    crawl_delays_s: tuple[float, ...] = (0.0,)
    seed: int = 1

    @property
    def start(self) -> str:
        """The home page that leads everywhere."""
        return _url(0, 0)

    def limit(self, host: int) -> str:
        """The server spec of a host."""
        return self.limits[_hash(self.seed, host, 1) % len(self.limits)]

    def crawl_delay_s(self, host: int) -> float:
        """What the host's robots.txt asks for."""
        return self.crawl_delays_s[_hash(self.seed, host, 2) % len(self.crawl_delays_s)]

    def robots(self, host: int) -> bytes:
        """The host's robots.txt."""
        delay_s = self.crawl_delay_s(host)
        asked = f"Crawl-delay: {delay_s:g}\n" if delay_s else ""
        return f"User-agent: *\nDisallow: {FORBIDDEN}\n{asked}".encode()

    def links(self, host: int, page: int) -> list[str]:
        """Where a page leads, as absolute URLs."""
        urls = [_url(host, child) for child in self._children(page, self.pages)]
        if page == 0:
            urls += [_url(child, 0) for child in self._children(host, self.hosts)]
            if self.forbids:
                urls.append(f"https://h{host}.example{FORBIDDEN}")
        number = host * self.pages + page
        for slot in range(3, 3 + self.others):
            drawn = _hash(self.seed, number, slot)
            urls.append(_url(drawn % self.hosts, (drawn // self.hosts) % self.pages))
        return urls

    def _children(self, number: int, count: int) -> range:
        """The numbers below one in the tree of `count` numbers."""
        first = number * self.fan_out + 1
        return range(min(first, count), min(first + self.fan_out, count))

    def body(self, host: int, page: int) -> bytes:
        """The page's HTML."""
        anchors = "".join([f'<a href="{url}">x</a>' for url in self.links(host, page)])
        return f"<!doctype html><title>{host}/{page}</title>{anchors}".encode()


def place_of(url: str) -> tuple[int, int]:
    """Host and page of a URL that `links` made; page -1 is any other of the host."""
    name, _, path = url.removeprefix("https://h").partition("/")
    if not path:
        page = 0
    elif path.startswith("p") and path[1:].isdigit():
        page = int(path[1:])
    else:
        page = -1
    return int(name.removesuffix(".example")), page


def _url(host: int, page: int) -> str:
    return f"https://h{host}.example/p{page}" if page else f"https://h{host}.example/"


def _hash(seed: int, number: int, slot: int) -> int:
    """64 bits that look random (the finaliser of SplitMix64, by Vigna)."""
    mixed = (
        number * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03 + slot * 0x8CB92BA72F3D8DD7
    ) & (_MASK)
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


_MASK = (1 << 64) - 1
