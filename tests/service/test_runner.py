"""Jobs run in the order in which they were queued, so many at once, and end as they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.service.jobs import Desk

from mannerly.crawler.store.base import StoreFull
from mannerly.service.jobs.model import JobEnd, JobEvent, JobState
from mannerly.service.jobs.runner import KEPT_DATA, RESTARTS, STOP_S

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_jobs_wait_for_their_turn(desk: Desk) -> None:
    """At most so many run at once; the others follow in the order in which they were queued."""
    ids = [desk.add(name) for name in "abcd"]
    desk.tick()
    first = desk.running()

    desk.started[0].ends()
    desk.tick()

    assert first == ["a", "b"]
    assert desk.running() == ["b", "c"]
    assert [desk.job(each).state for each in ids] == [
        JobState.FINISHED,
        JobState.RUNNING,
        JobState.RUNNING,
        JobState.QUEUED,
    ]


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (JobEnd("finished", fetched=2), JobState.FINISHED),
        (JobEnd("max_urls", fetched=2, pending=9), JobState.FINISHED),
        (JobEnd("no_seed", error="a.example: host not found"), JobState.FAILED),
        (JobEnd("terminated", error="20 URLs in a row ended in an error"), JobState.FAILED),
        (JobEnd("error", error="disk"), JobState.FAILED),
    ],
)
def test_end_of_a_crawl_decides_the_state(desk: Desk, end: JobEnd, state: JobState) -> None:
    """A crawl that did what was asked has finished; every other end is a failure."""
    job = desk.add()
    desk.tick()

    desk.started[0].ends(end)
    desk.tick()

    found = desk.job(job)
    assert found.state is state
    assert (found.run.ending, found.run.fetched, found.run.error) == (
        end.ending,
        end.fetched,
        end.error,
    )
    assert desk.book.runs(job) == [found.run]


def test_stopped_job_is_told_and_its_late_end_changes_nothing(desk: Desk) -> None:
    """The state is the operator's at once; the process ends within its grace."""
    job = desk.add()
    desk.tick()

    desk.book.move(job, JobEvent.STOPPED, now=desk.now)
    desk.tick()
    desk.tick()

    assert desk.started[0].is_told
    assert desk.job(job).state is JobState.STOPPED
    assert desk.job(job).run.pending == 5


def test_process_that_does_not_end_is_killed(desk: Desk) -> None:
    """A stopped job frees its place, whatever its process does."""
    job = desk.add()
    desk.tick()
    desk.started[0].obeys = False

    desk.book.move(job, JobEvent.PAUSED, now=desk.now)
    desk.tick()
    desk.tick(STOP_S)
    desk.tick()

    assert desk.started[0].is_killed
    assert desk.job(job).state is JobState.PAUSED
    assert not desk.runner.has_process(job)


def test_resumed_job_waits_for_its_last_process(desk: Desk) -> None:
    """Two processes never work on one crawl."""
    job = desk.add()
    desk.tick()
    desk.started[0].obeys = False
    desk.book.move(job, JobEvent.PAUSED, now=desk.now)
    desk.tick()

    desk.book.move(job, JobEvent.RESUMED, now=desk.now)
    desk.tick()
    before = len(desk.started)
    desk.started[0].ends(JobEnd("stopped"))
    desk.tick()

    assert before == 1
    assert len(desk.started) == 2
    assert desk.job(job).state is JobState.RUNNING


def test_dead_process_is_started_again_a_few_times(desk: Desk) -> None:
    """A job goes on after a crash; one that always crashes has failed."""
    job = desk.add()
    for _ in range(RESTARTS + 1):
        desk.tick()
        desk.started[-1].ends(None)

    desk.tick()

    assert len(desk.started) == RESTARTS + 1
    assert desk.job(job).state is JobState.FAILED
    assert "died" in str(desk.job(job).run.error)


def test_deaths_between_pages_are_forgiven(desk: Desk) -> None:
    """A job that gets on is never given up because it died now and then."""
    job = desk.add()
    for _ in range(3 * RESTARTS):
        desk.tick()
        desk.started[-1].reports(fetched=1)
        desk.tick()
        desk.started[-1].ends(None)

    desk.tick()

    assert desk.job(job).state in (JobState.QUEUED, JobState.RUNNING)


def test_what_ran_when_the_service_died_goes_on(desk: Desk, tmp_path: Path) -> None:
    """The next service queues it again, and uses the same directory."""
    job = desk.add()
    desk.tick()
    place = desk.started[0].order.location
    desk.book.close()

    again = Desk(tmp_path)
    again.tick()

    assert again.job(job).state is JobState.RUNNING
    assert again.started[0].order.location == place


