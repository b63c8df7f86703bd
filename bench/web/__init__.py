"""A generated web with realistic pages, the same on every machine, and its server on loopback.

    with served(WebSpec()) as web: ...        200 hosts of 60 pages, on http://127.1.0.*:18080
    python -m bench.web                       the same until Ctrl-C

Crawlers are compared on it, so it must not favour any of them: pages are generated from a seed,
written to disk once and then served as files, by a server that is far faster than the crawlers.
"""

from __future__ import annotations

from .server import Serving, is_nginx_here, served
from .spec import WebSpec
from .tree import ensure

__all__ = ["Serving", "WebSpec", "ensure", "is_nginx_here", "served"]
