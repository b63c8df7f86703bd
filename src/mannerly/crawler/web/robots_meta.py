"""Read directives of pages: noindex and nofollow, and the use of their content by machines.

A value is a list of directives. In the header a crawler's name and a colon may stand before one,
and then hold until the next name: `googlebot: noindex, otherbot: nofollow` has nothing for us. Some
directives have a colon and a value of their own, and dates have colons too, so a name is one word
that is not such a directive.

    Content-Signal: search=yes, ai-train=no     a line of robots.txt, for the agents of its group
    X-Robots-Tag: noai, noimageai               a header, or the same in <meta name=robots>
    tdm-reservation: 1, tdm-policy: URL         headers or <meta>: the TDM Reservation Protocol

None of these forbids a crawl. They are recorded, and an export can leave out what is reserved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_VALUED = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})


class RobotsMeta(NamedTuple):
    """The two directives that concern a crawler."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: RobotsMeta) -> RobotsMeta:
        """Combine two sources: a directive of either holds, as for search engines."""
        return RobotsMeta(self.noindex or other.noindex, self.nofollow or other.nofollow)


SILENT = RobotsMeta()


def robots_directives(value: str | None, agent: str) -> RobotsMeta:
    """Return the directives in a value that are addressed to all crawlers or to `agent`."""
    if not value:
        return SILENT
    addressee = agent
    directives = set()
    for part in value.lower().split(","):
        name, colon, rest = part.strip().partition(":")
        if colon and name not in _VALUED and name and not any(map(str.isspace, name)):
            addressee, part = name, rest
        if addressee == agent:
            directives.add(part.strip())
    is_none = "none" in directives
    return RobotsMeta(is_none or "noindex" in directives, is_none or "nofollow" in directives)


MAX_LINES = 5000  # of a robots.txt that are read
MAX_SIGNALS = 20
NO_AI = frozenset({"noai", "noimageai"})


def content_signal(robots: bytes | None, agent: str) -> dict[str, str]:
    """Return the signals of a robots.txt for a user agent: those of its own group, else of `*`."""
    groups: dict[str, dict[str, str]] = {}
    names: list[str] = []
    is_open = False  # user-agent lines in a row name one group
    for raw in (robots or b"").splitlines()[:MAX_LINES]:
        key, _, value = raw.partition(b"#")[0].decode("utf-8", "replace").partition(":")
        key = key.strip().lower()
        if key == "user-agent":
            names = [*(names if is_open else []), value.strip().lower()]
        elif key == "content-signal":
            for name in names or ["*"]:
                groups.setdefault(name, {}).update(_signals(value))
        is_open = key == "user-agent"
    return groups.get(agent.lower()) or groups.get("*") or {}


def is_reserved(use: Mapping[str, object]) -> bool:
    """Return whether a site reserves a page against use by machines, such as AI training."""
    signals = use.get("content_signal")
    says_no = isinstance(signals, dict) and signals.get("ai-train") == "no"
    return bool(says_no or use.get("robots") or use.get("tdm_reservation") == "1")


def _signals(value: str) -> dict[str, str]:
    found = {}
    for part in value.split(",")[:MAX_SIGNALS]:
        name, _, said = part.partition("=")
        if said.strip().lower() in ("yes", "no") and name.strip().isascii():
            found[name.strip().lower()[:30]] = said.strip().lower()
    return found
