"""The network guard refuses everything that is not plainly the public web."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.fetch.guard import AddressVerdict, NetworkGuard, split_origin

SPECIAL = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "::1/128",
    "fc00::/7",
    "fd00::/8",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "2001::/23",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "100::/64",
    "64:ff9b:1::/48",
]
NEIGHBOURS = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2000::",
    "2001:200::",
    "2001:db7:ffff::1",
    "2001:db9::",
    "2606:4700::1111",
    "3ffe:ffff::1",
]
LOOPBACK_SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.1.",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::",
    "0.0.0.0",
    "0",
]


@pytest.mark.parametrize("network", SPECIAL)
def test_guard_refuses_a_special_network_from_end_to_end(network: str) -> None:
    """The first and the last address of every special-purpose network are refused."""
    guard = NetworkGuard()

    ends = [str(ip_network(network)[0]), str(ip_network(network)[-1])]

    verdicts = {guard.judge(address, 80, "example.com") for address in ends}
    assert verdicts == {AddressVerdict.BLOCKED_ADDRESS}


@pytest.mark.parametrize("address", NEIGHBOURS)
def test_guard_allows_the_public_neighbours(address: str) -> None:
    """An address next to a special network is public and may be connected."""
    assert NetworkGuard().judge(address, 443, "example.com") is AddressVerdict.ALLOWED


@given(st.ip_addresses(v=4))
def test_guard_sees_through_embedded_addresses(address: IPv4Address) -> None:
    """An IPv4 address gets the same verdict in its mapped, NAT64 and 6to4 forms."""
    guard = NetworkGuard()
    high, low = divmod(int(address), 65536)
    forms = [
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{high:x}:{low:x}::1",
    ]

    plain = guard.judge(str(address), 80, "example.com")

    assert [guard.judge(form, 80, "example.com") for form in forms] == [plain] * 3


def test_guard_refuses_cloud_metadata() -> None:
    """The metadata and platform addresses of clouds are refused, whatever name leads there."""
    guard = NetworkGuard()

    addresses = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"]

    verdicts = {guard.judge(address, 80, "metadata.example.com") for address in addresses}
    assert verdicts == {AddressVerdict.BLOCKED_ADDRESS}


METADATA = [
    "http://169.254.169.254/",
    "http://169.254.170.2/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://168.63.129.16/",
]


@pytest.mark.parametrize("seed", METADATA)
def test_guard_refuses_cloud_metadata_even_as_a_seed(seed: str) -> None:
    """A list of seeds may come from anywhere; only `--allow-net` opens such an address."""
    _, host, port = split_origin(seed) or ("", "", 0)
    place = f"[{host}]" if ":" in host else host

    guards = [
        NetworkGuard([seed]),
        NetworkGuard([seed], [host]),
        NetworkGuard(allow_net=[f"{place}:{port}"]),
    ]

    verdicts = [guard.judge(host, port, host) for guard in guards]
    early = [guard.judge_host(host, port) for guard in guards]
    refused, allowed = AddressVerdict.BLOCKED_ADDRESS, AddressVerdict.ALLOWED
    assert verdicts == early == [refused, allowed, allowed]


def test_guard_refuses_cloud_metadata_behind_a_private_seed() -> None:
    """A private name as a seed may lead to private addresses, but not to these."""
    guard = NetworkGuard(["http://metadata.google.internal/"])

    verdicts = [
        guard.judge(address, 80, "metadata.google.internal")
        for address in ("10.1.2.3", "169.254.169.254", "::ffff:169.254.169.254")
    ]

    refused = AddressVerdict.BLOCKED_ADDRESS
    assert verdicts == [AddressVerdict.ALLOWED, refused, refused]


def test_guard_names_the_private_seeds() -> None:
    """Private addresses and names for private use; not the public ones, nor what stays closed."""
    guard = NetworkGuard(
        [
            "http://127.0.0.1:8000/",
            "http://[::1]:8000/",
            "http://wiki.internal/",
            "http://8.8.8.8/",
            "http://169.254.169.254/",
            "https://example.com/",
        ]
    )

    assert guard.private_seeds == ["127.0.0.1:8000", "[::1]:8000", "wiki.internal:80"]


@pytest.mark.parametrize("host", LOOPBACK_SPELLINGS)
def test_guard_knows_an_address_however_it_is_spelled(host: str) -> None:
    """Every spelling of a loopback or unspecified address is refused before any lookup."""
    assert NetworkGuard().judge_host(host, 80) is AddressVerdict.BLOCKED_ADDRESS


def test_guard_leaves_names_to_their_addresses() -> None:
    """A name passes the early check and is refused by the address that it resolved to."""
    guard = NetworkGuard()

    early = guard.judge_host("localhost", 80)
    late = guard.judge("127.0.0.1", 80, "localhost")

    assert (early, late) == (AddressVerdict.ALLOWED, AddressVerdict.BLOCKED_ADDRESS)


def test_guard_opens_a_private_seed_and_nothing_beside_it() -> None:
    """A private seed opens its own host and port, not another port, spelling of host, or name."""
    guard = NetworkGuard(seeds=["http://localhost:8000/start"])

    own = guard.judge("127.0.0.1", 8000, "localhost")
    others = {
        guard.judge("127.0.0.1", 6379, "localhost"),
        guard.judge("127.0.0.1", 8000, "evil.example"),
        guard.judge("127.0.0.1", 8000, "127.0.0.1"),
    }

    assert own is AddressVerdict.ALLOWED
    assert others == {AddressVerdict.BLOCKED_ADDRESS}


def test_guard_does_not_trust_a_public_seed_with_private_addresses() -> None:
    """A seed under a public name opens no private address: its owner could point it anywhere."""
    guard = NetworkGuard(seeds=["http://example.com/"])

    assert guard.judge("10.0.0.5", 80, "example.com") is AddressVerdict.BLOCKED_ADDRESS


@pytest.mark.parametrize(
    ("entry", "address", "port", "host", "verdict"),
    [
        ("10.0.0.0/8", "10.1.2.3", 6379, "db.example", AddressVerdict.ALLOWED),
        ("10.0.0.0/8", "11.0.0.1", 6379, "db.example", AddressVerdict.BLOCKED_PORT),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 80, "db.example", AddressVerdict.ALLOWED),
        ("fd00::/8", "fd12::1", 80, "x.example", AddressVerdict.ALLOWED),
        ("127.0.0.1", "127.0.0.1", 9, "x.example", AddressVerdict.ALLOWED),
        ("wiki.example:8443", "10.0.0.9", 8443, "wiki.example", AddressVerdict.ALLOWED),
        ("wiki.example:8443", "10.0.0.9", 443, "wiki.example", AddressVerdict.BLOCKED_ADDRESS),
        ("[::1]:8000", "::1", 8000, "::1", AddressVerdict.ALLOWED),
    ],
)
def test_guard_opens_what_allow_net_names(
    entry: str, address: str, port: int, host: str, verdict: AddressVerdict
) -> None:
    """`--allow-net` opens a network on every port, or one host:port, and nothing more."""
    assert NetworkGuard(allow_net=[entry]).judge(address, port, host) is verdict


@pytest.mark.parametrize("entry", ["localhost", "10.0.0.0/33", "", "10.0.0.1/8", "a b:80"])
def test_guard_refuses_an_unclear_allow_net(entry: str) -> None:
    """An entry that is neither a network nor host:port is an error, not a wider door."""
    with pytest.raises(ValueError, match="--allow-net"):
        NetworkGuard(allow_net=[entry])


@pytest.mark.parametrize(
    ("port", "verdict"),
    [
        (80, AddressVerdict.ALLOWED),
        (443, AddressVerdict.ALLOWED),
        (8080, AddressVerdict.ALLOWED),
        (22, AddressVerdict.BLOCKED_PORT),
        (25, AddressVerdict.BLOCKED_PORT),
        (6379, AddressVerdict.BLOCKED_PORT),
        (3000, AddressVerdict.BLOCKED_PORT),
    ],
)
def test_guard_keeps_to_web_ports(port: int, verdict: AddressVerdict) -> None:
    """On public addresses only web ports are open, whatever port a seed of another host has."""
    guard = NetworkGuard(seeds=["https://example.com:3000/"])

    assert guard.judge("8.8.8.8", port, "www.example.com") is verdict
    assert guard.judge_host("www.example.com", port) is verdict


def test_guard_opens_the_port_of_a_seed_on_its_own_host() -> None:
    """`https://example.com:3000/` may be crawled, and its port is its own."""
    guard = NetworkGuard(seeds=["https://example.com:3000/"])

    assert guard.judge_host("example.com", 3000) is AddressVerdict.ALLOWED
    assert guard.judge("8.8.8.8", 3000, "example.com") is AddressVerdict.ALLOWED
    assert guard.judge("8.8.8.8", 22, "example.com") is AddressVerdict.BLOCKED_PORT


def test_guard_says_the_same_however_many_hosts_it_was_asked_about() -> None:
    """What it remembers is bounded, belongs to a host and its port, and changes no verdict."""
    guard = NetworkGuard(allow_net=["10.1.0.0/16"])
    hosts = [f"10.{number % 2}.{number // 250}.{number % 250}" for number in range(5000)]
    questions = [(host, port) for host in hosts for port in (80, 25)]

    verdicts = [guard.judge_host(host, port) for host, port in questions]

    allowed = [host.startswith("10.1.") for host, _ in questions]
    assert [verdict is AddressVerdict.ALLOWED for verdict in verdicts] == allowed


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com\\@127.0.0.1/",
        "http://user@example.com/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://exämple.com/",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://example.com/a b",
        "http://example.com/\r\nX: y",
        "http:///path",
        "file:///etc/passwd",
        "gopher://example.com/",
        "HTTP://EXAMPLE.COM/",
        "",
    ],
)
def test_origin_is_read_from_serialised_urls_only(url: str) -> None:
    """A URL that two parsers could read differently has no origin."""
    assert split_origin(url) is None


def test_origin_is_scheme_host_and_port() -> None:
    """The default port is filled in, brackets are taken off."""
    urls = ["https://example.com/x?y#z", "http://[::1]:8000", "http://a.b:81?q"]

    origins = [split_origin(url) for url in urls]

    assert origins == [("https", "example.com", 443), ("http", "::1", 8000), ("http", "a.b", 81)]
