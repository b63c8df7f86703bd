"""A random web: hosts without limits, hosts that refuse, hosts with traps and bombs.

Every host asks for, or is given, a gap of half a second at least, so that a server's log can judge
it: at smaller gaps the scheduler of a busy machine is louder than a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.demo import Feature, RobotsFile, Site, SitemapKind

from .metronome import SITE

if TYPE_CHECKING:
    from random import Random

BIG = 1_200_000  # bytes: such pages are read in helper processes

# Limits that a gap of half a second meets again and again, with every form of refusal.
_LIMITS = (
    "bucket:1:4",
    "bucket:1:4+retry-after",
    "bucket:1.5:3+retry-after-date",
    "fixed:4:4+retry-after",
    "sliding:6:6",
    "concurrency:1:0.3",
)
_TROUBLES = (
    frozenset({Feature.REDIRECTS, Feature.BROKEN}),
    frozenset({Feature.CALENDAR}),
    frozenset({Feature.MAZE}),
    frozenset({Feature.SLOW}),
    frozenset({Feature.PRIVATE, Feature.NOFOLLOW, Feature.INTERNAL}),
    frozenset({Feature.VARIANTS, Feature.CANONICAL}),
)
_ROBOTS = (RobotsFile.RULES, RobotsFile.MISSING, RobotsFile.HUGE, RobotsFile.REDIRECTED)


def random_sites(rng: Random) -> tuple[tuple[Site, ...], tuple[Site, ...]]:
    """Return 7 to 12 light hosts, whose links lead to each other, and one or two heavy ones.

    Heavy hosts have servers of their own: megabytes that are made there must not delay the notes
    of the others.
    """
    sites = [
        Site(
            name=f"plain-{number}",
            pages=rng.randint(12, 30),
            neighbours=2,
            latency_s=rng.choice((0.0, 0.02, 0.3)),
            gzip=rng.random() < 0.5,
            robots=rng.choice(_ROBOTS),
            sitemap=rng.choice(list(SitemapKind)),
            crawl_delay_s=rng.choice((None, None, None, 1.0)),
            seed=rng.randint(1, 10**6),
        )
        for number in range(rng.randint(4, 7))
    ]
    sites += [
        Site(name=f"limit-{number}", pages=12, neighbours=1, limit=limit)
        for number, limit in enumerate(rng.sample(_LIMITS, 2))
    ]
    sites += [
        Site(name=f"trouble-{number}", pages=10, neighbours=1, features=features)
        for number, features in enumerate(rng.sample(_TROUBLES, rng.randint(1, 3)))
    ]
    heavy = [Site(name="big", pages=6, size=BIG)]
    if rng.random() < 0.5:
        bodies = frozenset({Feature.ENDLESS, Feature.BOMB})
        heavy.append(Site(name="bodies", pages=6, features=bodies))
    return (*sites, SITE), (*heavy, SITE)
