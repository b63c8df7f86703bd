"""Options with a secret in them: the password of a proxy, a login, the value of a header.

    proxy     http://user:SECRET@host:port            or env:NAME, file:PATH for the whole URL
    auth      HOST=user:SECRET, HOST=bearer:SECRET    or HOST=env:NAME, HOST=file:PATH for both
    header    NAME: SECRET, HOST=NAME: SECRET

A SECRET is the text itself, or a reference: env:NAME or file:PATH. A reference is read when a crawl
begins and may be stored and printed. A secret itself is neither stored nor printed: it is replaced
by asterisks, and has to be given again when the crawl is resumed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mannerly.crawler.web.words import HIDDEN

NOTHING = "none"  # clears what another place has set
_LINE_ENDS = frozenset("\r\n\0")  # they would end the header that the secret is in
MAX_BYTES = 16_384  # of a file with a secret

_FIELD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110 §5.6.2: the name of a header
_HEADER = re.compile(rf"\A((?:[^\s=]+=)?{_FIELD}:[ \t]*)(.*)\Z", re.DOTALL)
_LOGIN = re.compile(r"\A([^\s=]+=)(?!env:|file:)([^:]*:)(.*)\Z", re.DOTALL)
_REFERRED_LOGIN = re.compile(r"\A([^\s=]+=)((?:env|file):.*)\Z", re.DOTALL)
_PROXY = re.compile(r"\A((?:[^:/@]*://)?[^:]*:)(.*)(@[^@]*)\Z", re.DOTALL)
_REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)


class SecretText(NamedTuple):
    """A text around its secret."""

    before: str
    secret: str
    after: str = ""

    @property
    def is_reference(self) -> bool:
        """Return whether the secret is only named."""
        return _REFERENCE.fullmatch(self.secret) is not None


def split(name: str, text: str) -> SecretText | None:
    """Return the parts of an option's value; None if it has no secret, or is malformed."""
    if name in ("proxy", "redis_url"):
        if _REFERENCE.fullmatch(text):
            return SecretText("", text)
        match = _PROXY.match(text)
        return SecretText(match[1], match[2], match[3]) if match else None
    if name == "header":
        match = _HEADER.match(text)
        return SecretText(match[1], match[2]) if match else None
    match = _LOGIN.match(text)
    if match:
        return SecretText(match[1] + match[2], match[3])
    match = _REFERRED_LOGIN.match(text)
    return SecretText(match[1], match[2]) if match else None


def hidden(name: str, text: str) -> str:
    """Return a value as it may be stored and printed."""
    parts = split(name, text)
    if parts is None:
        if name == "proxy":
            return text  # it has no password
        known, separator, _ = text.replace(":", "=").partition("=")
        return f"{known}={HIDDEN}" if separator else HIDDEN  # malformed: any of it may be secret
    return text if parts.is_reference else f"{parts.before}{HIDDEN}{parts.after}"


def is_hidden(name: str, text: str) -> bool:
    """Return whether a value has asterisks in place of its secret."""
    parts = split(name, text)
    return parts is not None and parts.secret == HIDDEN


def absolute(name: str, text: str) -> str:
    """Return a value whose file is named by its whole path: a crawl may be resumed elsewhere."""
    parts = split(name, text)
    if parts is None or not parts.secret.startswith("file:"):
        return text
    path = Path(parts.secret.removeprefix("file:")).expanduser().absolute()
    return f"{parts.before}file:{path}{parts.after}"


def revealed(name: str, text: str) -> str:
    """Return a value with its secret, read from where it refers to.

    Raises:
        ValueError: the variable is not set, or the file cannot be read; the message tells which.
    """
    parts = split(name, text)
    if parts is None or not parts.is_reference:
        return text
    secret = read_reference(parts.secret)
    if name == "proxy" and parts.before:
        secret = quote(secret, safe="")  # it becomes a part of a URL
    return f"{parts.before}{secret}{parts.after}"


def read_reference(text: str) -> str:
    """Return the secret that `env:NAME` or `file:PATH` refers to.

    Raises:
        ValueError: the variable is not set, or the file cannot be read; the message tells which.
    """
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        raise ValueError("env:NAME or file:PATH")
    secret = _from_file(reference[2]) if reference[1] == "file" else os.environ.get(reference[2])
    if not secret:
        raise ValueError(f"env:{reference[2]} with a variable that is set and not empty")
    if not _LINE_ENDS.isdisjoint(secret):
        raise ValueError(f"{text} with a value of one line")
    return secret


def _from_file(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ValueError(f"file:{name} with a file that can be read ({why})") from None
    secret = text.strip("\r\n")
    if not secret or len(text) > MAX_BYTES or not _LINE_ENDS.isdisjoint(secret):
        raise ValueError(f"file:{name} with a file of one line")
    return secret
