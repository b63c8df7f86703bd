"""Workers of one crawl as real processes, on a real server."""

from __future__ import annotations

import shlex
import signal
import time
from itertools import pairwise
from shutil import rmtree
from typing import TYPE_CHECKING

import pytest
import redis
from tests.crawler.fleet.fleet_world import Fleet, run
from tests.crawler.store.valkey_server import LocalServer, shared_url
from tests.harness.sites import free_port
from tests.harness.waiting import eventually

from mannerly.cli.endings import resume_command
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.valkey.keys import is_listed
from mannerly.crawler.store.valkey.manifest import SCHEMA
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

HOSTS, PAGES = 10, 12


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(HOSTS, pages=PAGES, neighbours=2)) as web:
        yield web


@pytest.fixture
def fleet(web: DemoWeb, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(shared_url(), web, tmp_path, "--delay", "0.4")
    yield fleet
    fleet.close()


def test_two_workers_crawl_to_the_end(fleet: Fleet) -> None:
    """Every page is fetched and recorded once; each worker writes what it committed."""
    first = fleet.join()
    fleet.hold()
    second = fleet.join()
    eventually(lambda: fleet.shares() == [16, 16])
    status = fleet.status()
    fleet.go_on()

    assert [first.end(), second.end()] == [0, 0], first.said + second.said
    assert status["state"] == "paused"
    assert set(status["workers"][0]) >= {"id", "machine", "pid", "shards", "fetched", "seen_s"}
    fetched = fleet.fetched()
    assert set(fetched.values()) == {1}
    assert len(fetched) == HOSTS * PAGES
    parts = first.pages(), second.pages()
    assert all(parts)
    assert sorted(parts[0] + parts[1]) == sorted(fetched)
    assert fleet.status()["state"] == "finished"
    code, urls = fleet.exported(first, second)
    assert (code, sorted(urls)) == (0, sorted(fetched))
    code, urls = fleet.exported(first)
    assert (code, sorted(urls)) == (1, sorted(parts[0]))
    listed = run("status", fleet.url)
    assert fleet.name in listed.stdout
    assert fleet.join().end() == 0
    assert fleet.fetched() == fetched


def test_shards_of_a_killed_worker_are_taken_over(web: DemoWeb, tmp_path: Path) -> None:
    """Within the time of a lease and five seconds; nothing is lost, and each host has its gap."""
    fleet = Fleet(shared_url(), web, tmp_path, "--delay", "0.9")
    victim = fleet.join()
    fleet.hold()
    other = fleet.join()
    eventually(lambda: fleet.shares() == [16, 16])
    fleet.go_on()
    fleet.until_requests(HOSTS * 3)
    own = {each.host for each in fleet.log()[-20:]}
    victim.kill()

    assert other.end() == 0, other.said
    status = fleet.status()
    assert status["total"]["queued"] == 0
    fetched = fleet.fetched()
    assert len(fetched) == HOSTS * PAGES
    fleet.require_gaps(0.9)
    code, urls = fleet.exported(victim, other)
    assert (code, len(urls), len(set(urls))) == (0, HOSTS * PAGES, HOSTS * PAGES)
    for host in own:
        instants = [each.t for each in fleet.log() if each.host == host]
        silent_s = max(after - first for first, after in pairwise(instants))
        assert silent_s < 20.0 + 5.0, host


def test_stop_ends_all_workers(fleet: Fleet) -> None:
    """With the exit code of a crawl that was stopped; the same command goes on."""
    workers = [fleet.join(), fleet.join()]
    fleet.until_requests(10)
    fleet.hold()
    eventually(lambda: len(fleet.shares()) == 2)

    stopped = fleet.command("stop")

    assert stopped.returncode == 0, stopped.stderr
    assert [worker.end() for worker in workers] == [143, 143]
    fleet.go_on()
    assert fleet.status()["state"] == "stopped"


@pytest.mark.long
def test_a_worker_that_is_interrupted_hands_its_shards_over_at_once(
    web: DemoWeb, tmp_path: Path
) -> None:
    """The other one need not wait for the end of a lease."""
    fleet = Fleet(shared_url(), web, tmp_path, "--delay", "1.5")
    leaver = fleet.join()
    fleet.hold()
    other = fleet.join()
    eventually(lambda: fleet.shares() == [16, 16])
    fleet.go_on()

    leaver.signal(signal.SIGINT)

    assert leaver.end() == 130
    ended_at = time.monotonic()
    eventually(lambda: fleet.shares() == [32])
    assert time.monotonic() - ended_at < 12.0
    assert other.end() == 0
    assert set(fleet.fetched().values()) <= {1, 2}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--delay", "9"], ["--delay is 9", "0.4", "leave it out"]),
        (["--max-urls", "3"], ["--max-urls is 3", "mannerly set"]),
        (["--max-depth", "3"], ["--max-depth is 3", "not set"]),
    ],
)
def test_another_value_of_an_option_is_refused(
    fleet: Fleet, options: list[str], words: list[str]
) -> None:
    """With both values."""
    fleet.join()
    eventually(lambda: fleet.command("status").returncode == 0)

    other = fleet.join(*options)

    assert other.end() == 2
    for word in words:
        assert word in other.said


