"""One operation of the HTTP API, and what all operations share: decoding, answers, errors, OpenAPI.

A request is decoded into a value first, so that unknown fields and wrong types are refused with
the path of the field. Errors are problem details (RFC 9457, `application/problem+json`).
The OpenAPI document is made from the operations and the types of their values.
"""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from starlette.responses import Response
from starlette.routing import Route

import mannerly
from mannerly.crawler.store.base import StoreError, StoreFull

from .jobs.model import FieldError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from starlette.requests import Request


_REFERENCE = "#/components/schemas/{name}"
_PROBLEM = {
    "type": "object",
    "description": "A request that cannot be served (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["title", "status", "detail"],
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document for these operations."""
    shapes = [each for one in operations for each in (one.request, one.answer) if each is not None]
    unique = list(dict.fromkeys(shapes))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    schema_of = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mannerly",
            "version": mannerly.__version__,
            "description": "Crawls as jobs: create them, watch them, steer them.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(one: Operation, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    text = inspect.getdoc(one.handler) or ""
    content = {} if one.answer is None else {"application/json": {"schema": schema_of[one.answer]}}
    problem = {"schema": {"$ref": _REFERENCE.format(name="Problem")}}
    described: dict[str, Any] = {
        "operationId": one.handler.__name__,
        "summary": text.partition("\n")[0],
        "parameters": [
            *(_parameter(name, "path") for name in re.findall(r"{(\w+)}", one.path)),
            *(_parameter(name, "query") for name in one.query),
        ],
        "responses": {
            str(one.status.value): {"description": one.status.phrase, "content": content},
            "4XX": {
                "description": "The request is wrong.",
                "content": {"application/problem+json": problem},
            },
        },
    }
    if one.request is not None:
        body = {"application/json": {"schema": schema_of[one.request]}}
        described["requestBody"] = {"required": True, "content": body}
    return described


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": {"type": "string"},
    }


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
