"""What the promises rest on: no way into a private network."""

from __future__ import annotations

from .model import Mutant

_GUARD = "crawler/fetch/guard.py"
_GUARD_TESTS = ("crawler/fetch/test_fetch_guard.py",)

SAFE = (
    Mutant(
        "connect to a private network",
        "S1",
        _GUARD,
        '        "10.0.0.0/8",\n',
        "",
        _GUARD_TESTS,
    ),
    Mutant(
        "connect to IPv6 outside the public web",
        "S1",
        _GUARD,
        "    return address in _PUBLIC_V6 and not any(",
        "    return not any(",
        _GUARD_TESTS,
    ),
    Mutant(
        "trust an embedded address",
        "S2",
        _GUARD,
        "        inner = _unwrap(parsed)\n",
        "        inner = parsed\n",
        _GUARD_TESTS,
    ),
    Mutant(
        "overlook an octal address",
        "S3",
        _GUARD,
        '        return IPv4Address(socket.inet_aton(host.rstrip(".")))',
        "        return IPv4Address(host)",
        _GUARD_TESTS,
    ),
    Mutant(
        "connect to any port",
        "S8",
        _GUARD,
        "        return AddressVerdict.ALLOWED if port in self._ports else AddressVerdict.BLOCKED_PORT",
        "        return AddressVerdict.ALLOWED",
        _GUARD_TESTS,
    ),
    Mutant(
        "connect without asking the guard",
        "S4",
        "crawler/fetch/transfer.py",
        "            if verdict is not AddressVerdict.ALLOWED:\n",
        "            if False:\n",
        ("crawler/fetch/test_network_guard.py",),
    ),
    Mutant(
        "follow redirects inside curl",
        "S5",
        "crawler/fetch/transfer.py",
        "        option(pycurl.FOLLOWLOCATION, 0)\n",
        "        option(pycurl.FOLLOWLOCATION, 1)\n",
        ("crawler/fetch/test_fetch_curl.py",),
    ),
    Mutant(
        "accept any certificate",
        "F25",
        "crawler/fetch/transfer.py",
        "        if (host not in self._settings.insecure_hosts) != self._is_verified:\n",
        "        if self._is_verified:\n",
        ("crawler/fetch/test_fetch_tls.py",),
    ),
    Mutant(
        "keep the user name in a URL",
        "S12",
        "crawler/web/urls.py",
        '            parsed = parsed.with_username("")',
        "            pass",
        ("crawler/web/test_urls.py",),
    ),
    Mutant(
        "let two processes own a shard",
        "F5",
        "crawler/store/sqlite/lock.py",
        "LOCK_EX | fcntl.LOCK_NB",
        "LOCK_SH | fcntl.LOCK_NB",
        ("crawler/store/test_lock.py",),
    ),
)