def test_a_data_directory_has_one_worker(fleet: Fleet) -> None:
    """A second process in it is refused."""
    first = fleet.join()
    fleet.until_requests(1)
    fleet.workers.clear()
    fleet.hold()
    second = fleet.join()

    code = second.end()
    first.kill()
    assert code == 4
    assert "in use" in second.said


def test_a_password_on_the_command_line_is_refused(web: DemoWeb, tmp_path: Path) -> None:
    """Others can read it there. It is not repeated."""
    fleet = Fleet("redis://:hunter2@127.0.0.1:1/0", web, tmp_path)
    worker = fleet.join()

    assert worker.end() == 2
    assert "MANNERLY_REDIS_URL" in worker.said
    assert "hunter2" not in worker.said
    status = run("status", fleet.url, "--crawl", "any")
    assert (status.returncode, "hunter2" in status.stderr) == (2, False)


def test_patience_with_a_server_that_is_not_there_has_an_end(web: DemoWeb, tmp_path: Path) -> None:
    """Exit code 5, with the reason."""
    fleet = Fleet(f"redis://127.0.0.1:{free_port()}/0", web, tmp_path)

    worker = fleet.join("--store-patience", "1")

    assert worker.end() == 5
    assert "--store-patience" in worker.said


def test_a_crawl_that_is_gone_is_never_finished(web: DemoWeb, tmp_path: Path) -> None:
    """FLUSHALL ends its workers with an explanation, and their directories are of no use."""
    with LocalServer() as server:
        fleet = Fleet(server.url, web, tmp_path, "--delay", "1")
        worker = fleet.join()
        fleet.until_requests(5)

        server.client().flushall()

        assert worker.end() == 4
        assert "lost its data" in worker.said
        again = run(
            *("crawl", *fleet.seeds, "--redis-url", server.url, "--crawl", fleet.name),
            *("--data-dir", str(worker.home)),
        )
        assert again.returncode == 4
        assert "--fresh" in again.stderr


def test_the_command_that_is_printed_for_a_crawl_in_a_server_works(fleet: Fleet) -> None:
    """It joins the crawl as the same worker, and brings it to its end."""
    worker = fleet.join()
    fleet.until_requests(HOSTS)
    worker.process.terminate()
    assert worker.end() == 143
    (printed,) = [line.strip() for line in worker.said.splitlines() if "--data-dir" in line]

    done = run(*shlex.split(printed)[1:], "--quiet")

    assert done.returncode == 0, done.stderr
    assert printed == f"{resume_command(f'{fleet.url}#{fleet.name}')} --data-dir {worker.home}"
    code, urls = fleet.exported(worker)
    assert (code, len(urls)) == (0, HOSTS * PAGES)


def test_every_key_that_a_crawl_leaves_is_listed(fleet: Fleet) -> None:
    """Those of the crawl, of its shards and of the memory of hosts."""
    assert fleet.join().end() == 0

    with redis.Redis.from_url(fleet.url) as client:
        keys = [key.decode() for key in client.scan_iter("*")]

    assert len(keys) > HOSTS
    assert [key for key in keys if not is_listed(key)] == []


