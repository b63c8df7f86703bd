"""What surrounds a crawl: the texts that reach a terminal, the options, the libraries below."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.hostile.commands import PLAIN, run

from mannerly.crawler.store import OLDEST_SQLITE, sqlite_version

if TYPE_CHECKING:
    from tests.hostile.conftest import Figure

HTML = "Content-Type: text/html; charset=utf-8"
POISON = (
    "\x1b]52;c;ZXZpbA==\x07\x1b[31m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07"
    "\u202egnp.exe\u2066\x9b2J\r\nforged: line [/bold]"
)
# C0 but for line ends and tabs, C1, and marks that turn a line around.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.processes
@pytest.mark.parametrize(
    "words",
    [
        ("--user-agent", "crawler\r\nX-Injected: 1"),
        ("--user-agent", "crawler\x00"),
        ("--contact", "me@example.org\r\nCookie: a=b"),
    ],
)
def test_line_break_in_a_header_is_refused(
    words: tuple[str, str], tmp_path: Path, figure: Figure
) -> None:
    """A header that would smuggle another one is exit code 2, before anything is sent."""
    with RawServer(routes({}), "127.0.0.2") as server:
        if "\x00" in words[1]:
            environment = {"MANNERLY_USER_AGENT": words[1].replace("\x00", "\x01")}
            ended = run("crawl", server.url(), cwd=tmp_path, env=environment)
        else:
            ended = run("crawl", server.url(), *words, cwd=tmp_path)
        sent = list(server.heads)

    figure("S11", f"line breaks and control characters in options: exit code 2, {len(sent)} sent")
    assert (ended.code, sent) == (2, [])
    assert not RAW.search(ended.said)


@pytest.mark.processes
def test_crawled_text_reaches_no_terminal_raw(tmp_path: Path, figure: Figure) -> None:
    """Titles, paths, header values and errors of a poisoned site, through every command."""
    poisoned = answer(
        f"<title>{POISON}</title><a href='/{POISON}'>x</a><a href='/next'>y</a>".encode(),
        "200 OK",
        HTML,
        "Server: \x1b[2J",
    )
    table = {"/": poisoned, "/next": answer(b"", "302 Found", f"Location: /{'%1b'}]52;x")}
    data_dir = tmp_path / "crawl"
    with RawServer(routes(table), "127.0.0.2") as server:
        said = [run("crawl", server.url(), *PLAIN, "--data-dir", str(data_dir), "-v").said]
        for words in (
            ("status", str(data_dir)),
            ("hosts", str(data_dir)),
            ("host", "show", str(data_dir), server.url()),
            ("explain", str(data_dir), server.url("/next")),
            ("export", str(data_dir), "-o", "-"),
        ):
            said.append(run(*words).said)

    raw = [text for text in said if RAW.search(text)]
    figure(
        "S23", f"{len(said)} commands on a poisoned crawl: {len(raw)} with a raw control character"
    )
    assert raw == []


def test_sqlite_is_new_enough(figure: Figure) -> None:
    """The library that is installed is at least 3.51.3."""
    figure("S31", f"SQLite {apsw.sqlite_lib_version()}")
    assert sqlite_version() >= OLDEST_SQLITE == (3, 51, 3)


FORBIDDEN = {"pickle", "marshal", "shelve", "yaml", "dill"}
# What the processes of one crawl say to each other, over pipes that nobody else has; and what the
# contract of plug-ins has pickled itself, to show that a plug-in's work can be sent that way. The
# requests of a Scrapy project hold any objects of its code: Scrapy's job directories are pickles,
# too, and the file belongs to the user of the project alone.
TRUSTED = [
    *(("child.py", "pickle"), ("contract.py", "pickle"), ("helpers.py", "pickle")),
    *(("scrapy_cookies.py", "pickle"), ("scrapy_durable.py", "pickle")),
]


def test_source_runs_no_data(figure: Figure) -> None:
    """Nothing in the package unpickles, evaluates or executes what somebody else wrote."""
    found = []
    files = sorted((Path(__file__).parents[2] / "src").rglob("*.py"))
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    found += [(file.name, each.name) for each in names if each.name in FORBIDDEN]
                case ast.ImportFrom(module=module) if module in FORBIDDEN:
                    found.append((file.name, module))
                case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                    found.append((file.name, name))

    figure("S24", f"{len(files)} modules: {len(found)} uses, all of what we have pickled")
    assert sorted(found) == TRUSTED
