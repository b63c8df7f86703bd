"""Many jobs on a service that is killed again and again; judges are the servers' log and journal.

pages       every page of every job is recorded once
requests    a page is asked for again at most once a kill, and only as many as were in flight
states      every change of a state is one of the table, and each follows from the one before
schedules   no instant is skipped or served twice, but for those while the service was down or
the run before was still going
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.crawler.runtime.harness import real_pages
from tests.harness.waiting import eventually
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, plain_sites
from mannerly.service.jobs.model import JobEvent, JobState, after

if TYPE_CHECKING:
    from pathlib import Path

PER_HOST = 2  # requests in flight of one job to its host
OPTIONS = {
    "strategy": "fixed",
    "delay": 0.05,
    "max_rate": 20,
    "seeding_strategy": "none",
    "per_host": PER_HOST,
    "grace": 1,
}
PATIENCE_S = 1800.0


@dataclass(slots=True)
class Verdict:
    """What was counted; `problems` is empty if everything held."""

    jobs: int
    kills: int
    pages: int = 0  # recorded
    requests: int = 0  # for pages, as the servers saw them
    again: int = 0  # of these: for a page that this job had asked for already
    most_again: int = 0  # that in-flight requests at the kills explain
    moves: int = 0
    runs: int = 0  # of the job with a schedule
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def many_jobs(
    root: Path, *, jobs: int, hosts: int, at_once: int, kills: int, pages: int, minutes: int = 0
) -> Verdict:
    """Run the jobs, kill the service, and judge.

    `minutes` is how long the job with a schedule goes on afterwards, with one more kill.
    """
    verdict, began = Verdict(jobs, kills), time.monotonic()
    with (
        DemoWeb(plain_sites(hosts, pages=pages)) as web,
        ServiceProcess(root, "--jobs", str(at_once)) as service,
    ):
        short = {**OPTIONS, "max_urls": 1}
        timed = service.create(web.url("plain-0"), options=short, schedule="* * * * *")
        names = [f"plain-{number % hosts}" for number in range(jobs)]
        ids = {_create(service, web, name): name for name in names}
        expected = len(set(real_pages(web))) * jobs // hosts
        for number in range(kills):
            enough = expected * (number + 1) // (kills + 1)
            eventually(
                lambda enough=enough: len(web.log()) >= enough or _are_done(service, ids),
                within_s=PATIENCE_S,
            )
            service.kill()
            service.start()
        eventually(lambda: _are_done(service, ids), within_s=PATIENCE_S)
        _go_on(service, minutes)
        eventually(lambda: service.state(timed) == "finished", within_s=PATIENCE_S)
        _judge_pages(service, web, ids, verdict)
        # Requests of a killed process that reached the server, and the one of the timed job.
        verdict.most_again = kills * at_once * PER_HOST
        timed_job = service.call("GET", f"/api/jobs/{timed}")[1]
        verdict.runs = timed_job["run"]["number"]
        verdict.requests = sum(_is_page(record.path) for record in web.log()) - verdict.runs
        verdict.again = verdict.requests - verdict.pages
        for job in [*ids, timed]:
            _judge_moves(service.call("GET", f"/api/jobs/{job}")[1], verdict)
        _judge_schedule(timed_job, verdict)
    if not 0 <= verdict.again <= verdict.most_again + kills:
        verdict.problems.append(f"{verdict.again} pages were asked for again")
    verdict.seconds = time.monotonic() - began
    return verdict


def _go_on(service: ServiceProcess, minutes: int) -> None:
    """Let the schedule be due a few times, with a kill shortly before one of them."""
    for minute in range(minutes):
        time.sleep(60 - time.time() % 60 - 2.0)
        if minute == 0:
            service.kill()
            service.start()
        time.sleep(4.0)


def _create(service: ServiceProcess, web: DemoWeb, name: str) -> str:
    while True:
        body = {"seeds": [web.url(name)], "options": OPTIONS}
        status, job = service.call("POST", "/api/jobs", body)
        if status == 201:
            return str(job["id"])
        assert status == 429, job  # more than 20 changes a second
        time.sleep(1.0)


def _are_done(service: ServiceProcess, ids: dict[str, str]) -> bool:
    time.sleep(0.2)
    jobs = service.call("GET", "/api/jobs")[1]["jobs"]
    return all(job["state"] in ("finished", "failed") for job in jobs if job["id"] in ids)


def _is_page(path: str) -> bool:
    return path != "/robots.txt"


def _judge_pages(
    service: ServiceProcess, web: DemoWeb, ids: dict[str, str], verdict: Verdict
) -> None:
    for job, name in ids.items():
        lines = service.call("GET", f"/api/jobs/{job}/pages")[1].splitlines()
        urls = Counter(json.loads(line)["url"] for line in lines)
        verdict.pages += len(urls)
        wanted = {url for url in real_pages(web) if f"//{web.host(name)}/" in url}
        if missing := wanted - set(urls):
            verdict.problems.append(f"job {job} has no record of {len(missing)} pages")
        if doubled := [url for url, count in urls.items() if count > 1]:
            verdict.problems.append(f"job {job} has {len(doubled)} pages twice")


def _judge_moves(job: dict[str, Any], verdict: Verdict) -> None:
    moves = job["moves"][::-1]
    verdict.moves += len(moves)
    for move in moves:
        if after(JobState(move["was"]), JobEvent(move["event"])) != move["state"]:
            verdict.problems.append(f"job {job['id']}: illegal {move}")
    for earlier, later in pairwise(moves):
        if earlier["state"] != later["was"]:
            verdict.problems.append(f"job {job['id']}: {later} does not follow {earlier}")
    if job["state"] not in ("finished", "running", "queued"):
        verdict.problems.append(f"job {job['id']} is {job['state']}: {job['run']['error']}")


def _judge_schedule(job: dict[str, Any], verdict: Verdict) -> None:
    """Each instant of the schedule is served once: a run begins in the minute that it is due."""
    due = [move["at"] for move in job["moves"] if move["event"] == "resumed"]
    minutes = Counter(int(at // 60) for at in due)
    if doubled := [minute for minute, count in minutes.items() if count > 1]:
        verdict.problems.append(f"{len(doubled)} instants were served twice")
    numbers = sorted(run["number"] for run in job["runs"])
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        verdict.problems.append(f"the runs have the numbers {numbers}")
    ends = {run["number"]: run["ended_at"] for run in job["runs"]}
    for move in job["moves"]:
        if move["event"] != "resumed" or move["run"] - 1 not in ends:
            continue
        # The first instant after the end of the run before, unless the service was down then.
        first = (int(ends[move["run"] - 1] // 60) + 1) * 60
        if move["at"] > first + 30:
            verdict.problems.append(f"run {move['run']} began {move['at'] - first:.0f} s late")
