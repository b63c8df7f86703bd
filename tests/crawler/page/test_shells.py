"""Which pages look like a shell, also where their author wants that look to take for ever."""

from __future__ import annotations

import pytest

from mannerly.crawler.page.shells import SHELL_BYTES, looks_like_shell

HTML = "text/html"
SCRIPT = b"<script src=/app.js></script>"
TEXT = b"<p>" + b"Words that anyone can read. " * 20

SHELLS = {
    "an empty root": b"<html><head><title>App</title></head><body><div id=root></div>" + SCRIPT,
    "text in scripts": b"<script>" + b"let words = 1; " * 50 + b"</script>",
    "text in a script without an end": b"<p>Loading<script>" + b"let words = 1; " * 50,
    "text in a comment": SCRIPT + b"<!-- " + b"words <p> " * 50 + b"-->",
    "text in a style": SCRIPT + b"<STYLE>" + b"p { color: red } " * 50 + b"</Style >",
    "a long title": b"<title>" + b"words " * 100 + b"</title>" + SCRIPT,
}
PAGES = {
    "text": SCRIPT + TEXT,
    "a head without an end": b"<!DOCTYPE html><head><title>Shop</title>"
    + SCRIPT
    + b"<body>"
    + TEXT,
    "a head and a body left out": b"<title>Shop</title>" + SCRIPT + TEXT,
    "elements with names of their own": SCRIPT + b"<svg-icon></svg-icon><head-line>" + TEXT,
    "a script in a comment": SCRIPT + b"<!-- <script> -->" + TEXT,
    "an empty comment": SCRIPT + b"<!-->" + TEXT,
    "no script": b"<div id=root></div>",
}


@pytest.mark.parametrize("name", SHELLS)
def test_a_page_without_text_is_a_shell(name: str) -> None:
    assert looks_like_shell(SHELLS[name], HTML)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_text_or_without_scripts_is_none(name: str) -> None:
    assert not looks_like_shell(PAGES[name], HTML)


def filled(start: bytes, piece: bytes) -> bytes:
    """Return a page of the largest size that is looked at, full of one piece."""
    return start + piece * ((SHELL_BYTES - len(start)) // len(piece))


AS_TEXT = (b"<", b"</", b"<a ", b"<!-", b"<script", b"</script", b"</script ", b"<\n", b">", b"\0")
AS_MARKUP = (
    b"<!--", b"<!---", b"<!-->", b"<script>", b"<style>", b"<svg/", b"<title>", b"<template><svg>",
    b"<script><!--", b"<>", b" ",
)  # fmt: skip


@pytest.mark.parametrize("piece", AS_TEXT + AS_MARKUP)
def test_a_hostile_page_is_looked_at_in_one_pass(piece: bytes) -> None:
    """A pattern that looks at the rest of the page again for each piece would take minutes here."""
    assert looks_like_shell(filled(SCRIPT, piece), HTML) is (piece in AS_MARKUP)
    assert looks_like_shell(filled(b"<script>", piece), HTML)
    assert looks_like_shell(filled(SCRIPT + b"<!-- ", piece), HTML)


def test_a_page_of_white_space_after_an_end_tag_is_looked_at_in_one_pass() -> None:
    assert looks_like_shell(b"<script></script" + b" " * (SHELL_BYTES - 16), HTML)


def test_a_large_page_is_not_looked_at() -> None:
    assert not looks_like_shell(filled(SCRIPT, b" ") + b" " * 100, HTML)
