"""The proxies that variables of the environment name, for --proxy-env.

`http_proxy`, `https_proxy` and `all_proxy` name a proxy for a scheme, `no_proxy` hosts that are
contacted without one; the standard library reads them as other programs do.
"""

from __future__ import annotations

import urllib.request

from .settings import check_proxy


class EnvironmentProxies:
    """Chooses the proxy of a request."""

    def __init__(self) -> None:
        """Read the variables.

        Raises:
            ValueError: one of them is not the URL of a proxy; the message does not repeat it.
        """
        self._all = urllib.request.getproxies_environment()
        self._by_scheme: dict[str, str | None] = {}
        for scheme in ("http", "https"):
            url = self._all.get(scheme) or self._all.get("all")
            url = url if not url or "://" in url else f"http://{url}"
            try:
                check_proxy(url)
            except ValueError as error:
                raise ValueError(f"in {scheme}_proxy or all_proxy, {error}") from None
            self._by_scheme[scheme] = url or None

    def __call__(self, scheme: str, host: str) -> str | None:
        """Return the proxy for a host; None: it is contacted directly."""
        proxy = self._by_scheme[scheme]
        if proxy is None:
            return None
        is_direct = urllib.request.proxy_bypass_environment(host, self._all)  # type: ignore[attr-defined]
        return None if is_direct else proxy
