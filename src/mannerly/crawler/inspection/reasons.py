"""Words for the reason codes of records: the only table, used by the summary and by `explain`.

Codes are stored and exported, and do not change. Each has words for one URL and, where they differ,
for several ("1 link to another host", "2 links to other hosts"), with the option that decides. A
code without words is shown as it is.
"""

from __future__ import annotations

import re

from mannerly.crawler.model import REFUSALS

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
    "requisites_capped": (
        "page or style with more requisites than are fetched",
        "pages or styles with more requisites than are fetched",
    ),
    "max_per_host": "beyond --max-per-host",
    "not_visited": "not visited: a limit was reached before",
    "sitemap_limit": (
        "sitemap beyond the limits of its host (--max-sitemaps)",
        "sitemaps beyond the limits of their host (--max-sitemaps)",
    ),
    "list_limit": (
        "URL beyond those taken from one public index",
        "URLs beyond those taken from one public index",
    ),
    "replaced": (
        "link whose URL is asked for with a label",
        "links whose URLs are asked for with a label",
    ),
    "repeated": (
        "request that was asked for before",
        "requests that were asked for before",
    ),
    "unanswered": "sent without an answer, and not repeated (retry --unanswered)",
    "secret_missing": "not sent: a secret cannot be read",
    "payload_lost": "not sent: what the request carries is lost",
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
    "held": "held back: the host must not be contacted now",
    "no_memory": "without free memory",
    "no_room": "without room for the body (--memory-limit)",
    "stale_connection": "on a connection that the host had closed",
    "trust": "without readable certificate authorities (--ca-file)",
    "ca_file": "without readable certificate authorities (--ca-file)",
    "cut_at_cap": "body cut at --max-bytes",
    "truncated": ("compressed body that ends early", "compressed bodies that end early"),
    "body_incomplete": ("incomplete body", "incomplete bodies"),
    "extract_failed": "no items: the extract function failed",
    "parse_failed": "not parsed: the parser failed",
    "crashes_parser": "not parsed: it crashed the parser twice",
    "links_capped": (
        "page with more than the 10,000 links that are read of one",
        "pages with more than the 10,000 links that are read of one",
    ),
    "bad_redirect": ("redirect to an invalid URL", "redirects to invalid URLs"),
    "too_many_redirects": "more redirects than --max-redirects",
    "secret_redirect": (
        "form with secrets that is redirected to another origin",
        "forms with secrets that are redirected to another origin",
    ),
    "redirect_loop": ("redirect loop", "redirect loops"),
    "not_a_sitemap": "not a sitemap",
    "malformed": "malformed XML",
    "dtd": "XML with a document type of its own is refused",
    "entities": "XML entities are refused",
    "too_deep": "XML nested too deeply",
    "too_many_urls": "more URLs than are read from one sitemap",
    "bad_gzip": "damaged gzip data",
    # Finer causes: why a host did not answer, or why a request failed.
    "name_not_resolved": "host name not found: check the spelling, or DNS on this machine",
    "dns_timeout": "the name server did not answer in time",
    "connection_refused": "connection refused: no server is running on this port",
    "unreachable": "the host cannot be reached from this network",
    "connect_timeout": "no connection in time: the host does not answer",
    "connect_failed": "the connection failed",
    "connection_reset": "the host closed the connection",
    "empty_reply": "the host closed the connection without a response",
    "first_byte_timeout": "connected, but no response in time (--timeout)",
    "body_timeout": "the response did not end in time (--timeout)",
    "robots_timeout": "connected, but no robots.txt in time (--robots-timeout, "
    "--robots-unreachable)",
    "too_slow": "the response came too slowly",
    "tls_wrong_host": "the certificate is for another host",
    "tls_expired": "the certificate has expired",
    "tls_not_yet_valid": "the certificate is not valid yet: check the clock of this machine",
    "tls_self_signed": "the certificate is self-signed (--ca-file, --insecure-host)",
    "tls_unknown_issuer": "the certificate is from an unknown authority (--ca-file)",
    "tls_revoked": "the certificate was revoked",
    "tls_not_trusted": "the certificate is not trusted",
    "tls_handshake": "the TLS handshake failed: perhaps the server does not speak https",
    "tls_timeout": "the TLS handshake did not end in time",
    "proxy": "the proxy refused the connection (--proxy)",
    "proxy_name": "the host name of the proxy was not found (--proxy)",
    "not_http": "the host does not speak HTTP",
    "bad_header": "the host does not speak HTTP",
}


# "no success for 60 s, latest: connect"; records of release 0.1 say "latest answer connect".
_LATEST = re.compile(r"latest(?:: | answer )(\w+)")


def skip_words(reason: str, count: int = 1) -> str:
    """Return words for the reason why `count` URLs were skipped or given up.

    Text after a colon is kept: `host_retired: 20 failures in a row`; a code becomes words.
    """
    code, colon, detail = reason.partition(": ")
    # The URLs of a host whose robots.txt may not be requested have the error of that request.
    table = _SKIPPED if code in _SKIPPED else _FAILED
    return _words(table, code, count) + (colon and colon + error_words(detail))


def error_words(error: str, count: int = 1) -> str:
    """Return words for the error of `count` records, or for why a host was given up."""
    if error not in _FAILED and (latest := _LATEST.search(error)) is not None:
        return error.replace(latest[0], f"latest: {_words(_FAILED, latest[1], 1)}")
    code, colon, detail = error.partition(": ")
    return _words(_FAILED, code, count) + colon + detail


def failure_words(reason: str, count: int = 1) -> str:
    """Return words for why `count` pages failed: an error, or the status of their answer."""
    if not reason.isdigit():
        return error_words(reason, count)
    status = int(reason)
    if status in REFUSALS:
        return f"refused with {status}"
    return f"not found ({status})" if status in (404, 410) else f"answered with {status}"


def _words(table: dict[str, str | tuple[str, str]], reason: str, count: int) -> str:
    known = table.get(reason)
    if known is None:
        return reason
    return known if isinstance(known, str) else known[count != 1]
