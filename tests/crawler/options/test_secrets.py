"""Secrets in options: hidden where they are shown or stored, read from where they are named."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mannerly.crawler.options.secrets import absolute, hidden, is_hidden, read_reference, revealed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("proxy", "http://joe:secret@proxy:80", "http://joe:***@proxy:80"),
        ("proxy", "joe:secret@proxy", "joe:***@proxy"),
        ("proxy", "http://a@b:secret@proxy", "http://a@b:***@proxy"),
        ("proxy", "http://joe:se:c@ret@proxy", "http://joe:***@proxy"),
        ("proxy", "http://proxy:80/", "http://proxy:80/"),
        ("proxy", "http://joe:env:PW@proxy:80", "http://joe:env:PW@proxy:80"),
        ("proxy", "env:PROXY", "env:PROXY"),
        ("auth", "a.example=joe:secret", "a.example=joe:***"),
        ("auth", "a.example=joe:se=c:ret", "a.example=joe:***"),
        ("auth", "http://a.example:81=joe:secret", "http://a.example:81=joe:***"),
        ("auth", "a.example=bearer:secret", "a.example=bearer:***"),
        ("auth", "a.example=bearer:env:TOKEN", "a.example=bearer:env:TOKEN"),
        ("auth", "a.example=file:/run/login", "a.example=file:/run/login"),
        ("auth", "a.example=secret", "a.example=***"),
        ("header", "X-Key: secret", "X-Key: ***"),
        ("header", "a.example=X-Key: secret=x", "a.example=X-Key: ***"),
        ("header", "a.example=X-Key: env:KEY", "a.example=X-Key: env:KEY"),
        ("header", "not a header=secret", "not a header=***"),
    ],
)
def test_secret_is_not_shown(name: str, text: str, shown: str) -> None:
    """A reference is no secret; what is malformed may hold one."""
    assert hidden(name, text) == shown
    assert hidden(name, shown) == shown
    assert is_hidden(name, shown) == (shown.count("***") == 1 and "secret" not in shown) or (
        text in ("a.example=secret", "not a header=secret")
    )


@pytest.mark.parametrize("name", ["proxy", "auth", "header"])
def test_long_text_takes_linear_time(name: str) -> None:
    """Half a megabyte of colons is searched once."""
    text = "a:" * 250_000

    began = time.process_time()
    hidden(name, text)
    took_s = time.process_time() - began

    assert took_s < 1.0  # 0.02


def test_reference_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a variable or a file; the end of its line is not part of the secret."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGIN", "joe:pass=w:ord")
    (tmp_path / "token").write_text("abc\n")

    assert revealed("auth", "a.example=env:LOGIN") == "a.example=joe:pass=w:ord"
    assert revealed("auth", "a.example=bearer:file:token") == "a.example=bearer:abc"
    assert revealed("header", "X-Key: env:LOGIN") == "X-Key: joe:pass=w:ord"
    assert revealed("proxy", "http://u:env:LOGIN@p:1") == "http://u:joe%3Apass%3Dw%3Aord@p:1"
    assert revealed("proxy", "http://u:plain@p:1") == "http://u:plain@p:1"
    assert absolute("auth", "a.example=file:token") == f"a.example=file:{tmp_path / 'token'}"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("env:NOT_SET", "env:NOT_SET with a variable that is set and not empty"),
        ("file:gone", "file:gone with a file that can be read"),
        ("file:two", "file:two with a file of one line"),
        ("file:empty", "file:empty with a file of one line"),
        ("file:binary", "not UTF-8 text"),
    ],
)
def test_reference_that_leads_nowhere_is_named(
    reference: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the first request, but before anything is sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(ValueError, match=words):
        revealed("auth", f"a.example={reference}")


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_a_secret_of_several_lines_is_refused(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end the header that it is in; the message does not print it."""
    path = tmp_path / "secret"
    path.write_bytes(f"geheim{end}X-Other: 1".encode())
    monkeypatch.setenv("TOKEN", f"geheim{end}X-Other: 1")

    for reference in ("env:TOKEN", f"file:{path}"):
        with pytest.raises(ValueError, match="one line") as refused:
            read_reference(reference)
        assert "geheim" not in str(refused.value)
