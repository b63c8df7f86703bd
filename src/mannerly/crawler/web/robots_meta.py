"""What a page asks of crawlers about itself: noindex and nofollow, from a header or a meta element.

A value is a list of directives. In the header a crawler's name and a colon may stand before one,
and then hold until the next name: `googlebot: noindex, otherbot: nofollow` asks nothing of us. Some
directives have a colon and a value of their own, and dates have colons too, so a name is one word
that is not such a directive.
"""

from __future__ import annotations

from typing import NamedTuple

_VALUED = frozenset({"max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"})


class RobotsMeta(NamedTuple):
    """The two wishes that concern a crawler."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: RobotsMeta) -> RobotsMeta:
        """The stricter of two sources, as search engines combine them."""
        return RobotsMeta(self.noindex or other.noindex, self.nofollow or other.nofollow)


SILENT = RobotsMeta()


def robots_directives(value: str | None, agent: str) -> RobotsMeta:
    """The wishes in one value that are addressed to everybody or to `agent`."""
    if not value:
        return SILENT
    addressee = agent
    wishes = set()
    for part in value.lower().split(","):
        name, colon, rest = part.strip().partition(":")
        if colon and name not in _VALUED and name and not any(map(str.isspace, name)):
            addressee, part = name, rest
        if addressee == agent:
            wishes.add(part.strip())
    is_none = "none" in wishes
    return RobotsMeta(is_none or "noindex" in wishes, is_none or "nofollow" in wishes)
