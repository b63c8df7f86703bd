"""The payload of a queue entry: what a request carries beyond its URL.

A link has none, and costs nothing for it. A program's request may have one: method, headers, body
or form, a label and data for the code that gets its answer, the name of a session. Its place in the
queue is that of a URL (`Candidate.priority`), and its kind says that it has a payload (`kinds`).

**Identity.** A crawl asks once for the same thing, which `identity` names: a GET is its URL alone;
any other request is its URL, method and the digest of its body. One that is asked again on purpose
is another one (`again`); so is what a page needs to be shown (`REQUISITE`), which never takes a
page out of the queue that has the same URL.

**A label takes the place of a link.** A GET with a label is fetched although its URL is known as a
link: that one leaves the queue, or was fetched without a handler. Of two with a label, the first
counts.

**Sent once.** GET and HEAD are repeated, and what says that it is idempotent. Any other request may
have done something when its answer is lost: it is sent again only if it was refused before it could
(`was_refused`), or never sent.

**Secrets.** Values at the places in `references` are `env:NAME` or `file:PATH`, and are read when
the request is made. Which ones these are is said by the program, never by the text of the value: a
page could have written that. A payload is not printed: its `repr` has sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from xxhash import xxh3_128_hexdigest

from .kinds import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REPEATABLE = frozenset({"GET", "HEAD"})  # methods: one that is lost is sent again
MAX_DATA = 64 * 1024  # bytes as JSON
MAX_BODY = 1024 * 1024  # bytes; curl asks before it sends more (Expect: 100-continue)
MAX_HEADERS = 16 * 1024  # bytes of all names and values
MAX_NAME = 200  # characters of a label, of the name of a session

_METHOD = re.compile(r"[A-Z]{1,20}")
_NEVER = frozenset({"CONNECT", "TRACE"})  # they are not for pages
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2: the name of a header
_LINE = re.compile(r"[^\0-\x08\x0a-\x1f\x7f]*")  # a value that ends no line
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect"})
_REFERENCE = re.compile(r"(env|file):.+")
_OF_BODY = ("content-", "digest")  # the beginnings of headers that describe a body
_TO_GET = {301: ("POST",), 302: ("POST",)}  # methods that a redirect turns into a GET; 303: all
_SEE_OTHER = 303

_SHORT = {
    **dict(zip(("method", "headers", "body", "form", "references"), "mhbfr", strict=True)),
    **dict(zip(("label", "json", "session", "is_idempotent", "again"), "ldsia", strict=True)),
}  # the names of fields as they are stored

Pairs = tuple[tuple[str, str], ...]


class Sendable(NamedTuple):
    """The parts of a request that a fetcher sends, with secrets."""

    method: str
    headers: Pairs
    body: bytes


class Payload(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename=_SHORT,
):
    """The parts of one request beyond its URL. Every field has a default that takes no room.

    Attributes:
        body: bytes as they are sent; a request has a body or a form.
        form: the fields of a form, in their order.
        references: places of headers, and behind these of fields, whose value names a secret.
        label: which code gets the answer.
        json: data for that code.
        session: name of the cookies that go with the request and its redirects.
        again: distinguishes a request that is asked again on purpose from those before.
    """

    method: str = "GET"
    headers: Pairs = ()
    body: bytes = b""
    form: Pairs = ()
    references: tuple[int, ...] = ()
    label: str = ""
    json: bytes = b""
    session: str = ""
    is_idempotent: bool = False
    again: str = ""

    def __repr__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        return f"<Payload {self.method}{label}, {len(encode(self))} bytes>"

    @property
    def data(self) -> Any:
        """The data, as a value of its own; {} if there are none."""
        return msgspec.json.decode(self.json) if self.json else {}

    @property
    def has_body(self) -> bool:
        """Return whether something is sent behind the headers."""
        return bool(self.body or self.form)

    @property
    def is_repeatable(self) -> bool:
        """Return whether it may be sent again when it is not known what the first one did."""
        return self.method in REPEATABLE or self.is_idempotent

    @property
    def takes_place(self) -> bool:
        """Return whether it is asked although its URL is known as a link."""
        return bool(self.label) and self.is_of_url

    @property
    def is_of_url(self) -> bool:
        """Return whether its identity is its URL alone."""
        return self.method == "GET" and not self.again and not self.has_body

    @property
    def kind(self) -> Kind:
        """Return the kind of its entry."""
        return Kind.REQUEST if self.is_repeatable else Kind.SUBMISSION

    def identity(self, url: str) -> str:
        """Return the text by which a request for this URL is known; no URL has a space in it."""
        if self.is_of_url:
            return url
        sent = self.body or (msgspec.msgpack.encode(self.form) if self.form else b"")
        digest = xxh3_128_hexdigest(sent) if sent else ""
        return f"{url} {self.method} {digest}{' ' if self.again else ''}{self.again}"

    def sendable(self, revealed: Callable[[str], str]) -> Sendable:
        """Return what is sent, with the secrets that `revealed` reads.

        Raises:
            ValueError: one of them cannot be read; the message names the reference.
        """
        headers, form = list(self.headers), list(self.form)
        for place in self.references:
            pairs, at = (headers, place) if place < len(headers) else (form, place - len(headers))
            name, reference = pairs[at]
            pairs[at] = name, revealed(reference)
        body = urlencode(form).encode() if form else self.body
        if body and all(name.lower() != "content-type" for name, _ in headers):
            kind = "application/x-www-form-urlencoded" if form else "application/octet-stream"
            headers.append(("Content-Type", kind))
        return Sendable(self.method, tuple(headers), body)

    def redirected(self, status: int, *, is_same_origin: bool) -> Payload | None:
        """Return what the target of a redirect is asked with; None: nothing but its URL.

        Label, data and session go with it. Headers do not leave their origin.

        Raises:
            ValueError: a form with secrets would leave it.
        """
        becomes_get = self.method not in REPEATABLE and (
            status == _SEE_OTHER or self.method in _TO_GET.get(status, ())
        )
        kept = [
            (place, header)
            for place, header in enumerate(self.headers)
            if is_same_origin and not (becomes_get and header[0].lower().startswith(_OF_BODY))
        ]
        first = len(self.headers)
        places = [place for place, _ in kept]
        references = [places.index(each) for each in self.references if each in places]
        if not becomes_get:
            fields = [each for each in self.references if each >= first]
            if fields and not is_same_origin:
                raise ValueError("a form with secrets is redirected to another origin")
            references += [each - first + len(kept) for each in fields]
        target = msgspec.structs.replace(
            self,
            headers=tuple(header for _, header in kept),
            references=tuple(references),
            **({"method": "GET", "body": b"", "form": ()} if becomes_get else {}),
        )
        return None if target == NOTHING else target


NOTHING = Payload()
REQUISITE = Payload(again="requisite")
"""The payload of all requisites: it makes each another request than the page with that URL."""


def identity_of(kind: Kind, url: str) -> str:
    """Return the text by which a URL of this kind is known that a page has led to."""
    return REQUISITE.identity(url) if KINDS[kind].is_requisite else url


encode: Callable[[Payload], bytes] = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Payload).decode


def decode(data: bytes) -> Payload:
    """Return the payload that `encode` wrote.

    Raises:
        ValueError: this is none.
    """
    payload = _decode(data)
    _check(payload)
    return payload


def payload(
    method: str = "GET",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | str = b"",
    form: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    secrets: Pairs = (),
    label: str = "",
    data: Any = None,
    session: str = "",
    is_idempotent: bool = False,
    again: str = "",
) -> Payload | None:
    """Return a checked payload; None if a plain request says the same.

    `secrets` are headers, and fields if there is a form, whose value is a reference.

    Raises:
        ValueError: a value cannot be sent or stored; the message says which, and its limit.
    """
    try:
        json = b"" if data is None or data == {} else msgspec.json.encode(data)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f"data must be values of JSON: {error}") from None
    own = list((headers or {}).items())
    fields: list[tuple[str, str]] = list(form.items() if isinstance(form, Mapping) else form or ())
    into = fields if form is not None else own
    first = len(into)
    into += secrets
    offset = len(own) if form is not None else 0
    made = Payload(
        method=method.upper(),
        headers=tuple(own),
        body=body.encode() if isinstance(body, str) else body,
        form=tuple(fields),
        references=tuple(range(offset + first, offset + first + len(secrets))),
        label=label,
        json=json,
        session=session,
        is_idempotent=is_idempotent,
        again=again,
    )
    _check(made)
    return None if made == NOTHING else made


def was_refused(status: int | None, headers: Mapping[str, str]) -> bool:
    """Return whether an answer says that the request was refused before it did anything."""
    return status == 429 or (status == 503 and "retry-after" in headers)


def _check(made: Payload) -> None:
    """Raise ValueError for a payload that cannot be sent or stored."""
    if not _METHOD.fullmatch(made.method) or made.method in _NEVER:
        raise ValueError(f"not a method of a request: {made.method[:30]!r}")
    if made.body and made.form:
        raise ValueError("a request has a body or a form, not both")
    if made.has_body and made.method in REPEATABLE:
        raise ValueError(f"a {made.method} has no body")
    _check_headers(made.headers)
    values = made.headers + made.form
    for place in made.references:
        if not 0 <= place < len(values) or not _REFERENCE.fullmatch(values[place][1]):
            raise ValueError("a secret is env:NAME or file:PATH")
    if len(made.body) + _size(made.form) > MAX_BODY:
        raise ValueError(f"a body has at most {MAX_BODY:,} bytes")
    if len(made.json) > MAX_DATA:
        raise ValueError(f"data has at most {MAX_DATA:,} bytes as JSON, not {len(made.json):,}")
    for what, text in (("label", made.label), ("session", made.session), ("again", made.again)):
        if len(text) > MAX_NAME or not text.isprintable():
            raise ValueError(f"a {what} has at most {MAX_NAME} printable characters")


def _check_headers(headers: Pairs) -> None:
    for at, (name, value) in enumerate(headers):
        if not _FIELD.fullmatch(name) or not _LINE.fullmatch(value):
            raise ValueError(f"header {at + 1} is none that can be sent")
        if name.lower() in _OURS:
            raise ValueError(f"the header {name} is set by the crawl")
    if _size(headers) > MAX_HEADERS:
        raise ValueError(f"headers have at most {MAX_HEADERS:,} bytes")


def _size(pairs: Pairs) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in pairs)
