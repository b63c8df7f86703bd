"""Spiders as jobs: those that the operator has installed, by name; never code of a request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke
from tests.harness.shop import as_counted, open_shops
from tests.harness.waiting import eventually
from tests.service.running import ServiceProcess

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("", "/status", "/items", "/pages", "/report")
SMALL = {"products": 25, "words": 2, "orders": 0}
BROKEN = """
import mannerly

broken = mannerly.Spider("http://127.0.0.1:9/", follow=False, delay=0.01)

@broken.on("*")
def each(page):
    raise KeyError("price")
"""


@pytest.mark.processes
def test_jobs_run_the_spiders_of_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its seeds or those of the job; the items by an operation; a failure is the job's error."""
    monkeypatch.setenv("SHOP_PASSWORD", "sesame")
    (tmp_path / "broken.py").write_text(BROKEN)
    with open_shops(2, **SMALL) as shops:
        file = shops.spider(tmp_path, delay=0.01)
        options = ("--spider", f"shop={file}", "--spider", f"bad={tmp_path / 'broken.py'}:broken")
        with ServiceProcess(tmp_path / "root", *options) as service:
            full = service.create(spider="shop")
            limited = service.create(f"{shops.origins[0]}/", spider="shop", options={"max_urls": 4})
            bad = service.create(f"{shops.origins[0]}/", spider="bad")
            for job, state in ((full, "finished"), (limited, "finished"), (bad, "failed")):
                eventually(lambda job=job, state=state: service.state(job) == state)
            items = service.call("GET", f"/api/jobs/{full}/items")[1]
            few = service.call("GET", f"/api/jobs/{limited}")[1]["run"]["fetched"]
            error = service.call("GET", f"/api/jobs/{bad}")[1]["run"]["error"]
            refused = [
                service.call("POST", "/api/jobs", wanted)
                for wanted in (
                    {"spider": "nobody"},
                    {"spider": str(file)},
                    {"spider": "shop", "kind": "warm"},
                    {"spider": "shop", "options": {"extract": str(file)}},
                    {},
                )
            ]

    lines = [json.loads(line) for line in items.splitlines()]
    assert as_counted(lines) == shops.wanted()
    assert few == 4
    assert "handlers failed on 1 page" in error
    assert "KeyError: 'price'" in error
    assert [(status, problem["field"]) for status, problem in refused] == [
        *((400, "spider"), (400, "spider"), (400, "spider")),
        *((400, "options.extract"), (400, "seeds")),
    ]
    assert "there are: shop, bad" in refused[0][1]["detail"]


@pytest.mark.processes
def test_runs_of_a_spider_that_is_gone_can_be_read(tmp_path: Path) -> None:
    """Only another run needs the spider: it says so."""
    (tmp_path / "one.py").write_text(
        BROKEN.replace('raise KeyError("price")', "return {'url': page.url}")
    )
    with open_shops(1, **SMALL) as shops:
        with ServiceProcess(tmp_path / "root", "--spider", f"one={tmp_path / 'one.py'}") as service:
            job = service.create(f"{shops.origins[0]}/", spider="one")
            eventually(lambda: service.state(job) == "finished")
            before = [service.call("GET", f"/api/jobs/{job}{part}") for part in PARTS]
        with ServiceProcess(tmp_path / "root") as service:
            after = [service.call("GET", f"/api/jobs/{job}{part}")[0] for part in PARTS]
            service.call("POST", f"/api/jobs/{job}/run")
            eventually(lambda: service.state(job) == "failed")
            error = service.call("GET", f"/api/jobs/{job}")[1]["run"]["error"]

    assert [status for status, _ in before] == after == [200] * len(PARTS)
    assert "'one' is no spider of this service" in error


@pytest.mark.parametrize(
    ("spiders", "words"),
    [
        (["shop"], "allowed: NAME=FILE.py[:NAME]"),
        (["shop=nowhere.py"], "there is no file"),
        (["a=b.py", "a=b.py"], "the name is taken"),
    ],
)
def test_spider_that_cannot_be_installed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spiders: list[str], words: str
) -> None:
    """Before the service listens."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.py").write_text(BROKEN)

    done = invoke("serve", *(word for each in spiders for word in ("--spider", each)))

    assert done.exit_code == 2
    assert words in done.stderr
