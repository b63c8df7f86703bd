"""A page that ends the process which parses it is met twice at most, killed for real."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.harness import kept
from tests.harness.commands import SOURCE_PATH, environment, run

if TYPE_CHECKING:
    import socket
    from pathlib import Path

pytestmark = pytest.mark.processes

# In every process that crawls: parsing this page ends the process as a crash of a parser would.
DEADLY = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mannerly.crawler.runtime.engine":
            from mannerly.crawler.page import harvest
            work = harvest.page_work
            def work_or_die(entry, answer, agent):
                if b"DEADLY" in answer.body:
                    os._exit(9)
                return work(entry, answer, agent)
            harvest.page_work = work_or_die
sys.meta_path.insert(0, Finder())
"""
PAGES = {
    "/": b"<a href=/deadly>1</a><a href=/good>2</a>",
    "/deadly": b"DEADLY <a href=/below>4</a>",
    "/below": b"below",
    "/good": b"<a href=/more>3</a>",
    "/more": b"the end",
}


READ = set(PAGES) - {"/below"}


def _errors(directory: Path, url: str) -> dict[str, str | None]:
    return {page.url.removeprefix(url[:-1]): page.error for page in kept(directory).pages}


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_page_that_kills_its_parser_is_recorded_as_an_error(
    processes: str, tmp_path: Path
) -> None:
    """Alone in its process it ends the command twice, in a worker the worker; then it has failed.

    The exit code says so until it was read, and `retry` reads it.
    """
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(DEADLY)
    asked: Counter[str] = Counter()

    def serve(connection: socket.socket, path: str) -> bool:
        asked[path] += 1
        known = path in PAGES
        body = PAGES.get(path, b"")
        status = "200 OK" if known else "404 Not Found"
        connection.sendall(answer(body, status, "Content-Type: text/html"))
        return True

    with RawServer(serve) as server:
        command = ["crawl", server.url(), "--processes", processes]
        command += ["--data-dir", str(tmp_path / "crawl"), "--seeding-strategy", "none"]
        command += ["--strategy", "fixed", "--delay", "0.05", "--max-rate", "unlimited"]
        codes = []
        for _ in range(4):
            path = f"{tmp_path / 'site'}{os.pathsep}{SOURCE_PATH}"
            done = run(*command, env=environment(PYTHONPATH=path))
            codes.append(done.returncode)
            if done.returncode != 9:
                break
        errors = _errors(tmp_path / "crawl", server.url())
        again = [run(name, tmp_path / "crawl") for name in ("resume", "retry")]
        read = _errors(tmp_path / "crawl", server.url())

    assert codes == ([9, 9, 1] if processes == "1" else [1])
    assert "1 page that crashed the parser twice" in done.stderr
    assert errors == dict.fromkeys(READ) | {"/deadly": "crashes_parser"}
    assert [each.returncode for each in again] == [1, 0], again[0].stderr
    assert "the links of 1 page are missing" in again[0].stderr
    assert read == dict.fromkeys(PAGES)
    assert asked["/deadly"] == 4
