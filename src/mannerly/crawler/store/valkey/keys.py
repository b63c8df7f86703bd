"""The names of all keys. Those of a crawl have one hash tag: one script may touch all its shards.

    mannerly:crawls              set: the names of all crawls
    mannerly:{NAME}:…            the crawl: see `CrawlKeys`
    mannerly:{NAME}:17:…         shard 17 of the crawl: see below
    mannerly:{hosts}:…           the memory of hosts (`mannerly.hosts`), hashes: budgets b,
                                 leases l, holders h, wishes w, and the run of the server

Keys of a shard; scripts make them from the first one:

    s        hash: id, lease (token, member, claim, beat, clock), run of the server, number and
             answer of the last write and how much of `i` it told, counters, cursor of the retries
    k:N      set: known URLs by fingerprint, in bucket N
    n        hash: every known host: how many of its URLs are queued, with which priorities
    l:P:HOST list: those of priority P, by seq
    q:HOST   sorted set: those that came back with their old seq, by (priority, seq)
    w wz     list and sorted set: the waiting room, by seq
    f fe     sorted set and hash: failed URLs, by time and by seq
    g ge     sorted set and hash: URLs that were given up
    a        hash: queued URLs that have a record of an earlier round, by seq
    h        hash: records of hosts
    r        hash: robots.txt by origin
    c        hash: cookies of sessions by name
    v        hash: how often the lastmod of a host's sitemap was right and wrong
    i        list: URLs that others have queued here and that the owner was not told of, or was told
             of with the answer to its last write (`owner.lua`)
    lg sg    hashes: committed lengths of the logs of records, and of the segments of bodies
    u ut     lists: URLs that have a record, packed, and those that are not packed yet (`fetched`)
    m mb     list and bitmap: blocks of URLs whose record is lost, to be fetched again, and by seq
    rm       hash: waits of hosts that others have told since they lost the shard (`reminders`)
    rb       bitmap: URLs that a recrawl has asked for again, by seq
    y        list: orders to bring URLs back
    x        hash: pages during whose parsing an owner died
    d        set: pages that the program is done with
    p        hash: what requests carry, by seq, for as long as their URL is known
    st       set: requests that are sent once, were sent and have no result
"""

from __future__ import annotations

from urllib.parse import quote

PREFIX = "mannerly:"
CRAWLS = PREFIX + "crawls"

OF_CRAWL = ("manifest", "meta", "orders", "cards", "arrivals")
OF_HOSTS = ("b", "l", "h", "w", "run")
OF_SHARD = (
    *("s", "n", "w", "wz", "f", "fe", "g", "ge", "a", "h", "r", "c", "v", "i"),
    *("lg", "sg", "u", "ut", "m", "mb", "rm", "rb", "y", "x", "d", "p", "st"),
)
OF_SHARD_BEFORE = ("k", "l", "q")  # a bucket, or a priority and a host, follows


def is_listed(key: str) -> bool:
    """Return whether this module lists a key."""
    if key == CRAWLS:
        return True
    tag, brace, rest = key.removeprefix(PREFIX + "{").partition("}:")
    if not brace:
        return False
    if tag == "hosts":
        return rest in OF_HOSTS
    shard, colon, suffix = rest.partition(":")
    if not colon:
        return rest in OF_CRAWL
    is_shard = shard.isdecimal()
    return is_shard and (suffix in OF_SHARD or suffix.partition(":")[0] in OF_SHARD_BEFORE)


class CrawlKeys:
    """The keys of one crawl."""

    def __init__(self, name: str) -> None:
        self._base = base = f"{PREFIX}{{{quote(name, safe='-._~')}}}:"  # no brace ends the tag
        self.manifest = base + "manifest"  # string: identity, seeds, settings
        self.meta = base + "meta"  # hash: id, hold, granted pages
        self.orders = base + "orders"  # list of control records
        self.heartbeats = base + "cards"  # hash: members that work on the crawl
        self.arrivals = base + "arrivals"  # hash: by shard, how many URLs others have added to it

    @property
    def of_crawl(self) -> list[str]:
        """Return the keys of the crawl as a whole."""
        return [self.manifest, self.meta, self.orders, self.heartbeats, self.arrivals]

    def shard(self, number: int) -> str:
        """Return the key of a shard's state. Those of its other values begin like it."""
        return f"{self._base}{number}:s"

    def of_shard(self, number: int, suffix: str) -> str:
        """Return another key of a shard."""
        return f"{self._base}{number}:{suffix}"
