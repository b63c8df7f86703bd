"""Reads noindex and nofollow from an X-Robots-Tag header or a robots meta element.

A value is a list of directives. In the header a crawler's name and a colon may stand before one,
and then hold until the next name: `googlebot: noindex, otherbot: nofollow` has nothing for us. Some
directives have a colon and a value of their own, and dates have colons too, so a name is one word
that is not such a directive.
"""

from __future__ import annotations

from typing import NamedTuple

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
