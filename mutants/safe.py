"""What the promises rest on: no way into a private network."""

from __future__ import annotations

from .model import Mutant

_GUARD = "crawler/fetch/guard.py"

SAFE = (
    Mutant(
        "connect to a private network",
        "S1",
        _GUARD,
        '        "10.0.0.0/8",\n',
        "",
        (
            (
                "crawler/fetch/test_fetch_guard.py::"
                "test_guard_refuses_a_special_network_from_end_to_end"
            ),
        ),
    ),
    Mutant(
        "connect to IPv6 outside the public web",
        "S1",
        _GUARD,
        "    return address in _PUBLIC_V6 and not any(",
        "    return not any(",
        (
            (
                "crawler/fetch/test_fetch_guard.py::"
                "test_guard_refuses_a_special_network_from_end_to_end"
            ),
        ),
    ),
    Mutant(
        "trust an embedded address",
        "S2",
        _GUARD,
        "        inner = _unwrap(parsed)\n",
        "        inner = parsed\n",
        ("crawler/fetch/test_fetch_guard.py::test_guard_sees_through_embedded_addresses",),
    ),
    Mutant(
        "overlook an octal address",
        "S3",
        _GUARD,
        '        return IPv4Address(socket.inet_aton(host.rstrip(".")))',
        "        return IPv4Address(host)",
        (("crawler/fetch/test_fetch_guard.py::test_guard_knows_an_address_however_it_is_spelled"),),
    ),
    Mutant(
        "connect to any port",
        "S8",
        _GUARD,
        "        is_open = port in PUBLIC_PORTS or place in self._seeds\n",
        "        is_open = True\n",
        ("crawler/fetch/test_fetch_guard.py::test_guard_keeps_to_web_ports",),
    ),
    Mutant(
        "connect without asking the guard",
        "S4",
        "crawler/fetch/transfer.py",
        "            if verdict is not AddressVerdict.ALLOWED:\n",
        "            if False:\n",
        ("crawler/fetch/test_fetch_curl.py::test_curl_never_reaches_the_canary",),
    ),
    Mutant(
        "follow redirects inside curl",
        "S5",
        "crawler/fetch/transfer.py",
        "        option(pycurl.FOLLOWLOCATION, 0)\n",
        "        option(pycurl.FOLLOWLOCATION, 1)\n",
        ("crawler/fetch/test_fetch_curl.py::test_curl_follows_no_redirect",),
    ),
    Mutant(
        "accept any certificate",
        "F25",
        "crawler/fetch/transfer.py",
        "        if (host not in self._settings.insecure_hosts) != self._is_verified:\n",
        "        if self._is_verified:\n",
        ("crawler/fetch/test_fetch_tls.py::test_tls_refuses_a_stranger_by_default",),
    ),
    Mutant(
        "keep the user name in a URL",
        "S12",
        "crawler/web/urls.py",
        '            parsed = parsed.with_username("")',
        "            pass",
        ("crawler/web/test_urls.py::test_canonical_has_one_spelling",),
    ),
    Mutant(
        "let two processes own a shard",
        "F5",
        "crawler/store/sqlite/lock.py",
        "LOCK_EX | fcntl.LOCK_NB",
        "LOCK_SH | fcntl.LOCK_NB",
        ("crawler/store/test_lock.py::test_a_held_crawl_is_refused_with_the_pid",),
    ),
)
