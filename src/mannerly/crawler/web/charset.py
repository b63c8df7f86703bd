"""Read a Content-Type, and choose the encoding of a page.

The encoding is that of the byte order mark, the HTTP header, a meta element in the first 1,024
bytes, or UTF-8, in this order. Undecodable bytes become U+FFFD, so reading never fails.

Only the encodings that browsers know are known here. Python's own table has codecs that are unsafe
for untrusted bytes: `punycode` takes quadratic time, `unicode_escape` interprets escapes, and UTF-7
hides markup from code that looks at the bytes.

Labels have the meaning they have on the web, not in the standards: `iso-8859-1` is windows-1252,
`gb2312` is GB 18030, `shift_jis` is code page 932. A meta element that says UTF-16 in ASCII letters
is wrong: the page is read as UTF-8; one that says x-user-defined means windows-1252. Encodings that
hide markup from filters (`iso-2022-kr`, `hz-gb-2312`) are not read at all: such a page is one
U+FFFD ("replacement"), as in browsers.
"""

from __future__ import annotations

import re
from functools import lru_cache

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@lru_cache(maxsize=64)
def media_type(content_type: str | None) -> str:
    """Return the type in a Content-Type header, in lower case; empty without a header."""
    return (content_type or "").partition(";")[0].strip().lower()


# How far browsers look for a meta charset (HTML, "prescan a byte stream").
_PRESCAN_BYTES = 1024

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))

_BOM_STARTS = frozenset(bom[:2] for bom, _ in _BOMS)

_REPLACEMENT = "replacement"
_USER_DEFINED = "x-user-defined"

# A Python codec, or one of the two names above, and the labels that mean it: all 228 labels of the
# Encoding standard (https://encoding.spec.whatwg.org/#names-and-labels). Where Python lacks an
# encoding of the standard, it is the nearest one that Python has.
_TABLE = """
utf-8           unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
cp866           866 cp866 csibm866 ibm866
iso8859-2       csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2
iso8859-2       latin2
iso8859-3       csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3
iso8859-3       latin3
iso8859-4       csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4
iso8859-4       latin4
iso8859-5       csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5
iso8859-5       iso_8859-5:1988
iso8859-6       arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6
iso8859-6       iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso8859-7       csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7
iso8859-7       iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek
iso8859-8       csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8
iso8859-8       iso88598 iso_8859-8 iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical
iso8859-10      csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso8859-13      iso-8859-13 iso8859-13 iso885913
iso8859-14      iso-8859-14 iso8859-14 iso885914
iso8859-15      csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso8859-16      iso-8859-16
koi8-r          cskoi8r koi koi8 koi8-r koi8_r
koi8-u          koi8-ru koi8-u
mac-roman       csmacintosh mac macintosh x-mac-roman
cp874           dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
cp1250          cp1250 windows-1250 x-cp1250
cp1251          cp1251 windows-1251 x-cp1251
cp1252          ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100
cp1252          iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252
cp1252          x-cp1252
cp1253          cp1253 windows-1253 x-cp1253
cp1254          cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9
cp1254          iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254
cp1255          cp1255 windows-1255 x-cp1255
cp1256          cp1256 windows-1256 x-cp1256
cp1257          cp1257 windows-1257 x-cp1257
cp1258          cp1258 windows-1258 x-cp1258
mac-cyrillic    x-mac-cyrillic x-mac-ukrainian
gb18030         chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk
gb18030         gb18030
big5hkscs       big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp          cseucpkdfmtjapanese euc-jp x-euc-jp
iso2022-jp      csiso2022jp iso-2022-jp
cp932           csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
cp949           cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989
cp949           ksc5601 ksc_5601 windows-949
replacement     csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement
utf-16-be       unicodefffe utf-16be
utf-16-le       csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
x-user-defined  x-user-defined
"""

LABELS = {
    label: codec for codec, *labels in map(str.split, _TABLE.split("\n")[1:-1]) for label in labels
}

_CHARSET = re.compile(rb"charset\s{0,8}=\s{0,8}[\"']?([\w.:-]{1,40})")

# x-user-defined: the upper half of the octets stands for private characters.
_PRIVATE_USE = {octet: 0xF700 + octet for octet in range(0x80, 0x100)}

# In ASCII_CODECS, markup has the bytes of ASCII, and no other character contains such a byte.
_MANY_BYTES = frozenset({"big5hkscs", "cp932", "cp949", "euc-jp", "gb18030"})
_OTHER_MARKUP = frozenset({"iso2022-jp", "utf-16-be", "utf-16-le", _REPLACEMENT, _USER_DEFINED})
ASCII_CODECS = frozenset(LABELS.values()) - _MANY_BYTES - _OTHER_MARKUP


def encoding(body: bytes, content_type: str | None) -> tuple[str, int]:
    """Return the codec of a page and the length of its byte order mark."""
    if body[:2] in _BOM_STARTS:
        for bom, codec in _BOMS:
            if body.startswith(bom):
                return codec, len(bom)
    return _from_header(content_type) or _from_meta(body) or "utf-8", 0


def decoded(body: bytes, codec: str) -> str:
    """Return the text of a body, by a codec that `encoding` has returned."""
    if codec == _REPLACEMENT:
        return "\ufffd" if body else ""
    if codec == _USER_DEFINED:
        return body.decode("latin-1").translate(_PRIVATE_USE)
    return body.decode(codec, "replace")


@lru_cache(maxsize=64)  # a crawl meets few, and each page has one
def _from_header(content_type: str | None) -> str | None:
    if content_type is None:
        return None
    for parameter in content_type.lower().split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset":
            return LABELS.get(value.strip().strip("\"'"))
    return None


def _from_meta(body: bytes) -> str | None:
    label = _meta_label(body[:_PRESCAN_BYTES].lower())
    codec = None if label is None else LABELS.get(label)
    if codec == _USER_DEFINED:
        return "cp1252"
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _meta_label(start: bytes) -> str | None:
    """Return the label in the first meta element that has one; linear, whatever the bytes."""
    for found in _CHARSET.finditer(start):
        tag = start.rfind(b"<meta", 0, found.start())
        if tag >= 0 and b">" not in start[tag : found.start()]:
            return found.group(1).decode("ascii", "replace")
    return None
