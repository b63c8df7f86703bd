"""Chooses the encoding of a page: by its byte order mark, the HTTP header, a meta element in the
first 1,024 bytes, or UTF-8, in this order. Undecodable bytes become U+FFFD, so reading never fails.

Only the encodings that browsers know are known here. Python's own table has codecs that are unsafe
for untrusted bytes: `punycode` takes quadratic time, `unicode_escape` interprets escapes, and UTF-7
hides markup from code that looks at the bytes.

Labels have the meaning they have on the web, not in the standards: `iso-8859-1` is windows-1252,
`gb2312` is GB 18030, `shift_jis` is code page 932. A meta element that says UTF-16 in ASCII letters
is wrong: the page is read as UTF-8.
"""

from __future__ import annotations

import re

# How far browsers look for a meta charset (HTML, "prescan a byte stream").
_PRESCAN_BYTES = 1024

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

# Labels on the left (several a line), the Python codec on the right.
_LABELS = {
    label: codec
    for labels, codec in (
        ("utf-8 utf8 unicode-1-1-utf-8", "utf-8"),
        ("utf-16 utf-16le unicode csunicode", "utf-16-le"),
        ("utf-16be", "utf-16-be"),
        ("windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 latin1 l1 ascii us-ascii", "cp1252"),
        ("windows-1250 cp1250 x-cp1250", "cp1250"),
        ("windows-1251 cp1251 x-cp1251", "cp1251"),
        ("windows-1253 cp1253 x-cp1253", "cp1253"),
        ("windows-1254 cp1254 x-cp1254 iso-8859-9 latin5", "cp1254"),
        ("windows-1255 cp1255 x-cp1255", "cp1255"),
        ("windows-1256 cp1256 x-cp1256", "cp1256"),
        ("windows-1257 cp1257 x-cp1257", "cp1257"),
        ("windows-1258 cp1258 x-cp1258", "cp1258"),
        ("windows-874 tis-620 iso-8859-11", "cp874"),
        ("iso-8859-2 latin2 l2", "iso8859-2"),
        ("iso-8859-3 latin3", "iso8859-3"),
        ("iso-8859-4 latin4", "iso8859-4"),
        ("iso-8859-5 cyrillic", "iso8859-5"),
        ("iso-8859-6 arabic", "iso8859-6"),
        ("iso-8859-7 greek", "iso8859-7"),
        ("iso-8859-8 iso-8859-8-i hebrew", "iso8859-8"),
        ("iso-8859-10 latin6", "iso8859-10"),
        ("iso-8859-13", "iso8859-13"),
        ("iso-8859-14", "iso8859-14"),
        ("iso-8859-15 latin9", "iso8859-15"),
        ("iso-8859-16", "iso8859-16"),
        ("koi8-r koi8 koi", "koi8-r"),
        ("koi8-u koi8-ru", "koi8-u"),
        ("ibm866 cp866", "cp866"),
        ("macintosh mac x-mac-roman", "mac-roman"),
        ("x-mac-cyrillic", "mac-cyrillic"),
        ("gbk gb2312 gb_2312-80 gb18030 chinese x-gbk", "gb18030"),
        ("big5 big5-hkscs cn-big5 x-x-big5", "big5hkscs"),
        ("shift_jis shift-jis sjis x-sjis ms_kanji windows-31j", "cp932"),
        ("euc-jp x-euc-jp", "euc-jp"),
        ("iso-2022-jp", "iso2022-jp"),
        ("euc-kr ks_c_5601-1987 korean windows-949", "cp949"),
    )
    for label in labels.split()
}

_META_CHARSET = re.compile(
    rb"<meta[^>]{0,512}?charset\s{0,8}=\s{0,8}[\"']?([\w.:-]{1,40})", re.IGNORECASE
)


# In ASCII_CODECS, markup has the bytes of ASCII, and no other character contains such a byte.
_MANY_BYTES = frozenset({"big5hkscs", "cp932", "cp949", "euc-jp", "gb18030"})
_OTHER_MARKUP = frozenset({"iso2022-jp", "utf-16-be", "utf-16-le"})
ASCII_CODECS = frozenset(_LABELS.values()) - _MANY_BYTES - _OTHER_MARKUP


def encoding(body: bytes, content_type: str | None) -> tuple[str, int]:
    """Return the codec of a page and the length of its byte order mark."""
    for bom, codec in _BOMS:
        if body.startswith(bom):
            return codec, len(bom)
    return _from_header(content_type) or _from_meta(body) or "utf-8", 0


def _from_header(content_type: str | None) -> str | None:
    if content_type is None:
        return None
    for parameter in content_type.lower().split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset":
            return _LABELS.get(value.strip().strip("\"'"))
    return None


def _from_meta(body: bytes) -> str | None:
    found = _META_CHARSET.search(body[:_PRESCAN_BYTES])
    if found is None:
        return None
    codec = _LABELS.get(found.group(1).decode("ascii", "replace").lower())
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec
