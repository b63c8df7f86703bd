"""The variants of a page that a cache keeps apart."""

from __future__ import annotations

import pytest

from mannerly.crawler.web.caches import read_variant, variants_of

AGENT = "mannerly/1.2 (+https://a.example/bot)"


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("br", (("Accept-Encoding", "br"),)),
        ("Accept-Language: de", (("Accept-Language", "de"),)),
        ("X-Device:phone ", (("X-Device", "phone"),)),
    ],
)
def test_variant_is_a_header(text: str, headers: tuple[tuple[str, str], ...]) -> None:
    """An encoding has a short name; any other header is written out."""
    assert read_variant(text, AGENT).headers == headers


def test_phone_keeps_our_name_and_contact() -> None:
    """Its User-Agent is recognised as that of a phone, and site owners see who asks."""
    ((name, agent),) = read_variant("mobile", AGENT).headers

    assert name == "User-Agent"
    assert agent == "mannerly/1.2 (Linux; Android 14; Mobile) (+https://a.example/bot)"


@pytest.mark.parametrize(
    "text", ["", "phone", "Host: b.example", "authorization: secret", "Range: bytes=0-1", "A: \n"]
)
def test_other_texts_are_refused(text: str) -> None:
    """Also headers that decide where a request goes or who asks."""
    with pytest.raises(ValueError, match="mobile, gzip, br, zstd, identity, or a header"):
        read_variant(text, AGENT)


def test_plain_request_is_the_last_and_no_variant_is_asked_twice() -> None:
    """So the record of a page is that of its plain answer."""
    names = [each.name for each in variants_of(("mobile", "br", "mobile"), AGENT)]

    assert names == ["mobile", "br", "plain"]
