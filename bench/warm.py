"""Warming: is a site that slows down under load held at twice its unloaded p95 or less?

In virtual time: ten modelled sites, for one and for ten minutes, three seeds each. `knee` sites
have K workers and one queue, `sharing` ones divide their processor among the requests, and the
latency of `soft` ones grows with every request at once. The ratio is the 95th percentile of all
latencies of a run, climb included, to that of single requests; the worst seed counts. Beside the
setting of `mannerly warm` (latency_factor 1.4) are that of a crawl (2) and `gradient`.

On real sockets: `mannerly warm --max-rate unlimited` on a slow site behind a cache; the judge is
the site's own log. Another load on this machine makes it slower, so its figure is an upper bound.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import urllib.request
from math import exp
from typing import TYPE_CHECKING

from bench.web.slow_site import UNCACHED, SlowSite
from mannerly.crawler.settings import CrawlSettings, warming
from mannerly.politeness import Settings
from mannerly.simulation import run as simulate
from mannerly.simulation.servers import NO_HEADERS, LatencyKnee

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.simulation.servers import Server, ServerAnswer

SEEDS = (1, 2, 3)
SPREAD = 0.15  # sigma of the log-normal of a site's own work
ALONE = 2000  # single requests that show how fast a site is without load
BOUND = 2.0


class LoadedSite:
    """A site whose latency grows with the requests at once: all at once, or beyond K of them."""

    def __init__(self, k: int, latency_s: float, *, is_soft: bool) -> None:
        self._k, self._latency_s, self._is_soft = k, latency_s, is_soft
        self.reset(random.Random(1))

    def reset(self, rng: random.Random) -> None:
        self._gauss = rng.gauss

    def request(self, _now: float, in_flight: int) -> ServerAnswer:
        load = 1.0 + (in_flight - 1) / self._k if self._is_soft else max(1.0, in_flight / self._k)
        return 200, self._latency_s * load * exp(SPREAD * self._gauss(0.0, 1.0)), NO_HEADERS


class Observed:
    """A site, and the latency of all its answers."""

    def __init__(self, site: LoadedSite | LatencyKnee) -> None:
        self._site = site
        self.latencies: list[float] = []

    def reset(self, rng: random.Random) -> None:
        self._site.reset(rng)

    def request(self, now: float, in_flight: int) -> ServerAnswer:
        answer = self._site.request(now, in_flight)
        self.latencies.append(answer[1])
        return answer


SITES: dict[str, Callable[[], LoadedSite | LatencyKnee]] = {
    "knee:1:0.05": lambda: LatencyKnee(1, 0.05),
    "knee:2:0.1": lambda: LatencyKnee(2, 0.1),
    "knee:4:0.5": lambda: LatencyKnee(4, 0.5),
    "knee:8:0.2": lambda: LatencyKnee(8, 0.2),
    "knee:16:0.05": lambda: LatencyKnee(16, 0.05),
    "sharing:2:0.4": lambda: LoadedSite(2, 0.4, is_soft=False),
    "sharing:4:0.1": lambda: LoadedSite(4, 0.1, is_soft=False),
    "soft:2:0.05": lambda: LoadedSite(2, 0.05, is_soft=True),
    "soft:4:0.1": lambda: LoadedSite(4, 0.1, is_soft=True),
    "soft:8:0.3": lambda: LoadedSite(8, 0.3, is_soft=True),
}
FREE = Settings(max_rate="unlimited")
WARM = warming(CrawlSettings(politeness=FREE)).politeness


def p95(latencies: Sequence[float]) -> float:
    return sorted(latencies)[int(0.95 * len(latencies))]


def slowdown(name: str, settings: Settings, seconds: float, seed: int) -> float:
    """Return the 95th percentile of a run, in units of that of single requests."""
    alone = SITES[name]()
    alone.reset(random.Random(9))
    single = p95([alone.request(100.0 * number, 1)[1] for number in range(ALONE)])
    site = Observed(SITES[name]())
    loaded: Server = site
    simulate(settings, loaded, seconds, seed)
    return p95(site.latencies) / single


def run(_options: Sequence[str] = ()) -> None:
    _in_virtual_time()
    _on_real_sockets()


def _in_virtual_time() -> None:
    rows = {
        "warm": WARM,
        "crawl": FREE,
        "gradient": Settings(strategy="gradient", max_rate="unlimited"),
    }
    print("p95 under our load / p95 of single requests, the worst of three seeds\n")
    print(f"{'site':14}" + "".join(f"{f'{name} {s} s':>16}" for name in rows for s in (60, 600)))
    for name in SITES:
        cells = [
            max(slowdown(name, settings, seconds, seed) for seed in SEEDS)
            for settings in rows.values()
            for seconds in (60, 600)
        ]
        print(f"{name:14}" + "".join(f"{cell:16.2f}" for cell in cells), flush=True)


def _on_real_sockets() -> None:
    print("\nA real site with two workers of 100 ms behind a cache, 600 pages, no maximum rate\n")
    with SlowSite(pages=600, workers=2, page_s=0.1) as site:
        for number in range(60):  # alone, and not what is warmed below: this section is not cached
            urllib.request.urlopen(f"{site.url}account/{3 + 4 * number}", timeout=30).read()
        single = p95([each.took_s for each in site.log])
        site.log.clear()
        with tempfile.TemporaryDirectory() as here:
            done = subprocess.run(
                [sys.executable, "-m", "mannerly", "warm", site.url, "--max-rate", "unlimited",
                 "--json", "--quiet"],
                cwd=here, capture_output=True, text=True, check=True,
            )  # fmt: skip
        warmth = json.loads(done.stdout)["warmth"]
        made = [each for each in site.log if not each.is_hit]
        loaded = p95([each.took_s for each in made])
        cacheable = sum(UNCACHED not in each.path for each in made)
        seconds = site.log[-1].at - site.log[0].at
    print(f"p95 alone {1000 * single:.0f} ms, while it is warmed {1000 * loaded:.0f} ms")
    print(f"ratio {loaded / single:.2f} (bound {BOUND:g})")
    print(f"{len(made)} pages made, {cacheable} of them for the cache, in {seconds:.0f} s")
    print(f"hit rate {warmth['hit_rate_before']:.1%} before, {warmth['hit_rate_after']:.1%} after")
