"""The scanner is optional: whatever is wrong with the pcre2 package, the tree reads every page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from operator import itemgetter
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pcre2
import pytest
from tests.harness.sites import Request, serving

from mannerly.crawler.page import scan
from mannerly.crawler.page.pcre import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATTERN, FIELD = rb"<(\w++)>", b"\0$1"
SAMPLES = {b"x <a> y <b>": b"\0a\0b", b"": b""}


def scanner() -> Scanner:
    return Scanner(PATTERN, FIELD, SAMPLES)


def binding(
    substitute: Callable[..., object] | None = None, *, compile_error: Exception | None = None
) -> tuple[ModuleType, ModuleType]:
    """The real binding, but for one function."""

    def compiled(pattern: bytes, flags: int) -> object:
        if compile_error is not None:
            raise compile_error
        return pcre2.compile(pattern, flags)

    inner = ModuleType("pcre2._cy")
    inner.SubstituteOption = pcre2._cy.SubstituteOption  # type: ignore[attr-defined]
    if substitute is not None:
        inner.substitute = substitute  # type: ignore[attr-defined]
    outer = ModuleType("pcre2")
    vars(outer).update(
        VERBOSE=pcre2.VERBOSE, IGNORECASE=pcre2.IGNORECASE, compile=compiled, _cy=inner
    )
    return outer, inner


def install(monkeypatch: pytest.MonkeyPatch, outer: object, inner: object = None) -> None:
    monkeypatch.setitem(sys.modules, "pcre2", outer)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pcre2._cy", inner)  # type: ignore[arg-type]


def test_scanner_works_with_the_binding_of_this_environment() -> None:
    """Fields come out, nothing is wrong, and the pages of this process are scanned."""
    works = scanner()

    assert works.fields(b"1<c>2<D>3") == b"\0c\0D"
    assert works.problem is None
    assert scan.scanner_problem() is None


def test_scanner_is_off_where_the_binding_is_not_what_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Missing, renamed, failing and wrong bindings each give their reason, and none raises."""

    def wrong(*_: object, **__: object) -> tuple[bytes, int]:
        return b"", 0

    def with_other_arguments(code: object, subject: bytes) -> tuple[bytes, int]:
        return subject, 0

    machine_code = pcre2.LibraryError(-48)
    bindings = {
        "ModuleNotFoundError": (None, None),
        "AttributeError": (SimpleNamespace(__path__=[], _cy=SimpleNamespace()), SimpleNamespace()),
        "AttributeError: module 'pcre2._cy' has no attribute 'substitute'": binding(None),
        "LibraryError: no more memory": binding(wrong, compile_error=machine_code),
        "RuntimeError: later": binding(wrong, compile_error=RuntimeError("later")),
        "TypeError": binding(with_other_arguments),
        "pcre2 gave wrong results for a sample page": binding(wrong),
    }
    for reason, (outer, inner) in bindings.items():
        install(monkeypatch, outer, inner)
        off = scanner()
        assert off.problem is not None, reason
        assert off.problem.startswith(reason), (reason, off.problem)
        assert off.fields(b"<a>") is None, reason


def failing(errors: Iterator[Exception | None]) -> Callable[..., object]:
    real = pcre2._cy.substitute

    def substitute(*words: object, **options: object) -> object:
        error = next(errors)
        if error is not None:
            raise error
        return real(*words, **options)

    return substitute


def test_unexpected_error_switches_the_scanner_off_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The binding is not asked again after it raised what it never should, and the reason stays."""
    calls = iter([None, None, None, ValueError("Unrecognized PCRE2 error code"), None])
    install(monkeypatch, *binding(failing(calls)))
    breaks = scanner()

    assert breaks.fields(b"<a>") == b"\0a"
    assert breaks.problem is None
    assert breaks.fields(b"<a>") is None
    assert breaks.fields(b"<a>") is None
    assert breaks.problem == "ValueError: Unrecognized PCRE2 error code"
    assert list(calls) == [None]


def test_limits_and_memory_are_a_matter_of_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page made to exceed a limit of PCRE2 does not take the scanner from the next page."""
    limits = [pcre2.LibraryError(code) for code in (-46, -47, -53, -63)]
    errors = [*limits, MemoryError()]
    calls = chain([None, None], *([error, None] for error in errors))
    install(monkeypatch, *binding(failing(calls)))
    goes_on = scanner()

    for error in errors:
        assert goes_on.fields(b"<a>") is None, error
        assert goes_on.fields(b"<a>") == b"\0a", error
    assert goes_on.problem is None


PAGES = {
    "/": b'<title>Home &amp; more</title><a href="/plain">1</a><a href="/odd" rel="x">2</a>',
    "/plain": b"<base href=/deep/><a href=er>x</a><a href=no rel=nofollow>y</a><iframe src=/frame>",
    "/odd": b"<p title='<a href=no>'><a href='/late'>z</a><meta http-equiv=refresh content=0;/r>",
    "/deep/er": b"<select><p></select><link rel=next href=/next>",
    "/big": b"<title>big</title>" + b"<p>filler</p>" * 100_000 + b"<a href=/last>",
    "/next": b"<meta name=robots content=nofollow><a href=/no>",
    "/late": b'<a href="/big">b</a>',
    "/last": b"",
}

QUICKLY = ("--strategy=fixed", "--max-rate=unlimited", "--delay=0.001", "--seeding-strategy=none")
PROBLEM = "from mannerly.crawler.page.scan import scanner_problem as problem; print(problem())"


@pytest.fixture
def site() -> Iterator[str]:
    """A web of one host, with pages that are scanned, that get a tree, and that are big."""

    def respond(request: Request) -> None:
        body = PAGES.get(request.path)
        request.answer(404 if body is None else 200, body or b"")

    with serving(respond) as origin:
        yield f"{origin}/"


@pytest.mark.processes
def test_crawl_without_pcre2_has_the_same_results(site: str, tmp_path: Path) -> None:
    """In a process, and in the processes that it starts, that cannot import the package."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "pcre2.py").write_text("raise ImportError('not installed')\n")

    def output(*words: str, first_on_path: str) -> str:
        path = os.pathsep.join(filter(None, [first_on_path, *sys.path]))
        done = subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def crawled(name: str, first_on_path: str = "") -> list[dict[str, object]]:
        folder, pages = f"--data-dir={tmp_path / name}", tmp_path / f"{name}.jsonl"
        words = ("-m", "mannerly", "crawl", site, folder, f"--output={pages}", *QUICKLY)
        output(*words, first_on_path=first_on_path)
        records = sorted(map(json.loads, pages.read_text().splitlines()), key=itemgetter("url"))
        kept = ("url", "status", "title", "links", "depth", "canonical", "error", "bytes")
        return [{key: record.get(key) for key in kept} for record in records]

    without = str(tmp_path / "without")
    records, records_without = crawled("a"), crawled("b", without)

    assert output("-c", PROBLEM, first_on_path="") == "None"
    assert output("-c", PROBLEM, first_on_path=without) == "ImportError: not installed"
    assert records == records_without
    assert {site.rstrip("/") + path for path in PAGES} <= {record["url"] for record in records}
    assert sum(record["status"] == 404 for record in records) == 2  # /frame and /r
