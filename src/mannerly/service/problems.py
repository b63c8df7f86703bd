"""Errors of the HTTP API, as problem details (RFC 9457): `application/problem+json`."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from mannerly.crawler.store.base import StoreError, StoreFull


class Problem(Exception):  # noqa: N818 - the standard's word
    """A request that cannot be served. `detail` says what is wrong, and what to do.

    `field` is the part of the request that is wrong, such as seeds or options.max_urls, if one is.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        headers: dict[str, str] | None = None,
        *,
        field: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.field = field

    def response(self) -> Response:
        """Return the answer to the client."""
        body = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            **({} if self.field is None else {"field": self.field}),
        }
        return Response(
            msgspec.json.encode(body),
            self.status.value,
            headers=self.headers,
            media_type="application/problem+json",
        )


def store_problem(error: StoreError) -> Problem:
    """Return the problem of a store that cannot be used, or cannot grow."""
    is_full = isinstance(error, StoreFull)
    status = HTTPStatus.INSUFFICIENT_STORAGE if is_full else HTTPStatus.SERVICE_UNAVAILABLE
    return Problem(status, str(error))


def not_found(what: str) -> Problem:
    """Return the problem of something that does not exist."""
    return Problem(HTTPStatus.NOT_FOUND, f"there is no {what}")


def bad_request(detail: str, *, field: str | None = None) -> Problem:
    """Return the problem of a request that is wrong."""
    return Problem(HTTPStatus.BAD_REQUEST, detail, field=field)
