"""The address of a crawl in a server: `redis://HOST:PORT/DB#NAME`. It never holds a password.

    redis:// valkey://      plain
    rediss:// valkeys://    TLS

Of a primary that changes in a failover, the sentinels that know it are named, and its name there:

    redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/SERVICE/DB#NAME     (rediss+sentinel: TLS)

A password comes from the environment: `MANNERLY_REDIS_URL` may hold it in the URL of the same
server, or `MANNERLY_REDIS_PASSWORD_FILE` names a file with nothing else in it. It is read when a
connection is made, so child processes need the same environment and no argument.

A server beyond this machine must have a password and TLS, because a crawl's queue in the wrong
hands sends requests to any site: `MANNERLY_INSECURE_REDIS=1` allows one without.
"""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from .errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

URL_VARIABLE = "MANNERLY_REDIS_URL"
PASSWORD_FILE_VARIABLE = "MANNERLY_REDIS_PASSWORD_FILE"  # noqa: S105 - a name
INSECURE_VARIABLE = "MANNERLY_INSECURE_REDIS"
CA_FILE_VARIABLE = "MANNERLY_REDIS_CA_FILE"
SENTINEL_PASSWORD_FILE_VARIABLE = "MANNERLY_REDIS_SENTINEL_PASSWORD_FILE"  # noqa: S105 - a name
_SCHEMES = {"redis": False, "valkey": False, "rediss": True, "valkeys": True}
_SENTINEL = "+sentinel"
_PORT, _SENTINEL_PORT = 6379, 26379
_FORMS = "redis://HOST:PORT/DB or rediss://HOST:PORT/DB"
_SENTINEL_FORM = "redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB"
_LONGEST_NAME = 200
_NAME = re.compile(r"[^\s{}#\x00-\x1f\x7f]+")


class AddressRefused(StoreError):  # noqa: N818 - a state of the command line
    """The address, or the way to this server, is not acceptable."""

    exit_code = 2


class Address(NamedTuple):
    """A server and, if it is named, a crawl in it."""

    host: str
    port: int
    database: int
    user: str  # "": the server's default user
    is_tls: bool
    name: str  # of the crawl; "": none is named
    service: str = ""  # under which sentinels know the server
    sentinels: tuple[tuple[str, int], ...] = ()  # host and port are those of the first

    @property
    def server(self) -> str:
        """Return the URL of the server, as it is shown to people."""
        scheme = "rediss" if self.is_tls else "redis"
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        if not self.sentinels:
            return f"{scheme}://{user}{_joined(self.host, self.port)}/{self.database}"
        places = ",".join(_joined(host, port) for host, port in self.sentinels)
        service = quote(self.service, safe="")
        return f"{scheme}{_SENTINEL}://{user}{places}/{service}/{self.database}"

    @property
    def location(self) -> str:
        """Return what `open_crawl` takes."""
        return f"{self.server}#{quote(self.name, safe='-._~:')}"

    @property
    def is_loopback(self) -> bool:
        """Return whether the server, and its sentinels, are on this machine."""
        return all(map(_is_loopback, (self.host, *(host for host, _ in self.sentinels))))


def parse(location: str, *, needs_name: bool = True) -> Address:
    """Return the parts of a location or of a server's URL.

    Raises:
        AddressRefused: it is none, holds a password, or names no crawl although that is needed.
    """
    address, password = _split(location)
    if password is not None:
        raise AddressRefused(
            f"{address.server}: a password in a URL is shown by `ps`: put the URL into "
            f"{URL_VARIABLE}, or the password into a file (--redis-password-file)"
        )
    if needs_name and not address.name:
        raise AddressRefused(f"{address.server} names no crawl: add --crawl NAME")
    return address


def without_password(url: str) -> str:
    """Return the URL of a server as it may be shown and stored."""
    return _split(url)[0]._replace(name="").server


def located(url: str, name: str) -> str:
    """Return the location of a crawl in a server."""
    return check_name(parse(url, needs_name=False)._replace(name=name)).location


def check_name(address: Address) -> Address:
    """Return the address.

    Raises:
        AddressRefused: its crawl has a name that cannot be part of a key.
    """
    if len(address.name) > _LONGEST_NAME or not _NAME.fullmatch(address.name):
        raise AddressRefused(
            f"{address.name!r} cannot be the name of a crawl: use up to {_LONGEST_NAME} "
            "characters without spaces, braces and #"
        )
    return address


