"""The part of the API that shows one crawl and steers it, in the service and on its own page.

    GET    …/status, hosts, hosts/{host}, errors, queue, explain, proof, history, pages, report
    GET    …/events                    server-sent events: the live state
    PATCH  …/hosts/{host}              pause, resume, pace, forget, retry

Reading a store may take long: it is done in a thread, one at a time for each crawl. A report reads
every page, which may take as much memory as a crawl: it is written by a process of its own, which
ends with the request.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response, StreamingResponse

import mannerly
from mannerly.crawler.inspection.hosts import host_key
from mannerly.crawler.store.base import StoreMissing
from mannerly.crawler.stored import open_crawl
from mannerly.exports.export import item_pieces, page_pieces
from mannerly.exports.target import Format

from .host_table import HostQuery, TableSort
from .operations import (
    Operation,
    Problem,
    bad_request,
    decoded,
    json_answer,
    not_found,
    number,
    wrong_values,
)
from .proof import proof
from .queue_preview import preview
from .stream import MOST_READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from mannerly.crawler.stored import StoredCrawl

    from .live_crawl import LiveCrawl
    from .server import LastAnswers

MOST_HOSTS = 1000  # in one answer
LONGEST_PATTERN = 500
PAGE_FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv"}

T = TypeVar("T")


class HostChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New values for one host; those that are left out stay as they are."""

    paused: bool | None = None
    delay_s: float | None = None
    max_rate: float | None = None
    per_host: int | None = None
    forget: bool = False
    retry: bool = False


