"""A spider in a shop, killed at random: every item once, with one process, two, and in a fleet.

The small cases run with all tests; `-m long` has a shop of 3,000 pages and ten kills.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.store.valkey_server import shared_url
from tests.harness.commands import environment, run, started
from tests.harness.processes import kill_session
from tests.harness.shop import PASSWORD, as_counted, open_shops
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import Popen

    from tests.harness.shop import Shops

pytestmark = pytest.mark.processes

SMALL: dict[str, Any] = {"products": 45, "words": 3, "orders": 5}
LARGE: dict[str, Any] = {"products": 900, "words": 20, "orders": 30}  # 999 pages of each of three


def items_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def ask_for_the_unanswered(folder: Path, variables: dict[str, str], *place: str) -> None:
    """A login or a search that a kill has hit is sent again on purpose."""
    again = run("retry", *place, "--unanswered", "-q", cwd=folder, env=variables)
    assert again.returncode in (0, 1) or "skipped are: none" in again.stderr, again.stderr


def everything_after_kills(
    folder: Path, shops: Shops, kills: int, *options: str, seed: int, delay: float
) -> None:
    """Kill the run that often, at random; what it brings in the end is every item once."""
    shops.spider(folder, delay)
    variables = environment(SHOP_PASSWORD=PASSWORD)
    words = ("run", "shop.py", "-o", "items.jsonl", "-q", *options)
    pages = sum(shops.wanted().values())
    random = Random(seed)
    for _ in range(kills):
        most = shops.asked + random.randrange(1, max(2, pages // kills))
        with started(*words, cwd=folder, env=variables) as process:
            eventually(
                lambda most=most, ends=process: shops.asked >= most or ends.poll() is not None
            )
            kill_session(process.pid)
            eventually(lambda ended=process: ended.poll() is not None)
    done = run(*words, cwd=folder, env=variables, within_s=600)
    repeated = shops.repeated_posts()
    ask_for_the_unanswered(folder, variables, "crawl-shop")
    last = run(*words, cwd=folder, env=variables, within_s=600)

    assert done.returncode == 0, done.stderr
    assert last.returncode == 0, last.stderr
    assert repeated == {}
    assert as_counted(items_in(folder / "items.jsonl")) == shops.wanted()


def test_kills_cost_no_item_and_double_none(tmp_path: Path) -> None:
    """Products with data from their list, searches by POST, orders behind a login."""
    with open_shops(2, **SMALL) as shops:
        everything_after_kills(tmp_path, shops, 3, "--processes", "2", seed=2, delay=0.03)


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
def test_ten_kills_in_a_large_shop(tmp_path: Path, processes: int) -> None:
    """The same with 3,000 pages."""
    with open_shops(3, **LARGE) as shops:
        options = ("--processes", str(processes))
        everything_after_kills(tmp_path, shops, 10, *options, seed=10 + processes, delay=0.01)


def everything_of_a_fleet(folder: Path, shops: Shops, delay: float) -> None:
    """Three workers run the spider, one is killed in the middle: every item once."""
    shops.spider(folder, delay)
    variables = environment(SHOP_PASSWORD=PASSWORD)
    name, pages = f"shop-{os.getpid()}-{folder.name}", sum(shops.wanted().values())
    place = ("--redis-url", shared_url(), "--crawl", name)
    other = folder / "elsewhere" / "shop.py"  # on the third machine the spider is another version
    other.parent.mkdir()
    other.write_text((folder / "shop.py").read_text() + "# another version\n")
    with ExitStack() as stack:

        def worker(number: int, file: Path) -> Popen[str]:
            words = ("run", file, *place, "--data-dir", f"worker-{number}", "--log-format", "text")
            return stack.enter_context(started(*words, cwd=folder, env=variables))

        workers = [worker(0, folder / "shop.py"), worker(1, folder / "shop.py")]
        eventually(lambda: shops.asked > len(shops.shops))
        workers.append(worker(2, other))
        eventually(lambda: shops.asked >= pages // 3, within_s=300)
        os.killpg(workers[0].pid, signal.SIGKILL)
        eventually(lambda: all(each.poll() is not None for each in workers), within_s=600)
        ends = [each.returncode for each in workers]
        said = [each.stderr.read() for each in workers if each.stderr is not None]
    repeated = shops.repeated_posts()
    folders = [word for number in range(3) for word in ("--data-dir", f"worker-{number}")]
    stored = (shared_url(), "--crawl", name)
    ask_for_the_unanswered(folder, variables, *stored)
    last = run(
        *("run", "shop.py", *place, "--data-dir", "worker-1", "-q"),
        cwd=folder,
        env=variables,
        within_s=600,
    )
    export = run("export", *stored, *folders, "-o", "items:items.jsonl", cwd=folder, env=variables)

    assert ends == [-signal.SIGKILL, 0, 0], said
    assert "runs another version of shop.py" in said[2]
    assert "runs another version" not in said[1]
    assert last.returncode == 0, last.stderr
    assert repeated == {}
    assert export.returncode == 0, export.stderr
    assert as_counted(items_in(folder / "items.jsonl")) == shops.wanted()


def test_fleet_loses_a_worker_and_no_item(tmp_path: Path) -> None:
    """Whoever has the shop of the lost worker goes on with its queue and its login."""
    with open_shops(3, **SMALL) as shops:
        everything_of_a_fleet(tmp_path, shops, delay=0.1)


@pytest.mark.long
def test_fleet_loses_a_worker_in_a_large_shop(tmp_path: Path) -> None:
    """The same with 3,000 pages."""
    with open_shops(3, **LARGE) as shops:
        everything_of_a_fleet(tmp_path, shops, delay=0.02)
