"""Who may call the service: names, origins, tokens, sizes and rates, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from mannerly.service.access import MAX_BODY, Access
from mannerly.service.operations import Problem

TOKEN = "a-long-secret"
JSON = ("content-type", "application/json")


def call(
    access: Access,
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = "/api/jobs",
    body: bytes = b"",
    host: str = "127.0.0.1:7465",
) -> tuple[int, dict[str, str]]:
    """Send one request; return the status and the headers of the answer."""
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 5),
        "headers": [(b"host", host.encode()), *((n.encode(), v.encode()) for n, v in headers)],
    }
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return parts.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(access(scope, receive, send))
    names = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], names


def served(**options: Any) -> Access:
    return Access(PlainTextResponse("ok"), **options)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:7465",
        "localhost:7465",
        "[::1]:7465",
        "LOCALHOST",
        "127.0.0.1",
        "crawl.example:80",
    ],
)
def test_names_of_the_service_are_served(host: str) -> None:
    """Loopback in its spellings, and the names that the operator gave."""
    assert call(served(hosts=["crawl.example"]), host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:7465", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b"),
        *("127.0.0.1:7465@evil.example", "[::2]:7465", "0.0.0.0:7465", "127.0.0.1:7465/"),
    ],
)
def test_other_names_are_refused(host: str) -> None:
    """A name that was made to lead here (DNS rebinding) is not ours."""
    assert call(served(), host=host)[0] == 421


def test_second_host_header_is_refused() -> None:
    """Two programs would read two different ones."""
    assert call(served(), ("host", "evil.example"))[0] == 421


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://127.0.0.1:9999")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
        [("origin", "http://127.0.0.1:7465"), ("sec-fetch-site", "cross-site")],
    ],
)
def test_pages_of_other_sites_change_nothing(headers: list[tuple[str, str]]) -> None:
    """A form or a script of another page is refused before its body is read."""
    assert call(served(), *headers, JSON, method="POST", body=b"{}")[0] == 403


def test_own_page_and_programs_may_change_things() -> None:
    """The browser says that the page is ours; a program says nothing."""
    ours = [("origin", "http://127.0.0.1:7465"), ("sec-fetch-site", "same-origin")]

    assert call(served(), *ours, JSON, method="POST", body=b"{}")[0] == 200
    assert call(served(), JSON, method="POST", body=b"{}")[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_bodies_of_forms_are_refused(kind: str) -> None:
    """A form cannot send JSON, so it cannot be used against us."""
    answer = call(
        served(), ("content-type", kind), ("content-length", "2"), method="POST", body=b"{}"
    )

    assert answer[0] == 415


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "99999999999999999999"])
def test_long_bodies_are_refused_by_their_length(length: str) -> None:
    """Before a byte of them is read."""
    assert call(served(), JSON, ("content-length", length), method="POST")[0] == 413


def test_length_that_is_no_number_is_refused() -> None:
    """`int` would accept some of these."""
    for length in ("-1", "1_0", "²", "0x10"):
        headers = (JSON, ("content-length", length.encode().decode("latin-1")))
        assert call(served(), *headers, method="POST")[0] == 400


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
def test_wrong_tokens_are_refused(value: str) -> None:
    """With the header that says what is missing."""
    status, headers = call(served(token=TOKEN), ("authorization", value))

    assert status == 401
    assert headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "path", ["/api/jobs", "/api/jobs/x/pages", "/metrics", "/api/openapi.json"]
)
def test_everything_about_crawls_needs_the_token(path: str) -> None:
    """Metrics tell what is crawled, too."""
    assert call(served(token=TOKEN), path=path)[0] == 401
    assert call(served(token=TOKEN), ("authorization", f"Bearer {TOKEN}"), path=path)[0] == 200


@pytest.mark.parametrize("path", ["/", "/static/live.js", "/healthz", "/readyz"])
def test_page_and_health_need_no_token(path: str) -> None:
    """The page asks for the token itself; a load balancer has none."""
    assert call(served(token=TOKEN), path=path)[0] == 200


def test_too_many_changes_are_refused_for_a_moment() -> None:
    """Reading is not limited by this."""
    access = served()

    statuses = [call(access, JSON, method="POST", body=b"{}")[0] for _ in range(60)]
    reading = call(access)[0]

    assert statuses[0] == 200
    assert 429 in statuses
    assert reading == 200


def test_answers_allow_nothing_from_elsewhere() -> None:
    """The policy of every answer, refused ones included."""
    for host in ("127.0.0.1", "evil.example"):
        headers = call(served(), host=host)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_metrics_can_be_open_beside_a_token() -> None:
    """Nothing else is."""
    access = served(token=TOKEN, has_open_metrics=True)

    paths = ("/metrics", "/api/jobs", "/api/metrics", "/metrics/x")

    assert [call(access, path=path)[0] for path in paths] == [200, 401, 401, 200]


def test_body_that_does_not_arrive_is_refused() -> None:
    """With the time that it has; a client that sent its body may stay for any time."""

    async def ask() -> tuple[int, bytes]:
        sent: list[Any] = []
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}

        async def receive() -> dict[str, Any]:
            raise TimeoutError  # as if the time were over

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await receive()
            except Problem as problem:
                await problem.response()(scope, receive, send)

        await Access(app)(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]

    status, body = asyncio.run(ask())

    assert status == 408
    assert b"did not arrive within 30 s" in body
