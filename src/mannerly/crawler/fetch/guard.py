"""Refuse connections into private networks: the guard judges every address before it is connected.

A page may link to `http://10.0.0.5/admin`, to a name that resolves there, or to a name that
resolves to one address when checked and to another when connected. So the verdict is given on
the address that is about to be connected, inside the client's open-socket hook, and names are
never trusted. Only the public web is allowed: the table below follows IANA's special-purpose
registries (2025), and of IPv6 only 2000::/3 is public at all.

Exceptions:

- a seed that is *itself* private (a literal address, `localhost`, a name without a dot or under
  a suffix for private use) allows exactly its host:port; `private_seeds` names them, for a notice.
  A seed with a public name allows no private address: a public name that its owner points at
  127.0.0.1 is the attack;
- `--allow-net`, a network (every port of it) or a host:port. Only this opens the metadata services
  of clouds, which hand out credentials: not even a seed does.

Ports: 80, 443, 8000-8999, and a seed's own on its own host, so that no link makes the crawler
contact a mail server.

With a proxy the guard sees URLs only: it refuses literal addresses and ports, but the proxy
resolves the names and connects.

Pure: no resolver, no socket. A name alone is never judged here.
"""

from __future__ import annotations

import re
import socket
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

DEFAULT_PORTS = {"http": 80, "https": 443}
PUBLIC_PORTS = frozenset({80, 443, *range(8000, 9000)})

# A serialised URL, nothing looser: printable ASCII, no userinfo, no backslash before the path.
# All parsers find the same host in such a string; the comparison in `start` relies on that.
_URL = re.compile(
    r"(https?)://(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._~!$&'()*+,;=-]+)(?::([0-9]{1,5}))?"
    r"(?:[/?#][!-~]*)?"
)

_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata service lives here too
        "127.0.0.0/8",
        "168.63.129.16/32",  # a public number, but a cloud host's own platform service
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20")
)  # all inside 2000::/3; Teredo is in the first
# Services that hand out the credentials of the machine that asks: AWS, Google, Azure and most other
# clouds; containers at AWS; IPv6 at AWS and Google; Alibaba, Oracle, Tencent; Azure's platform.
_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),
        *("fd00:ec2::254", "fd20:ce::254"),
        *("100.100.100.200", "192.0.0.192", "169.254.0.23"),
        "168.63.129.16",
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")

# RFC 6761, 6762, 8375, and the top-level domain that ICANN reserved for private use in 2024.
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".lan", ".test")

# Hosts whose early verdict is cached: parsing an address takes ten times as long as a lookup.
_REMEMBERED = 4096


class AddressVerdict(StrEnum):
    """The guard's decision about an address: allowed, or the reason why it is blocked."""

    ALLOWED = "allowed"
    BLOCKED_ADDRESS = "blocked_address"
    BLOCKED_PORT = "blocked_port"


def split_origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host (lower case, no brackets) and port; None if it is no serialised URL."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, host, port_text = match.groups()
    port = int(port_text) if port_text else DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        return None
    return scheme, host.strip("[]").lower(), port


