"""Charsets: every label that browsers know, with the meaning that it has on the web."""

from __future__ import annotations

import codecs

import pytest

from mannerly.crawler.page.html import parse_page
from mannerly.crawler.page.parsed import ParsedPage
from mannerly.crawler.web.charset import LABELS, decoded, encoding

URL = "https://example.com/"

# One label of each encoding of the standard, but its own name, some octets, and their text.
SAMPLES = [
    ("unicode11utf8", "é", "é".encode()),
    ("866", "Привет", b"\x8f\xe0\xa8\xa2\xa5\xe2"),
    ("iso8859-2", "łódź", b"\xb3\xf3d\xbc"),
    ("iso_8859-3:1988", "ĉ", b"\xe6"),
    ("l4", "ģ", b"\xbb"),
    ("csisolatincyrillic", "Привет", b"\xbf\xe0\xd8\xd2\xd5\xe2"),
    ("asmo-708", "سلام", b"\xd3\xe4\xc7\xe5"),
    ("sun_eu_greek", "αβγ", b"\xe1\xe2\xe3"),
    ("visual", "שלום", b"\xf9\xec\xe5\xed"),
    ("logical", "שלום", b"\xf9\xec\xe5\xed"),
    ("iso-ir-157", "đ", b"\xb9"),
    ("iso885913", "ž", b"\xfe"),
    ("iso885914", "ŵ", b"\xf0"),
    ("csisolatin9", "€", b"\xa4"),
    ("iso-8859-16", "ș", b"\xba"),
    ("koi8_r", "Привет", b"\xf0\xd2\xc9\xd7\xc5\xd4"),
    ("koi8-ru", "Київ", b"\xeb\xc9\xa7\xd7"),
    ("csmacintosh", "é", b"\x8e"),
    ("dos-874", "ไทย", b"\xe4\xb7\xc2"),
    ("x-cp1250", "ł", b"\xb3"),
    ("cp1251", "Привет", b"\xcf\xf0\xe8\xe2\xe5\xf2"),
    ("iso-8859-1", "“é€”", b"\x93\xe9\x80\x94"),
    ("x-cp1253", "α", b"\xe1"),
    ("latin5", "ğ", b"\xf0"),
    ("cp1255", "ש", b"\xf9"),
    ("cp1256", "س", b"\xd3"),
    ("cp1257", "ž", b"\xfe"),
    ("cp1258", "đ", b"\xf0"),
    ("x-mac-ukrainian", "Привет", b"\x8f\xf0\xe8\xe2\xe5\xf2"),
    ("gb_2312-80", "中文", b"\xd6\xd0\xce\xc4"),
    ("gb18030", "中😀", b"\xd6\xd0\x949\xfc6"),
    ("cn-big5", "中文", b"\xa4\xa4\xa4\xe5"),
    ("cseucpkdfmtjapanese", "日本", b"\xc6\xfc\xcb\xdc"),
    ("csiso2022jp", "日本", b"\x1b$BF|K\\\x1b(B"),
    ("ms932", "日本①", b"\x93\xfa\x96{\x87@"),
    ("ks_c_5601-1989", "한국", b"\xc7\xd1\xb1\xb9"),
    ("hz-gb-2312", "\ufffd", b"~{VPND~}"),
    ("unicodefffe", "é", b"\x00\xe9"),
    ("ucs-2", "é", b"\xe9\x00"),
    ("x-user-defined", "a\uf7ff\uf780", b"a\xff\x80"),
]


def test_labels_are_those_of_the_standard() -> None:
    """There are 228 labels, and each leads to a codec that exists or is read by its own rule."""
    assert len(LABELS) == 228
    assert all(label == label.lower().strip() for label in LABELS)
    for codec in set(LABELS.values()) - {"replacement", "x-user-defined"}:
        assert codecs.lookup(codec)


@pytest.mark.parametrize(("label", "text", "octets"), SAMPLES)
def test_each_encoding_is_read(label: str, text: str, octets: bytes) -> None:
    """A Content-Type with any label, in either case, gives the text that browsers show."""
    for spelling in (label, f' "{label.upper()}" '):
        codec, mark = encoding(octets, f"text/html; charset={spelling}")

        assert (decoded(octets, codec), mark) == (text, 0)


def test_samples_cover_every_encoding() -> None:
    """There is a sample for each of the standard's forty encodings."""
    assert len(SAMPLES) == 40
    assert {LABELS[label] for label, _, _ in SAMPLES} == set(LABELS.values())


def test_encodings_that_hide_markup_have_no_links() -> None:
    """A page in an encoding that browsers refuse to read has one character and no links."""
    body = b"<title>x</title><a href=/a>a</a>"

    found = parse_page(body, "text/html; charset=iso-2022-kr", URL)

    assert isinstance(found, ParsedPage)
    assert (found.links, found.title) == ([], None)


def test_label_is_looked_for_in_meta_elements_only() -> None:
    """A charset in text, in another element or past the first 1,024 bytes says nothing."""
    meta = b"<META name=x content='text/html; Charset = \"KOI8-R\"'>"

    assert encoding(b"<p charset=koi8-r>" + meta, None) == ("koi8-r", 0)
    assert encoding(b"<meta name=a> charset=koi8-r", None) == ("utf-8", 0)
    assert encoding(b" " * 1024 + meta, None) == ("utf-8", 0)


def test_user_defined_in_a_meta_element_is_windows_1252() -> None:
    """A meta element cannot choose x-user-defined, a header can."""
    body = b"<meta charset=x-user-defined><title>\x80</title>"

    from_meta = parse_page(body, "text/html", URL)
    from_header = parse_page(body, "text/html; charset=x-user-defined", URL)

    assert isinstance(from_meta, ParsedPage)
    assert isinstance(from_header, ParsedPage)
    assert (from_meta.title, from_header.title) == ("€", "\uf780")
