"""The cookie jars of a durable Scrapy spider: they tell which of them changed, to be stored."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any

from scrapy.http.cookies import CookieJar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from http.cookiejar import Cookie

    from scrapy import Request

_log = logging.getLogger(__name__)

UNSTORABLE = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)
"""The errors of objects that cannot be pickled."""


class _Jar(CookieJar):
    """A cookie jar that tells when it changes."""

    def __init__(self, changes: set[Hashable], name: Hashable) -> None:
        super().__init__()
        self._changes = changes
        self._name = name

    def set_cookie_if_ok(self, cookie: Cookie, request: Request) -> None:
        self._changes.add(self._name)
        super().set_cookie_if_ok(cookie, request)

    def set_cookie(self, cookie: Cookie) -> None:
        self._changes.add(self._name)
        super().set_cookie(cookie)

    def clear(
        self, domain: str | None = None, path: str | None = None, name: str | None = None
    ) -> None:
        self._changes.add(self._name)
        super().clear(domain, path, name)


class Jars(dict[Any, CookieJar]):
    """The jars of a spider by their `cookiejar` key; made when they are asked for."""

    def __init__(self) -> None:
        self._changes: set[Hashable] = set()

    def __missing__(self, name: Hashable) -> CookieJar:
        jar = self[name] = _Jar(self._changes, name)
        return jar

    def changed(self) -> dict[bytes, bytes]:
        """Return the jars that changed since the last call, to be stored."""
        if not self._changes:
            return {}
        found = {}
        for name in self._changes:
            try:
                found[pickle.dumps(name, 4)] = pickle.dumps(list(self[name]), 4)
            except UNSTORABLE as error:
                _log.warning("the cookies of jar %r cannot be stored: %s", name, error)
        self._changes.clear()
        return found

    def mark(self, stored: dict[bytes, bytes]) -> None:
        """Take back `changed`: these jars were not written."""
        self._changes.update(pickle.loads(name) for name in stored)  # noqa: S301 - made above

    def restore(self, stored: Iterable[tuple[bytes, bytes]]) -> None:
        """Fill the jars with what the process before has kept."""
        for name, content in stored:
            jar = self[pickle.loads(name)]  # noqa: S301 - the file is ours
            for cookie in pickle.loads(content):  # noqa: S301
                jar.set_cookie(cookie)
        self._changes.clear()
