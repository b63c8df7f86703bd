"""The pace of warming yields to latency: in virtual time, on sites that slow down under load."""

from __future__ import annotations

import pytest
from bench.warm import BOUND, SITES, WARM, slowdown


@pytest.mark.parametrize("seconds", [60, 300])
@pytest.mark.parametrize("site", SITES)
def test_site_that_slows_down_is_held_below_twice_its_unloaded_p95(
    site: str, seconds: float
) -> None:
    """Whatever makes it slow: too few workers, a shared processor, or every single request."""
    assert max(slowdown(site, WARM, seconds, seed) for seed in (1, 2)) <= BOUND


def test_warming_yields_earlier_than_a_crawl() -> None:
    """Its factor is a default of its own, which the operator can change."""
    assert WARM.latency_factor == 1.4
