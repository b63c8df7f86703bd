"""Words for the reason codes of records: the only table, used by the summary and by `explain`.

Codes are stored and exported, and do not change. Each has words for one URL and, where they differ,
for several ("1 link to another host", "2 links to other hosts"), with the option that decides. A
code without words is shown as it is.
"""

from __future__ import annotations

_SKIPPED: dict[str, str | tuple[str, str]] = {
    "off_host": ("link to another host (--scope)", "links to other hosts (--scope)"),
    "off_site": ("link to another site (--scope)", "links to other sites (--scope)"),
    "off_prefix": (
        "link outside the seeds' directories (--scope)",
        "links outside the seeds' directories (--scope)",
    ),
    "too_deep": ("link beyond --max-depth", "links beyond --max-depth"),
    "excluded": "excluded by --exclude",
    "not_included": "not matched by --include",
    "scheme": "not http(s)",
    "too_long": ("URL too long", "URLs too long"),
    "malformed": ("malformed URL", "malformed URLs"),
    "nofollow": ("link marked nofollow", "links marked nofollow"),
    "robots": "forbidden by robots.txt (--ignore-robots)",
    "robots_unreachable": "robots.txt unreachable (--robots-patience, --robots-unreachable)",
    "max_per_host": "beyond --max-per-host",
    "sitemap_limit": (
        "sitemap beyond the limits of its host (--max-sitemaps)",
        "sitemaps beyond the limits of their host (--max-sitemaps)",
    ),
    "list_limit": (
        "URL beyond those taken from one public index",
        "URLs beyond those taken from one public index",
    ),
    "host_retired": ("host given up", "URLs of hosts that were given up"),
}

_FAILED: dict[str, str | tuple[str, str]] = {
    "timeout": "timed out (--timeout)",
    "connect": ("failed connection", "failed connections"),
    "dns": ("host name not found", "host names not found"),
    "tls": ("TLS error", "TLS errors"),
    "reset": ("connection closed by the host", "connections closed by the host"),
    "protocol": ("invalid HTTP response", "invalid HTTP responses"),
    "too_large": "too large",
    "blocked_address": ("private address (--allow-net)", "private addresses (--allow-net)"),
    "blocked_port": ("port not allowed (--allow-net)", "ports not allowed (--allow-net)"),
    "bad_url": ("URL that cannot be requested", "URLs that cannot be requested"),
    "no_descriptors": "without a free file descriptor (ulimit -n)",
    "no_memory": "without free memory",
    "truncated": ("compressed body cut short", "compressed bodies cut short"),
    "stale_connection": "on a connection that the host had closed",
    "trust": "without readable certificate authorities (--ca-file)",
    "ca_file": "without readable certificate authorities (--ca-file)",
    "cut_at_cap": "body cut at --max-bytes",
    "body_incomplete": ("incomplete body", "incomplete bodies"),
    "parse_failed": "not parsed: the parser failed",
    "crashes_parser": "not parsed: it crashed the parser twice",
    "links_capped": "more links than are read from one page",
    "bad_redirect": ("redirect to an invalid URL", "redirects to invalid URLs"),
    "too_many_redirects": "more redirects than --max-redirects",
    "redirect_loop": ("redirect loop", "redirect loops"),
    "not_a_sitemap": "not a sitemap",
    "malformed": "malformed XML",
    "dtd": "XML with a document type of its own is refused",
    "entities": "XML entities are refused",
    "too_deep": "XML nested too deeply",
    "too_many_urls": "more URLs than are read from one sitemap",
    "bad_gzip": "damaged gzip data",
}


def skip_words(reason: str, count: int = 1) -> str:
    """Return words for the reason why `count` URLs were skipped or given up.

    Text after a colon is kept: `host_retired: 20 failures in a row`.
    """
    return _words(_SKIPPED, reason, count)


def error_words(error: str, count: int = 1) -> str:
    """Return words for the error of `count` records."""
    return _words(_FAILED, error, count)


def _words(table: dict[str, str | tuple[str, str]], reason: str, count: int) -> str:
    code, colon, detail = reason.partition(":")
    known = table.get(code)
    if known is None:
        return reason
    words = known if isinstance(known, str) else known[count != 1]
    return words + colon + detail
