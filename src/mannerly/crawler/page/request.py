"""A request that the user's code yields for a page: which URL, and what goes with it.

It is checked where it is made, in the user's code, so that a mistake names the user's line. From a
helper process it travels as plain values (`Asked`), and the crawl makes candidates of them, which
join the commit of their page (`candidates`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from xxhash import xxh3_128_hexdigest

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate
from mannerly.crawler.payload import Payload, decode, encode, payload
from mannerly.crawler.web.priority import asked_priority
from mannerly.crawler.web.urls import canonical, host_key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.crawler.model import PageRecord

MOST = 10_000  # requests of one page, as many as links


class Asked(NamedTuple):
    """A request as plain values."""

    url: str
    carried: bytes  # its payload, encoded; empty: it has none
    is_again: bool  # asked again on purpose
    priority: int = 0


class PageRequest:
    """A request for a URL, with what goes with it. Yield it from an extract function.

    Its public name is `mannerly.Request`.

    Args:
        url: an absolute URL; `page.follow` takes relative ones.
        method: GET, HEAD, POST and so on.
        headers: of this request alone.
        body: bytes or text to send; or
        json: a value to send as JSON; or
        form: the fields of a form, as a dict or as pairs.
        secrets: fields of the form, or headers if there is none, whose value is `env:NAME` or
            `file:PATH`: what that names is read when the request is sent, and never stored.
        label: what the page is: the function finds it as `page.label`.
        data: a value of JSON up to 64 kB, which comes back as `page.data`.
        session: name of the cookies that are sent with it and kept of its answer; a redirect
            has the same ones. Without a name there are none but those of `--cookies`.
        idempotent: it may be sent again when its answer is lost, as a GET may.
        priority: of requests to one host those with a larger number go first: one step is as much
            as one link less between a seed and its page. From -1000 to 1000.
        dont_filter: ask although the same was asked before, once for each time this is yielded.

    Raises:
        ValueError: it cannot be sent or stored; the message says which part, and its limit.
    """

    __slots__ = ("is_again", "payload", "priority", "url")

    def __init__(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str = b"",
        json: Any = None,
        form: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        secrets: Mapping[str, str] | None = None,
        label: str = "",
        data: Any = None,
        session: str = "",
        idempotent: bool = False,
        priority: int = 0,
        dont_filter: bool = False,
    ) -> None:
        if type(priority) is not int or abs(priority) > _FIRST:
            raise ValueError(f"a priority is a whole number from -{_FIRST} to {_FIRST}")
        found = canonical(url, url)
        if found is None:
            raise ValueError(f"not a URL that can be asked for: {url[:200]!r}")
        if json is not None:
            if body or form is not None:
                raise ValueError("a request has json, a body or a form, not two of them")
            body, headers = msgspec.json.encode(json), {**_JSON, **(headers or {})}
        self.url = found
        self.is_again = dont_filter
        self.priority = priority
        self.payload: Payload | None = payload(
            method,
            headers=headers,
            body=body,
            form=form,
            secrets=tuple((secrets or {}).items()),
            label=label,
            data=data,
            session=session,
            is_idempotent=idempotent,
        )

    def __repr__(self) -> str:
        return f"<Request {self.url} {self.payload or 'GET'}>"

    def asked(self) -> Asked:
        """Return it as plain values."""
        carried = b"" if self.payload is None else encode(self.payload)
        return Asked(self.url, carried, self.is_again, self.priority)


_FIRST = 1000
_JSON = {"Content-Type": "application/json"}


def candidates(record: PageRecord, asked: Iterable[Asked]) -> list[Candidate]:
    """Return the requests that were yielded for a page, with the page as their parent.

    Raises:
        ValueError: one of them is none: the helper that made it is broken.
    """
    found = []
    depth = record.depth + 1
    for number, each in enumerate(asked):
        url, carried, is_again, first = each
        carries = decode(carried) if carried else None
        if is_again:  # another one in each answer of the page
            mark = xxh3_128_hexdigest(f"{record.url} {record.fetched_at} {number}".encode())
            carries = msgspec.structs.replace(carries or Payload(), again=mark)
        if canonical(url, url) != url:
            raise ValueError(f"not a URL as it is written in a crawl: {url[:200]!r}")
        kind = Kind.PAGE if carries is None else carries.kind
        place = asked_priority(depth, first)
        found.append(Candidate(url, host_key_of(url), depth, place, record.url, 0, kind, carries))
    return found