class NetworkGuard:
    """Decides which addresses may be connected, from the seeds and what `--allow-net` names."""

    def __init__(self, seeds: Iterable[str] = (), allow_net: Iterable[str] = ()) -> None:
        self._allowed: set[tuple[str, int]] = set()  # hosts and ports that --allow-net names
        self._seeds: set[tuple[str, int]] = set()  # hosts and ports of the seeds
        self._private_seeds: set[tuple[str, int]] = set()  # of these: may be private addresses
        self._networks: list[Network] = []
        self._verdicts: dict[tuple[str, int], AddressVerdict] = {}  # of hosts and ports
        self.add_seeds(seeds)
        for entry in allow_net:
            self._open_for_entry(entry)

    def add_seeds(self, seeds: Iterable[str]) -> None:
        """Let the hosts and ports of these URLs be connected."""
        for seed in seeds:
            self._open_for_seed(seed)
        self._verdicts.clear()

    @property
    def private_seeds(self) -> list[str]:
        """Return the host:port of the seeds that open a private network."""
        literals = ((host, port, _literal(host)) for host, port in self._private_seeds)
        return sorted(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port, literal in literals
            if literal is None or not (literal in _METADATA or _is_public(_unwrap(literal)))
        )

    def judge(self, address: str, port: int, host: str) -> AddressVerdict:
        """Return the verdict on a connection to `address`, which `host` resolved to."""
        place = (_canonical(host), port)
        if place in self._allowed:
            return AddressVerdict.ALLOWED
        parsed = _parse(address)
        if parsed is None:
            return AddressVerdict.BLOCKED_ADDRESS
        inner = _unwrap(parsed)
        # The plain loop, because a network never contains an address of the other family.
        if any(parsed in network or inner in network for network in self._networks):
            return AddressVerdict.ALLOWED
        if inner in _METADATA:
            return AddressVerdict.BLOCKED_ADDRESS
        if place in self._private_seeds:
            return AddressVerdict.ALLOWED
        if not _is_public(inner):
            return AddressVerdict.BLOCKED_ADDRESS
        is_open = port in PUBLIC_PORTS or place in self._seeds
        return AddressVerdict.ALLOWED if is_open else AddressVerdict.BLOCKED_PORT

    def judge_host(self, host: str, port: int) -> AddressVerdict:
        """Return the verdict that is possible before any lookup: on literal addresses and ports.

        A name passes: its address is judged later, unless a proxy resolves it.
        """
        verdict = self._verdicts.get((host, port))
        if verdict is None:
            if len(self._verdicts) >= _REMEMBERED:
                self._verdicts.clear()
            verdict = self._verdicts[host, port] = self._judge_unresolved(host, port)
        return verdict

    def _judge_unresolved(self, host: str, port: int) -> AddressVerdict:
        literal = _literal(host)
        if literal is not None:
            return self.judge(str(literal), port, host)
        place = (_canonical(host), port)
        is_open = port in PUBLIC_PORTS or place in self._seeds or place in self._allowed
        is_open = is_open or bool(self._networks)  # it may resolve to an address of these
        return AddressVerdict.ALLOWED if is_open else AddressVerdict.BLOCKED_PORT

    def _open_for_seed(self, seed: str) -> None:
        origin = split_origin(seed)
        if origin is None:
            raise ValueError(f"a seed is a serialised http or https URL, not {seed!r}")
        _, host, port = origin
        place = (_canonical(host), port)
        self._seeds.add(place)
        if _is_private_name(host):
            self._private_seeds.add(place)

    def _open_for_entry(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry))
        except ValueError:
            origin = split_origin(f"http://{entry}") if _has_port(entry) else None
            if origin is None:
                raise ValueError(
                    f"--allow-net takes a network (10.0.0.0/8) or host:port, not {entry!r}"
                ) from None
            self._allowed.add((_canonical(origin[1]), origin[2]))


def _has_port(entry: str) -> bool:
    return re.search(r":[0-9]+$", entry) is not None


def _is_private_name(host: str) -> bool:
    if _literal(host) is not None:
        return True
    name = host.rstrip(".")
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def _canonical(host: str) -> str:
    literal = _literal(host)
    return host.rstrip(".").lower() if literal is None else str(literal)


@lru_cache(maxsize=4096)
def _literal(host: str) -> Address | None:
    """Return the address that a host spells, in any of inet_aton's ways (0x7f.1, 2130706433)."""
    if ":" in host:
        return _parse(host.strip("[]"))
    last_label = host.rstrip(".").rpartition(".")[2]
    if not (last_label.isdigit() or last_label[:2] in ("0x", "0X")):
        return None
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None


def _parse(address: str) -> Address | None:
    try:
        return ip_address(address.partition("%")[0])
    except ValueError:
        return None


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 one, if the network would deliver it there."""
    if isinstance(address, IPv4Address):
        return address
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return address


@lru_cache(maxsize=4096)
def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _PUBLIC_V6 and not any(address in network for network in _SPECIAL_V6)