def test_end_that_cannot_be_written_is_written_later(desk: Desk) -> None:
    """No other job waits for it, and nothing is run twice."""
    first, second = desk.add("a"), desk.add("b")
    desk.tick()
    desk.started[0].ends(JobEnd("finished", fetched=3))
    desk.started[1].ends(JobEnd("finished", fetched=5))
    desk.book.is_full = True
    with pytest.raises(StoreFull):
        desk.tick()

    desk.book.is_full = False
    desk.tick()

    results = [(desk.job(job).state, desk.job(job).run.fetched) for job in (first, second)]
    assert results == [(JobState.FINISHED, 3), (JobState.FINISHED, 5)]
    assert len(desk.started) == 2


def test_job_is_not_started_while_its_start_cannot_be_written(desk: Desk) -> None:
    """It has no process that the book does not know of, and starts when there is room."""
    job = desk.add()
    desk.book.is_full = True
    with pytest.raises(StoreFull):
        desk.tick()
    started = len(desk.started)

    desk.book.is_full = False
    desk.tick()

    assert started == 0
    assert desk.job(job).state is JobState.RUNNING
    assert len(desk.started) == 1


def test_data_of_old_runs_is_deleted(desk: Desk, tmp_path: Path) -> None:
    """Those of the last runs stay; also one that an earlier service left behind is deleted."""
    job = desk.add(schedule="* * * * *")
    for number in range(1, KEPT_DATA + 3):
        (tmp_path / job / f"run-{number}").mkdir(parents=True)
    for _ in range(KEPT_DATA + 1):
        desk.tick(60.0)
        desk.started[-1].ends()
        desk.tick()

    desk.tick(60.0)

    left = sorted(path.name for path in (tmp_path / job).iterdir())
    assert left == [f"run-{number}" for number in range(3, KEPT_DATA + 3)]


def test_schedule_starts_a_new_run_each_time(desk: Desk) -> None:
    """Every minute one run, with a directory of its own."""
    job = desk.add(schedule="* * * * *")
    desk.tick()
    for _ in range(3):
        desk.started[-1].ends()
        desk.tick()
        desk.tick(60.0)

    places = [process.order.location for process in desk.started]

    assert len(set(places)) == len(places) == 4
    assert [run.number for run in desk.book.runs(job)] == [3, 2, 1]


def test_run_that_is_still_going_is_not_started_twice(desk: Desk) -> None:
    """Instants that pass meanwhile are skipped, and the next one after the end is served."""
    desk.add(schedule="* * * * *")
    desk.tick()

    for _ in range(5):
        desk.tick(60.0)
    during = len(desk.started)
    desk.started[0].ends()
    desk.tick()
    desk.tick(60.0)

    assert during == 1
    assert len(desk.started) == 2


def test_instants_that_passed_while_the_service_was_down_are_served_once(
    desk: Desk, tmp_path: Path
) -> None:
    """A day without the service is one run, not 1,440."""
    desk.add(schedule="* * * * *")
    desk.tick()
    desk.started[0].ends()
    desk.tick()
    desk.book.close()

    again = Desk(tmp_path)
    again.now = desk.now + 86_400
    for _ in range(4):
        again.tick()

    assert len(again.started) == 1


def test_run_that_is_asked_for_during_a_run_comes_after_it(tmp_path: Path) -> None:
    """Once, however often it was asked for; a job that has ended begins at once."""
    desk = Desk(tmp_path)
    job = desk.add()
    desk.tick()

    for _ in range(3):
        desk.book.run_again(job, now=desk.now)
    desk.started[0].ends()
    desk.tick()
    numbers = [desk.job(job).run.number]
    desk.started[1].ends()
    desk.tick()
    is_over = desk.job(job).state
    desk.book.run_again(job, now=desk.now)
    desk.tick()
    numbers.append(desk.job(job).run.number)

    assert numbers == [2, 3]
    assert is_over is JobState.FINISHED
    assert len(desk.started) == 3


def test_job_that_is_stopped_does_not_run_again_by_itself(tmp_path: Path) -> None:
    """The operator has the last word."""
    desk = Desk(tmp_path)
    job = desk.add()
    desk.tick()

    desk.book.run_again(job, now=desk.now)
    desk.book.move(job, JobEvent.STOPPED, now=desk.now)
    desk.tick()

    assert desk.job(job).state is JobState.STOPPED
    assert len(desk.started) == 1
