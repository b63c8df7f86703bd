"""The files of the live page: they are read once, and served as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from .problems import not_found

if TYPE_CHECKING:
    from starlette.requests import Request

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def page_routes() -> list[Route]:
    """Return the routes of the page and its files. A request never names a path of the disk."""
    files = {
        str(path.relative_to(STATIC).as_posix()): (path.read_bytes(), TYPES[path.suffix])
        for path in STATIC.rglob("*")
        if path.suffix in TYPES
    }

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
