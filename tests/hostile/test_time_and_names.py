"""Clocks that step, and names that do not resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import real_pages
from tests.crawler.shard.shard_world import ShardWorld
from tests.hostile.commands import PLAIN, pages, records, run

from mannerly.crawler.model import Now
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.conftest import Figure

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@pytest.mark.parametrize("step_s", [-DAY_S, -HOUR_S, HOUR_S, DAY_S])
def test_stepped_clock_shortens_no_retry_after(step_s: float, figure: Figure) -> None:
    """The wall clock jumps while a Retry-After of 100 s runs: nothing is sent before its end."""
    world = ShardWorld("https://a.example/", "https://a.example/1")
    world.pass_robots()
    world.wait(1.0)
    (request,) = world.start()
    world.answer(request, 429, retry_after="100")
    asked_at = world.now.mono

    world.now = Now(world.now.mono, world.now.wall + step_s)
    world.shard.commit(world.now)
    early = []
    while world.now.mono < asked_at + 99.9:
        world.wait(0.9)
        early += world.start() if world.now.mono < asked_at + 100.0 else []
    world.wait(20.0)
    late = world.start()

    figure("F11", f"clock steps of ±1 h and ±1 day: {len(early)} requests inside a Retry-After")
    assert early == []
    assert len(late) == 1


@pytest.mark.processes
def test_names_that_do_not_resolve_delay_no_other_host(tmp_path: Path, figure: Figure) -> None:
    """Eight names without an address beside a real host: that one is crawled whole."""
    names = [f"http://nosuch-{number}.invalid/" for number in range(8)]
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(1, pages=40)) as web:
        words = [*PLAIN, "--data-dir", str(data_dir), "--ignore-robots"]
        ended = run("crawl", *names, *web.seeds(), *words)
        lost = set(real_pages(web)) - {row["url"] for row in pages(data_dir)}

    reasons = {
        row["url"]: str(row.get("error") or row.get("reason"))
        for row in records(data_dir)
        if row["url"] in names
    }
    figure("F12", f"8 names without an address: {len(lost)} of 40 pages of the other host lost")
    assert ended.code in (0, 1), ended.said
    assert lost == set()
    assert set(reasons) == set(names)
    assert all("dns" in reason or "host_retired" in reason for reason in reasons.values())
