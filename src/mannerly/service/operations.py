"""One operation of the HTTP API, and what all operations share: decoding, answers, numbers.

A request is decoded into a value first, so that unknown fields and wrong types are refused with
the path of the field.
"""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from .jobs.model import FieldError
from .problems import bad_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request

T = TypeVar("T")


class Operation(NamedTuple):
    """One operation of the API; the first line of its function's docstring describes it."""

    method: str
    path: str
    handler: Callable[[Request], Awaitable[Response]]
    request: type | None = None  # the JSON that it takes
    answer: type | None = None  # the JSON that it returns; None: described in words
    status: HTTPStatus = HTTPStatus.OK
    query: tuple[str, ...] = ()

    def route(self) -> Route:
        """Return the route of starlette."""
        return Route(self.path, self.handler, methods=[self.method])


@contextmanager
def wrong_values() -> Iterator[None]:
    """Turn a ValueError into a problem."""
    try:
        yield
    except ValueError as error:
        field = error.field if isinstance(error, FieldError) else None
        raise bad_request(str(error), field=field) from error


async def decoded(request: Request, shape: type[T]) -> T:
    """Return the JSON of a request as a value; an empty body is an empty object."""
    body = await request.body()
    try:
        return msgspec.json.decode(body or b"{}", type=shape)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the JSON of this request is wrong: {error}") from error


def number(text: str | None, name: str, *, default: int, most: int) -> int:
    """Return a whole number of the query."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise bad_request(f"{name} is {text!r}; allowed: a whole number up to {most:,}")
    return int(text)


def json_answer(
    value: object,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a value as JSON."""
    return Response(
        msgspec.json.encode(value), status, headers=headers, media_type="application/json"
    )
