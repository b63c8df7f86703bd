"""The service and the page of one crawl, as ASGI applications."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .access import Access
from .crawl_api import CrawlApi
from .jobs_api import JobsApi
from .metrics import CONTENT_TYPE, metrics_text
from .openapi import openapi
from .pages import page_routes
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from .dashboard import OneCrawlApi
    from .ending import Ending
    from .metrics import Reading
    from .operations import Operation
    from .service import Service


def service_app(
    service: Service, ending: Ending, *, hosts: Iterable[str] = (), token: str | None = None
) -> ASGIApp:
    """Return the application of a service; it runs the jobs while it is up."""

    @asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(service.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            service.close()

    async def readyz(_request: Request) -> Response:
        """Answer when jobs can be accepted."""
        service.book.jobs()
        return PlainTextResponse("ok\n")

    operations = [*JobsApi(service).operations(), *CrawlApi(service.live, ending).operations()]
    more = [Route("/readyz", readyz), _metrics(service.reading)]
    return _app(operations, more, running, ending, hosts, token)


def dashboard_app(
    api: OneCrawlApi, ending: Ending, *, hosts: Iterable[str] = (), token: str | None = None
) -> ASGIApp:
    """Return the application of the page of one crawl."""
    more = [_metrics(api.reading)]
    return _app(api.operations(), more, None, ending, hosts, token)


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
    ending: Ending,
    hosts: Iterable[str],
    token: str | None,
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
        exception_handlers={Problem: _problem, HTTPException: _http_error},
    )
    return Access(ending.around(app), hosts=hosts, token=token)


async def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem), "it is registered for them"
    return error.response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for them"
    status = HTTPStatus(error.status_code)
    detail = {
        HTTPStatus.NOT_FOUND: f"there is nothing at {request.url.path}",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible here",
    }.get(status, error.detail)
    return Problem(status, detail, dict(error.headers or {})).response()
