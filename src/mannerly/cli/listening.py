"""Addresses to listen on: [HOST:]PORT, and whether others can reach them."""

from __future__ import annotations

from typing import NoReturn

from .terminal import fail


def fail_without_packages(what: str) -> NoReturn:
    """Exit with code 2, and say how to install the packages that a server needs."""
    from mannerly.extras import install_words

    fail(f"{what} needs more packages: {install_words('serve')}")


def address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of [HOST:]PORT; exit with code 2 if it is something else.

    Without a host it is 127.0.0.1.
    """
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        fail(f"{option} is {text!r}; allowed: [HOST:]PORT, such as 127.0.0.1:7465")
    return host.strip("[]") or "127.0.0.1", int(port)


def shown(host: str) -> str:
    """Return a host as a URL has it."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    from ipaddress import ip_address

    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