def password_of(address: Address, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the password for a server; None: there is none.

    Raises:
        AddressRefused: the password file cannot be read.
    """
    environ = os.environ if environ is None else environ
    if url := environ.get(URL_VARIABLE):
        known, password = _split(url)
        if password is not None and _server_of(known) == _server_of(address):
            return password
    return _password_in(environ.get(PASSWORD_FILE_VARIABLE))


def sentinel_password(environ: Mapping[str, str] | None = None) -> str | None:
    """Return the password of the sentinels themselves; None: there is none.

    Raises:
        AddressRefused: the password file cannot be read.
    """
    environ = os.environ if environ is None else environ
    return _password_in(environ.get(SENTINEL_PASSWORD_FILE_VARIABLE))


def require_safe(
    address: Address, password: str | None, environ: Mapping[str, str] | None = None
) -> None:
    """Check that a server beyond this machine has a password and TLS.

    Raises:
        AddressRefused: it has not, and --insecure-redis was not given.
    """
    environ = os.environ if environ is None else environ
    if address.is_loopback or environ.get(INSECURE_VARIABLE, "") not in ("", "0"):
        return
    missing = [
        *([] if password else ["a password"]),
        *([] if address.is_tls else ["TLS (rediss://)"]),
    ]
    if missing:
        raise AddressRefused(
            f"{address.server} is not this machine and would be used without "
            f"{' and '.join(missing)}: others on the network could steer the crawl. Protect it, or "
            "use --insecure-redis on a network that you trust"
        )


def _password_in(path: str | None) -> str | None:
    if not path:
        return None
    try:
        return Path(path).read_text("utf-8").strip("\r\n") or None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise AddressRefused(f"cannot read the password file {path}: {reason}") from None


def _server_of(address: Address) -> tuple[object, ...]:
    """Return what two addresses of one server have in common."""
    if address.sentinels:
        return (address.service, *sorted(address.sentinels))
    return address.host, address.port


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(text: str) -> tuple[Address, str | None]:
    scheme, _, rest = text.partition("://")
    if scheme.endswith(_SENTINEL):
        return _split_sentinels(scheme.removesuffix(_SENTINEL), rest)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise AddressRefused(f"the URL of a server is {_FORMS}") from None
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.query:
        raise AddressRefused(f"the URL of a server is {_FORMS}")
    if "," in parts.hostname:
        raise AddressRefused(f"several servers are sentinels: {_SENTINEL_FORM}")
    address = Address(
        parts.hostname,
        port or _PORT,
        _database(parts.path.strip("/")),
        unquote(parts.username or ""),
        _SCHEMES[parts.scheme],
        unquote(parts.fragment),
    )
    if address.name:
        check_name(address)
    return address, None if parts.password is None else unquote(parts.password)


def _split_sentinels(scheme: str, rest: str) -> tuple[Address, str | None]:
    rest, _, name = rest.partition("#")
    places, _, path = rest.partition("/")
    service, _, database = path.partition("/")
    login, at, places = places.rpartition("@")
    user, colon, password = login.partition(":")
    try:
        parts = [urlsplit(f"//{place}") for place in places.split(",")]
        sentinels = tuple(
            [(each.hostname or "", each.port or _SENTINEL_PORT) for each in parts if not each.path]
        )
    except ValueError:
        sentinels = ()
    is_named = bool(sentinels) and all(host for host, _ in sentinels)
    if scheme not in _SCHEMES or not service or "?" in rest or not is_named:
        raise AddressRefused(f"the URL of a server behind sentinels is {_SENTINEL_FORM}")
    address = Address(
        *sentinels[0],
        _database(database.strip("/")),
        unquote(user if at else ""),
        _SCHEMES[scheme],
        unquote(name),
        unquote(service),
        sentinels,
    )
    if address.name:
        check_name(address)
    return address, unquote(password) if colon else None


def _database(text: str) -> int:
    database = text or "0"
    if not database.isascii() or not database.isdigit():
        raise AddressRefused(f"the database {database!r} of the server's URL is not a number")
    return int(database)
