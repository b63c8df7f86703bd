"""Limit how fast names are looked up that a site made up: names met only as links.

Every new name costs a look-up, a connection and a robots.txt, before anything is known of it. A
page can name a thousand hosts of one site, and with a wildcard in the DNS all of them exist. So the
first names of a site that were met only as links go at once, and then one a second, or one for
every eight requests to the site if that is slower.

A name that has to wait gets an instant of its own. Seeds do not ask here, nor do hosts that an
earlier run has contacted. This module reads no clock.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from mannerly.politeness.model import NEVER

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant

AT_ONCE = 20  # names of one site
EVERY_S = 1.0
REQUESTS_PER_NAME = 8
_MAX_SITES = 50_000


class _Names:
    """The names of one site."""

    __slots__ = ("admitted", "last_at", "line_until")

    def __init__(self) -> None:
        self.admitted = 0
        self.last_at = NEVER
        self.line_until = NEVER  # the last instant that was given to a waiting name


class FirstContacts:
    """The names of each site that were contacted, by number."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Names] = OrderedDict()

    def admit(self, site: str, gap_s: float, now: Instant) -> Instant:
        """Return `now` if a new name of a site may be contacted, else the instant to ask again.

        `gap_s` is the time between two requests to the site.
        """
        names = self._sites.get(site)
        if names is None:
            names = self._sites[site] = _Names()
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        else:
            self._sites.move_to_end(site)
        every_s = max(EVERY_S, REQUESTS_PER_NAME * gap_s)
        if names.admitted < AT_ONCE or now >= names.last_at + every_s:
            names.admitted += 1
            # A name that comes late to its instant does not delay those behind it.
            is_next = names.admitted > AT_ONCE and now < names.last_at + 2.0 * every_s
            names.last_at = names.last_at + every_s if is_next else now
            return now
        names.line_until = max(names.line_until, names.last_at) + every_s
        return names.line_until