def test_the_data_directory_of_a_worker_is_resumed_in_its_crawl(fleet: Fleet) -> None:
    """Under its name; other commands name the server and the crawl."""
    worker = fleet.join()
    fleet.until_requests(HOSTS * 2)
    worker.process.terminate()
    assert worker.end() == 143
    looked = run("status", str(worker.home))
    assert looked.returncode == 2
    assert f"give {fleet.url} --crawl {fleet.name}" in looked.stderr

    resumed = run("resume", str(worker.home), "--quiet")

    assert resumed.returncode == 0, resumed.stderr
    code, urls = fleet.exported(worker)
    assert (code, len(urls)) == (0, HOSTS * PAGES)


def test_records_of_a_lost_disk_are_fetched_again_by_the_workers_that_are_left(
    web: DemoWeb, tmp_path: Path
) -> None:
    """By an order to a running crawl; then an export has every record once."""
    fleet = Fleet(shared_url(), web, tmp_path, "--delay", "1.0")
    try:
        left, lost = fleet.join(), fleet.join()
        eventually(lambda: len(shares := fleet.shares()) == 2 and min(shares) > 10)
        fleet.until_requests(HOSTS * PAGES // 2)
        lost.signal(signal.SIGTERM)
        assert lost.end() == 143, lost.said
        rmtree(lost.home)
        before = fleet.exported(left)[0]
        ordered = fleet.command("retry", "--missing", "--data-dir", str(left.home))
        assert left.end() == 0, left.said
        code, urls = fleet.exported(left)
    finally:
        fleet.close()

    assert before == 1
    assert ordered.returncode == 0, ordered.stderr
    assert f"Fetching {len(lost.pages())} pages again whose record is lost" in ordered.stderr
    asked = fleet.fetched()
    assert len(asked) == HOSTS * PAGES
    assert (code, sorted(urls)) == (0, sorted(asked))
    assert {url for url, times in asked.items() if times > 1} == set(lost.pages())
    assert max(asked.values()) == 2


def test_lost_records_of_a_finished_crawl_wait_for_a_worker(fleet: Fleet) -> None:
    """The command says how to join; without a directory it does nothing."""
    lost = fleet.join()
    assert lost.end() == 0, lost.said
    rmtree(lost.home)
    (fleet.folder / "empty").mkdir()

    blind = fleet.command("retry", "--missing")
    ordered = fleet.command("retry", "--missing", "--data-dir", str(fleet.folder / "empty"))
    worker = fleet.join()
    assert worker.end() == 0, worker.said
    code, urls = fleet.exported(worker)
    nothing = fleet.command("retry", "--missing", "--data-dir", str(worker.home))

    assert (blind.returncode, "--data-dir" in blind.stderr) == (2, True)
    assert f"--redis-url {fleet.url} --crawl {fleet.name}" in ordered.stderr
    assert (code, sorted(urls)) == (0, sorted(lost.pages()))
    assert set(fleet.fetched().values()) == {2}
    assert "nothing to fetch again" in nothing.stderr


@pytest.mark.parametrize("command", ["crawl", "status", "wipe"])
def test_a_crawl_of_a_newer_release_is_left_alone(command: str, fleet: Fleet) -> None:
    """Exit code 4, and the release to use; --fresh does not wipe it either."""
    location = f"{fleet.url}#{fleet.name}"
    create_crawl(location, new_manifest()).close()
    key = f"mannerly:{{{fleet.name}}}:manifest"
    with redis.Redis.from_url(fleet.url) as client:
        text = client.get(key).replace(b'"schema":%d' % SCHEMA, b'"schema":99')
        client.set(key, text)
        words = {
            "crawl": ["crawl", *fleet.seeds[:1], "--redis-url", fleet.url, "--fresh"],
            "status": ["status", fleet.url],
            "wipe": ["wipe", fleet.url, "--yes"],
        }[command]

        done = run(*words, "--crawl", fleet.name)

        assert (done.returncode, client.get(key)) == (4, text)
    assert "newer release of mannerly (schema 99" in done.stderr
