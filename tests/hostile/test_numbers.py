"""One crawl of many hosts, each of which answers with another absurd number, in both stores.

One server answers for every address of 127.31.0.0/24: the last byte chooses the number. Half of the
hosts name it in robots.txt, the others in every header that has a number or a date.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.commands import invoke
from tests.hostile.absurd import ABSURD

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes


FIELDS = (
    *("Retry-After", "RateLimit-Reset", "X-RateLimit-Limit", "X-RateLimit-Reset", "Date", "Age"),
    *("Last-Modified", "ETag", "Expires"),
)
FAST = (
    "--strategy",
    "fixed",
    "--delay",
    "0.05",
    "--give-up-after",
    "1",
    "--seeding-strategy",
    "none",
)


def _answer(connection: socket.socket, path: str) -> bool:
    number = int(connection.getsockname()[0].rpartition(".")[2]) - 1
    text = ABSURD[number // 2].replace("\n", " ")
    status, headers, body = "200 OK", ["Content-Type: text/html"], b"<a href=/1>x</a>"
    if path == "/robots.txt":
        line = f"Crawl-delay: {text}\nRequest-rate: 1/{text}" if number % 2 else "Allow: /"
        headers, body = ["Content-Type: text/plain"], f"User-agent: *\n{line}\n".encode()
    elif number % 2 == 0:
        status = "429 No" if path == "/1" else "200 OK"
        headers += [f"{name}: {text}" for name in FIELDS]
        headers += [f"Set-Cookie: a=1; Max-Age={text}", "X-RateLimit-Remaining: 1"]
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    head = "\r\n".join(lines).replace("\x00", "?").encode("latin-1", "replace")
    connection.sendall(head + b"\r\n\r\n" + body)
    return True


@pytest.fixture(scope="module")
def seeds() -> Iterator[list[str]]:
    with RawServer(_answer, "0.0.0.0") as server:  # every address of loopback
        yield [f"http://127.31.0.{n + 1}:{server.port}/" for n in range(2 * len(ABSURD))]


def pages(place: tuple[str, ...], target: Path) -> set[str]:
    outcome = invoke("export", *place, "-o", target)
    assert outcome.exit_code == 0, outcome.output
    records = map(json.loads, target.read_text("utf-8").splitlines())
    return {record["url"] for record in records}


@pytest.mark.parametrize(
    "kind",
    ["sqlite", pytest.param("valkey", marks=pytest.mark.long)],  # a shared crawl ends slowly
)
def test_absurd_numbers_brick_no_crawl(
    kind: str, seeds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl ends, is sound, and can be looked at, resumed, retried and crawled anew."""
    with ExitStack() as stack:
        crawl = [str(tmp_path / "crawl")]
        memory = str(tmp_path / "hosts.sqlite")
        where = ["--data-dir", crawl[0]]
        if kind == "valkey":
            memory = stack.enter_context(LocalServer()).url
            crawl = [f"{memory}#absurd"]
            where = ["--redis-url", memory, "--crawl", "absurd", "--data-dir", str(tmp_path / "d")]
        monkeypatch.setenv("MANNERLY_MEMORY", memory)
        host = seeds[0].split("/")[2]

        first = invoke("crawl", *seeds, *FAST, *where)
        found = pages((*crawl,), tmp_path / "first.jsonl")
        looks = [
            invoke("status", *crawl),
            invoke("hosts", *crawl),
            invoke("host", "show", *crawl, host),
            invoke("host", "forget", *crawl, host),
            invoke("doctor", *crawl),
        ]
        again = [invoke("retry", *crawl, "--given-up")]
        if kind == "valkey":  # it begins when a worker joins
            again = [invoke("crawl", *where)]

    assert first.exit_code == 1, first.output
    assert found >= set(seeds[::2])  # the others may have asked for a pause before their first page
    assert [each.exit_code for each in again] == [1], [each.output for each in again]
    assert [look.exit_code for look in looks] == [0] * len(looks), [look.output for look in looks]
