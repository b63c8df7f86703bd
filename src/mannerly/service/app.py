"""The service and the page of one crawl, as ASGI applications."""

from __future__ import annotations

import errno
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mannerly.crawler.host_view import STATES
from mannerly.crawler.inspection.host_words import state_words
from mannerly.crawler.store.base import StoreError

from .access import Access
from .crawl_api import CrawlApi
from .jobs_api import JobsApi
from .metrics import CONTENT_TYPE, metrics_text
from .operations import Problem, not_found, openapi, store_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from .background import Background
    from .dashboard import OneCrawlApi
    from .metrics import Reading
    from .operations import Operation
    from .server import LastAnswers
    from .service import Service


def service_app(
    service: Service, ending: LastAnswers, *, hosts: Iterable[str] = (), token: str | None = None
) -> ASGIApp:
    """Return the application of a service; it runs the jobs while it is up."""
    operations = [*JobsApi(service).operations(), *CrawlApi(service.live, ending).operations()]
    more = [_readyz(service.background), _metrics(service.reading)]
    app = _app(operations, more, lambda _app: service.running(), ending)
    return Access(app, hosts=hosts, token=token)


def dashboard_app(
    api: OneCrawlApi,
    ending: LastAnswers,
    *,
    hosts: Iterable[str] = (),
    token: str | None = None,
    has_open_metrics: bool = False,
) -> ASGIApp:
    """Return the application of the page of one crawl."""
    more = [_readyz(api.background), _metrics(api.reading)]
    app = _app(api.operations(), more, None, ending)
    return Access(app, hosts=hosts, token=token, has_open_metrics=has_open_metrics)


def _readyz(background: Background) -> Route:
    async def readyz(_request: Request) -> Response:
        """Answer while everything in the background works; otherwise name what does not."""
        health = background.health().items()
        reasons = [f"{name}: {task.error}" for name, task in health if task.error is not None]
        if reasons:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"not working: {'; '.join(reasons)}")
        return PlainTextResponse("ok\n")

    return Route("/readyz", readyz)


def _metrics(reading: Callable[[], Reading]) -> Route:
    async def metrics(request: Request) -> Response:
        """Return the totals for Prometheus; `?hosts=N`: of the N busiest hosts, too."""
        asked = request.query_params.get("hosts", "0")
        if not asked.isascii() or not asked.isdigit() or len(asked) > 4:
            raise Problem(HTTPStatus.BAD_REQUEST, "hosts is not a whole number of at least 0")
        return Response(metrics_text(reading(), hosts=int(asked)), media_type=CONTENT_TYPE)

    return Route("/metrics", metrics)


def _app(
    operations: list[Operation],
    more: list[Route],
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None,
    ending: LastAnswers,
) -> ASGIApp:
    document = msgspec.json.encode(openapi(operations))

    async def described(_request: Request) -> Response:
        """Describe this API (OpenAPI)."""
        return Response(document, media_type="application/json")

    async def healthz(_request: Request) -> Response:
        """Answer as long as the process is alive."""
        return PlainTextResponse("ok\n")

    app = Starlette(
        routes=[
            *(operation.route() for operation in operations),
            Route("/api/openapi.json", described),
            Route("/healthz", healthz),
            *more,
            *page_routes(),
        ],
        lifespan=lifespan,
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_error,
            StoreError: _store_error,
            OSError: _system_error,
        },
    )
    return ending.around(app)


async def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem), "it is registered for them"
    return error.response()


async def _store_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, StoreError), "it is registered for them"
    return store_problem(error).response()


async def _system_error(_request: Request, error: Exception) -> Response:
    """Answer when a file could not be written; clients learn only of a full disk."""
    assert isinstance(error, OSError), "it is registered for them"
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    problem = Problem(HTTPStatus.INSUFFICIENT_STORAGE, "no room on the disk: free some space")
    return problem.response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for them"
    status = HTTPStatus(error.status_code)
    detail = {
        HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path}",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible here",
    }.get(status, error.detail)
    return Problem(status, detail, dict(error.headers or {})).response()


STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def host_states() -> bytes:
    """Return the module that tells the page how each state of a host is shown."""
    shown = {
        state: (row.icon, state_words(state).capitalize(), row.words, row.tone, row.is_hatched)
        for state, row in STATES.items()
    }
    return b"export const HOST_STATES = " + msgspec.json.encode(shown) + b";\n"


def page_routes() -> list[Route]:
    """Return the routes of the page and its files. A request never names a path of the disk."""
    files = {
        str(path.relative_to(STATIC).as_posix()): (path.read_bytes(), TYPES[path.suffix])
        for path in STATIC.rglob("*")
        if path.suffix in TYPES
    }
    files["host_states.js"] = host_states(), TYPES[".js"]

    async def page(_request: Request) -> Response:
        """Return the page."""
        content, kind = files["index.html"]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def file(request: Request) -> Response:
        """Return a file of the page."""
        found = files.get(request.path_params["name"])
        if found is None:
            raise not_found("such file")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "no-cache"})

    return [
        Route("/", page),
        Route("/jobs/{id}", page),
        Route("/static/{name:path}", file),
    ]