class CrawlApi:
    """The operations on crawls that `find` returns by their id; it raises a Problem for others."""

    def __init__(self, find: Callable[[str], LiveCrawl], ending: LastAnswers) -> None:
        self._find = find
        self._ending = ending
        self._reports = Reports()

    def operations(self) -> list[Operation]:
        """Return all operations."""
        one = "/api/jobs/{id}"
        hosts = ("sort", "order", "state", "filter", "limit", "after", "keep")
        changed = HTTPStatus.NO_CONTENT
        return [
            Operation("GET", f"{one}/status", self.status),
            Operation("GET", f"{one}/hosts", self.hosts, query=hosts),
            Operation("GET", f"{one}/hosts/{{host}}", self.host),
            Operation(
                "PATCH", f"{one}/hosts/{{host}}", self.change_host, HostChange, None, changed
            ),
            Operation("GET", f"{one}/errors", self.errors, query=("code", "host")),
            Operation("GET", f"{one}/queue", self.queue, query=("pattern",)),
            Operation("GET", f"{one}/explain", self.explain, query=("url",)),
            Operation("GET", f"{one}/proof", self.proof),
            Operation("GET", f"{one}/history", self.history),
            Operation("GET", f"{one}/events", self.events),
            Operation("GET", f"{one}/pages", self.pages, query=("format",)),
            Operation("GET", f"{one}/items", self.items),
            Operation("GET", f"{one}/report", self.report),
        ]

    async def status(self, request: Request) -> Response:
        """Return what `mannerly status --json` prints for the crawl."""
        status = await self._read(request, lambda crawl, _live: crawl.status())
        return json_answer(status._asdict())

    async def hosts(self, request: Request) -> Response:
        """List hosts: `sort`, `order` (asc, desc), `state`, `filter`, `limit` (50), `after` (an
        answer's `next`); `keep` names hosts that come back in this order, whatever the sort is.
        """
        query = request.query_params
        limit = number(query.get("limit"), "limit", default=50, most=MOST_HOSTS)
        after = number(query.get("after"), "after", default=0, most=10**9)
        try:
            sort = TableSort(query.get("sort", TableSort.QUEUED.value))
        except ValueError:
            raise bad_request(f"sort is unknown; allowed: {', '.join(TableSort)}") from None
        order = query.get("order", "desc")
        if order not in ("asc", "desc"):
            raise bad_request(f"order is {order!r}; allowed: asc, desc")
        wanted = HostQuery(
            sort,
            order == "asc",
            query.get("state", ""),
            query.get("filter", ""),
            after,
            limit,
            tuple(query.getlist("keep")[:MOST_HOSTS]),
        )

        def read(crawl: StoredCrawl, live: LiveCrawl) -> object:
            with crawl.view() as view:
                return live.hosts.page(view, wanted)

        return json_answer(await self._read(request, read))

    async def host(self, request: Request) -> Response:
        """Describe one host."""
        with wrong_values():
            name = host_key(request.path_params["host"])

        def read(crawl: StoredCrawl, live: LiveCrawl) -> object:
            with crawl.view() as view:
                return live.hosts.one(view, name, list(live.events))

        found = await self._read(request, read)
        if found is None:
            raise not_found(f"host {name!r} in this crawl")
        return json_answer(found)

    async def change_host(self, request: Request) -> Response:
        """Pause, resume, retry or set the pace of one host."""
        change = await decoded(request, HostChange)
        if change == HostChange():
            raise bad_request(
                "nothing to change: give paused, delay_s, max_rate, per_host, forget or retry"
            )
        name = request.path_params["host"]

        def apply(crawl: StoredCrawl, _live: LiveCrawl) -> None:
            host = crawl.host(name)
            if (change.delay_s, change.max_rate, change.per_host) != (None, None, None):
                host.set(delay_s=change.delay_s, max_rate=change.max_rate, per_host=change.per_host)
            if change.paused is not None:
                host.pause() if change.paused else host.resume()
            if change.forget:
                host.forget()
            if change.retry:
                crawl.retry(host=name)

        with wrong_values():
            await self._read(request, apply)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def errors(self, request: Request) -> Response:
        """Return the errors, grouped by kind and host; with `code` and `host` some URLs of both."""
        query = request.query_params
        code, host = query.get("code"), query.get("host")

        def read(crawl: StoredCrawl, live: LiveCrawl) -> object:
            with crawl.view() as view:
                live.errors.update(view)
            if code is None or host is None:
                return live.errors.described()
            return {"urls": live.errors.urls(code, host)}

        return json_answer(await self._read(request, read))

    async def queue(self, request: Request) -> Response:
        """Return the longest queues, or which queued URLs match a `pattern`; nothing is changed."""
        pattern = request.query_params.get("pattern", "")
        if len(pattern) > LONGEST_PATTERN:
            raise bad_request(f"pattern has more than {LONGEST_PATTERN} characters")

        def read(crawl: StoredCrawl, live: LiveCrawl) -> object:
            with crawl.view() as view:
                return preview(view, pattern, live.hosts.delays())

        with wrong_values():
            return json_answer(await self._read(request, read))

    async def explain(self, request: Request) -> Response:
        """Explain the state of one URL."""
        url = request.query_params.get("url")
        if not url:
            raise bad_request("name the URL: ?url=https://example.org/page")
        with wrong_values():
            found = await self._read(request, lambda crawl, _live: crawl.explain(url))
        return json_answer(found._asdict())

    async def proof(self, request: Request) -> Response:
        """Return the politeness proof: of each host the smallest gap and the gap in force."""

        def read(crawl: StoredCrawl, _live: LiveCrawl) -> object:
            with crawl.view() as view:
                return proof(view)

        return json_answer(await self._read(request, read))

    async def history(self, request: Request) -> Response:
        """Return the course of the crawl: points as `live.point` has them, oldest first."""
        live = self._live(request)
        return json_answer({"points": live.history.points(), "events": list(live.events)})

    async def events(self, request: Request) -> Response:
        """Stream the live state as server-sent events, at most four a second."""
        stream = self._live(request).stream
        if stream.readers >= MOST_READERS:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, f"more than {MOST_READERS} pages are open"
            )
        return stream.response(self._ending)

    async def pages(self, request: Request) -> Response:
        """Stream the records of all pages so far: `format` jsonl (default) or csv."""
        fmt = request.query_params.get("format", "jsonl")
        if fmt not in PAGE_FORMATS:
            raise bad_request(f"format is {fmt!r}; allowed: {', '.join(PAGE_FORMATS)}")
        await self._read(request, lambda _crawl, _live: None)  # there is one
        headers = {"Content-Disposition": f'attachment; filename="pages.{fmt}"'}
        pieces = page_pieces(self._live(request).location, Format(fmt))
        return StreamingResponse(pieces, media_type=PAGE_FORMATS[fmt], headers=headers)

    async def items(self, request: Request) -> Response:
        """Stream the items that handlers have made of pages so far, as lines of JSON."""
        await self._read(request, lambda _crawl, _live: None)  # there is one
        headers = {"Content-Disposition": 'attachment; filename="items.jsonl"'}
        pieces = item_pieces(self._live(request).location)
        return StreamingResponse(pieces, media_type=PAGE_FORMATS["jsonl"], headers=headers)

    async def report(self, request: Request) -> Response:
        """Return the report of the crawl as it is now: one HTML file."""
        await self._read(request, lambda _crawl, _live: None)  # there is one
        directory = Path(await run_in_threadpool(mkdtemp, prefix="mannerly-"))
        file = directory / "report.html"
        gone = BackgroundTask(shutil.rmtree, directory, ignore_errors=True)
        try:
            await self._reports.write(self._live(request).location, file)
        except BaseException:
            await gone()
            raise
        return FileResponse(file, media_type="text/html", filename=file.name, background=gone)

    def _live(self, request: Request) -> LiveCrawl:
        return self._find(request.path_params["id"])

    async def _read(self, request: Request, ask: Callable[[StoredCrawl, LiveCrawl], T]) -> T:
        """Ask the store of a crawl something, in a thread."""
        live = self._live(request)

        def read() -> T:
            with open_crawl(live.location) as crawl:
                return ask(crawl, live)

        try:
            async with live.reading:
                return await asyncio.to_thread(read)  # which is left behind at the end
        except StoreMissing:
            raise Problem(HTTPStatus.CONFLICT, "the crawl has not begun yet") from None


MOST_AT_ONCE = 2
LONGEST_S = 1800.0


class Reports:
    """The reports that are being written. Two at once; others wait for their turn."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def write(self, location: str, file: Path) -> None:
        """Write the report of a crawl to a file.

        Raises:
            Problem: it cannot be made; the text says why.
        """
        async with self._places:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "mannerly", "report", location),
                *("--output", str(file), "--quiet"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(os.environ),
            )
            try:
                _, said = await asyncio.wait_for(process.communicate(), LONGEST_S)
            except TimeoutError:
                raise Problem(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"the report took more than {LONGEST_S / 60:.0f} minutes",
                ) from None
            finally:
                with suppress(ProcessLookupError):  # it has ended
                    process.kill()
        if process.returncode:
            words = said.decode(errors="replace").strip() or "its process died"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"there is no report: {words[-500:]}")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the process uses this package."""
    source = str(Path(mannerly.__file__).parent.parent)
    paths = [source, *filter(None, [given.get("PYTHONPATH")])]
    return {**given, "PYTHONPATH": os.pathsep.join(paths)}
