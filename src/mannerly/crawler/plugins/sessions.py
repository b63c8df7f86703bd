"""Sessions: requests that name one send its cookies, and keep those of their answers.

A jar belongs to a name and a shard, so the cookies of a host are in one place. Its text joins the
next batch after a change, with the pages whose answers set the cookies or before them. So a crash
loses no login whose page is recorded.

Bounded: `MAX_SESSIONS` names of a shard, the one used longest ago is forgotten first; 64 kB of each
are stored. All jars of a shard are read when the first request names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.fetch.cookies import CookieJar
from mannerly.crawler.shard.plugin import Plugin

if TYPE_CHECKING:
    from mannerly.crawler.model import Entry, Request
    from mannerly.crawler.shard.pending import Pending
    from mannerly.crawler.store.base import ShardStore

MAX_SESSIONS = 1000


class Sessions(Plugin):
    """The jars of one shard."""

    def __init__(self, store: ShardStore) -> None:
        self._store = store
        self._jars: dict[str, CookieJar] = {}  # by name, in the order of their last use
        self._is_read = False
        self._forgotten: set[str] = set()  # names that the store still has

    def ask(self, entry: Entry, request: Request) -> None:
        """Have the cookies of its session sent with a request."""
        if request.payload is None or not request.payload.session:
            return
        if not self._is_read:
            kept = self._store.sessions()
            self._jars = {name: CookieJar(cookies) for name, cookies in kept.items()}
            self._is_read = True
        name = request.payload.session
        jar = self._jars.pop(name, None)
        request.cookies = self._jars[name] = CookieJar() if jar is None else jar
        if len(self._jars) > MAX_SESSIONS:
            oldest = next(iter(self._jars))
            del self._jars[oldest]
            self._forgotten.add(oldest)

    def flush(self, pending: Pending) -> None:
        """Add the jars that have changed to the batch."""
        for name in self._forgotten:
            pending.keep_session(name, "")
        self._forgotten.clear()
        for name, jar in self._jars.items():
            if jar.is_changed:
                pending.keep_session(name, jar.packed() if len(jar) else "")
                jar.is_changed = False
