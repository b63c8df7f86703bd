"""Pollers: wait for the sockets that curl wants watched, on every operating system.

Two classes with one interface. `EpollPoller` is used where the system has epoll (Linux);
`SelectorPoller` works with any selector of the standard library: kqueue (macOS, BSD), poll, or
select (Windows). The selector builds a key object for each registration and each event, which
costs a request about a tenth more CPU than epoll used directly; hence the first class.

Hang-ups and socket errors always reach curl, either as flags of their own (epoll) or as
"readable" and "writable" (selectors): curl then finds the error with its next read or write.
"""

from __future__ import annotations

import errno
import select
import selectors
import sys
import time
from typing import Protocol

from .libcurl import pycurl

# Windows gives `select` room for 512 sockets; some are the caller's, or curl's own.
_SELECT_ROOM = 480

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_SELECTOR_EVENTS = {
    pycurl.POLL_IN: _READ,
    pycurl.POLL_OUT: _WRITE,
    pycurl.POLL_INOUT: _READ | _WRITE,
}
_SELECTOR_FLAGS = {
    0: 0,
    _READ: pycurl.CSELECT_IN,
    _WRITE: pycurl.CSELECT_OUT,
    _READ | _WRITE: pycurl.CSELECT_IN | pycurl.CSELECT_OUT,
}


class Poller(Protocol):
    """Watches sockets in curl's terms. One owner, one thread."""

    def update(
        self, what: int, descriptor: int, _multi: object = None, _data: object = None
    ) -> None:
        """Watch a socket for `what` (one of pycurl.POLL_*), or stop watching it.

        The parameters are those of curl's socket callback, so curl can call this method directly.
        """
        ...

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        """Return the ready descriptors, each with its flags (pycurl.CSELECT_*).

        Blocks until one is ready or the time is over.
        """
        ...

    def close(self) -> None:
        """Give back the poller's own descriptor; the watched ones stay open."""
        ...


def new_poller() -> Poller:
    """Return the fastest poller that this system has."""
    return EpollPoller() if _has_epoll() else SelectorPoller(selectors.DefaultSelector())


def max_sockets() -> int:
    """Return how many sockets `new_poller` can watch at once: no limit, except with `select`."""
    if _has_epoll() or not issubclass(selectors.DefaultSelector, selectors.SelectSelector):
        return sys.maxsize
    return _SELECT_ROOM


def _has_epoll() -> bool:
    return hasattr(select, "epoll")


class EpollPoller:
    """A poller on Linux's epoll, without a layer in between."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._known: set[int] = set()
        self._events = {
            pycurl.POLL_IN: select.EPOLLIN,
            pycurl.POLL_OUT: select.EPOLLOUT,
            pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
        }
        # A table for all combinations of the five lowest bits; epoll reports no others to us.
        self._flags = [_epoll_to_curl(event) for event in range(32)]

    def update(
        self, what: int, descriptor: int, _multi: object = None, _data: object = None
    ) -> None:
        if what == pycurl.POLL_REMOVE:
            self._known.discard(descriptor)
            self._forget(descriptor)
        elif descriptor in self._known:
            self._epoll.modify(descriptor, self._events[what])
        else:
            self._epoll.register(descriptor, self._events[what])
            self._known.add(descriptor)

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        flags = self._flags
        return [
            (descriptor, flags[event & 31]) for descriptor, event in self._epoll.poll(timeout_s)
        ]

    def close(self) -> None:
        self._epoll.close()

    def _forget(self, descriptor: int) -> None:
        try:
            self._epoll.unregister(descriptor)
        except OSError as problem:
            # curl may have closed it already, and then the kernel has forgotten it too.
            if problem.errno not in (errno.ENOENT, errno.EBADF):
                raise


class SelectorPoller:
    """A poller on a selector of the standard library."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._known: set[int] = set()

    def update(
        self, what: int, descriptor: int, _multi: object = None, _data: object = None
    ) -> None:
        if what == pycurl.POLL_REMOVE:
            if descriptor in self._known:
                self._known.remove(descriptor)
                self._selector.unregister(descriptor)
        elif descriptor in self._known:
            self._selector.modify(descriptor, _SELECTOR_EVENTS[what])
        else:
            self._selector.register(descriptor, _SELECTOR_EVENTS[what])
            self._known.add(descriptor)

    def wait(self, timeout_s: float) -> list[tuple[int, int]]:
        if not self._known:
            time.sleep(timeout_s)  # Windows refuses to select from nothing
            return []
        return [
            (key.fd, _SELECTOR_FLAGS[events]) for key, events in self._selector.select(timeout_s)
        ]

    def close(self) -> None:
        self._selector.close()


def _epoll_to_curl(event: int) -> int:
    flags = 0
    if event & (select.EPOLLIN | select.EPOLLHUP):
        flags |= pycurl.CSELECT_IN
    if event & select.EPOLLOUT:
        flags |= pycurl.CSELECT_OUT
    if event & select.EPOLLERR:
        flags |= pycurl.CSELECT_ERR
    return flags
