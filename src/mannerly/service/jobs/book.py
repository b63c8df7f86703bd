"""The jobs of a service, in one SQLite file: they survive the service, kill -9 included.

A job is one row, its value as JSON beside the columns that are asked for. Every change of a state
goes through `move`, which applies the table of states (`model`) inside a transaction: a late event
changes nothing. Every other change goes through `change`, which reads the job in its own
transaction: a caller that waited meanwhile cannot write back what was true before. The journal
keeps the last changes of each job. A schedule's next instant is moved on in the transaction that
queues its run, so that no run is skipped or started twice.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from mannerly.database.sqlite import Database, FileKind

from .kinds import KINDS
from .model import ENDED, Job, JobEvent, JobRun, JobState, after, next_due

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEPT_RUNS = 20  # of a job; older results are forgotten
KEPT_MOVES = 200  # of a job

JOBS = FileKind(
    "jobs",
    0x6D6E6A62,  # "mnjb"
    2,
    """
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY NOT NULL, state TEXT NOT NULL, queued_at REAL NOT NULL,
        next_due REAL, owes_webhook INTEGER NOT NULL, job TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE runs (
        job TEXT NOT NULL, number INTEGER NOT NULL, run TEXT NOT NULL, PRIMARY KEY (job, number)
    ) WITHOUT ROWID;
    CREATE TABLE journal (
        number INTEGER PRIMARY KEY, job TEXT NOT NULL, at REAL NOT NULL, event TEXT NOT NULL,
        was TEXT NOT NULL, state TEXT NOT NULL, run INTEGER NOT NULL
    );
    CREATE INDEX journal_job ON journal (job, number);
    """,
)

_SAVE = """
    INSERT OR REPLACE INTO jobs (id, state, queued_at, next_due, owes_webhook, job)
    VALUES (?, ?, ?, ?, ?, ?)
"""
_MOVED = "INSERT INTO journal (job, at, event, was, state, run) VALUES (?, ?, ?, ?, ?, ?)"
_MOVES = "SELECT at, event, was, state, run FROM journal WHERE job = ? ORDER BY number DESC LIMIT ?"
_FORGET_MOVES = """
    DELETE FROM journal WHERE job = ?1 AND number <= (
        SELECT number FROM journal WHERE job = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2
    )
"""
_KEEP_RUN = "INSERT OR REPLACE INTO runs (job, number, run) VALUES (?, ?, ?)"


class JobMove(msgspec.Struct, frozen=True):
    """One change of a job's state."""

    at: float
    event: JobEvent
    was: JobState
    state: JobState
    run: int


class JobBook:
    """The jobs of one service. It is used by one thread.

    Attributes:
        ends: runs that ended since the book was opened, by the state of their job then.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            Database.create(path, JOBS).close()
        self._file = Database.open(path, JOBS, durable=True, busy_ms=5000)
        self.ends: Counter[JobState] = Counter()

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._file.close()

    def add(self, job: Job) -> None:
        """Add a job."""
        with self._file.transaction():
            self._save(job)

    def get(self, job_id: str) -> Job | None:
        """Return a job; None if there is none with this id."""
        row = self._file.row("SELECT job FROM jobs WHERE id = ?", (job_id,))
        return None if row is None else self._job(row[0])

    def jobs(self, *states: JobState) -> list[Job]:
        """Return the jobs in these states, or all: in the order in which they were queued."""
        wanted = states or tuple(JobState)
        marks = ", ".join("?" * len(wanted))
        rows = self._file.rows(
            f"SELECT job FROM jobs WHERE state IN ({marks}) ORDER BY queued_at, id",  # noqa: S608
            [state.value for state in wanted],
        )
        return [self._job(row[0]) for row in rows]

    def runs(self, job_id: str) -> list[JobRun]:
        """Return the runs of a job that have ended, the latest first."""
        rows = self._file.rows("SELECT run FROM runs WHERE job = ? ORDER BY number DESC", (job_id,))
        return [msgspec.json.decode(row[0], type=JobRun) for row in rows]

    def move(self, job_id: str, event: JobEvent, *, now: float, run: JobRun | None = None) -> bool:
        """Apply an event to a job; return whether it changed anything. `run` is its new result."""
        with self._file.transaction():
            job = self.get(job_id)
            state = None if job is None else after(job.state, event)
            if job is None or state is None:
                return False
            before = job.state
            if state is JobState.QUEUED:
                job = msgspec.structs.replace(job, queued_at=now)
            if run is None and before is JobState.FINISHED and _begins_anew(job):
                run = JobRun(number=job.run.number + 1)
            if run is not None:
                job = msgspec.structs.replace(job, run=run)
            job = msgspec.structs.replace(job, state=state)
            self._note(job, event, before, now)
            if state in ENDED:
                run = msgspec.structs.replace(job.run, state=state)
                waiting = [*job.undelivered, run][-KEPT_RUNS:] if job.webhook is not None else []
                job = msgspec.structs.replace(job, run=run, undelivered=waiting)
                self._keep_run(job.id, run)
            self._save(job)
            if state in ENDED and job.wants_run and event is not JobEvent.STOPPED:
                self._begin_run(job, now)
        if state in ENDED:
            self.ends[state] += 1
        return True

    def run_again(self, job_id: str, *, now: float) -> None:
        """Queue another run of a job; if one is going, when it has ended."""
        with self._file.transaction():
            job = self.get(job_id)
            if job is None:
                return
            if job.state in ENDED:
                self._begin_run(job, now)
            elif job.state is JobState.RUNNING:
                self._save(msgspec.structs.replace(job, wants_run=True))

    def _begin_run(self, job: Job, now: float) -> None:
        """Queue a job that has ended, for its next run."""
        before = job.state
        run = JobRun(number=job.run.number + 1)
        job = msgspec.structs.replace(
            job, state=JobState.QUEUED, queued_at=now, run=run, wants_run=False
        )
        self._note(job, JobEvent.RESUMED, before, now)
        self._save(job)

    def change(self, job_id: str, apply: Callable[[Job], Job]) -> Job | None:
        """Change values of a job as it is now; return it, None if there is none with this id.

        `apply` returns the changed job. It must leave the state as it is: that is for `move`.
        """
        with self._file.transaction():
            job = self.get(job_id)
            if job is not None:
                changed = apply(job)
                assert changed.state is job.state, "move changes the state"
                self._save(changed)
                job = changed
            return job

    def record(self, job_id: str, run: JobRun) -> None:
        """Keep the result of a run whose process ended after its job was stopped or paused."""

        def apply(job: Job) -> Job:
            is_present = job.run.number == run.number  # else the next one was asked for since
            ended = [each for each in self.runs(job_id) if each.number == run.number]
            state = job.run.state if is_present else ended[0].state if ended else None
            result = msgspec.structs.replace(run, state=state)
            if ended:
                self._keep_run(job_id, result)
            waiting = list(job.undelivered)
            if waiting and waiting[-1].number == run.number:
                waiting[-1] = result
            present = result if is_present else job.run
            return msgspec.structs.replace(job, run=present, undelivered=waiting)

        self.change(job_id, apply)

    def start_due(self, now: float) -> list[str]:
        """Queue the jobs whose schedule is due; return their ids.

        One that has not ended yet is passed over: this run is skipped, not started twice.
        """
        rows = self._file.rows("SELECT job FROM jobs WHERE next_due <= ?", (now,))
        started = []
        for row in rows:
            with self._file.transaction():
                job = self._job(row[0])
                assert job.schedule is not None, "it has a next instant"
                job = msgspec.structs.replace(job, next_due=next_due(job.schedule, now))
                if job.state in ENDED:
                    started.append(job.id)
                    self._begin_run(job, now)
                else:
                    self._save(job)
        return started

    def with_undelivered(self) -> list[Job]:
        """Return the jobs with an ended run whose webhook is not delivered yet."""
        return [
            self._job(row[0]) for row in self._file.rows("SELECT job FROM jobs WHERE owes_webhook")
        ]

    def delivered(self, job_id: str, run: JobRun) -> None:
        """Note that the webhook for a run was sent, or was tried often enough."""
        self.change(
            job_id,
            lambda job: msgspec.structs.replace(
                job, undelivered=[each for each in job.undelivered if each != run]
            ),
        )

    def remove(self, job_id: str) -> None:
        """Forget a job and its runs."""
        with self._file.transaction():
            self._file.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
            self._file.execute("DELETE FROM runs WHERE job = ?", (job_id,))
            self._file.execute("DELETE FROM journal WHERE job = ?", (job_id,))

    def moves(self, job_id: str, limit: int = KEPT_MOVES) -> list[JobMove]:
        """Return the last changes of a job's state, the latest first."""
        rows = self._file.rows(_MOVES, (job_id, limit))
        return [
            JobMove(at, JobEvent(event), JobState(was), JobState(state), run)
            for at, event, was, state, run in rows
        ]

    def _note(self, job: Job, event: JobEvent, before: JobState, now: float) -> None:
        row = (job.id, now, event.value, before.value, job.state.value, job.run.number)
        self._file.execute(_MOVED, row)
        self._file.execute(_FORGET_MOVES, (job.id, KEPT_MOVES))

    def _keep_run(self, job_id: str, run: JobRun) -> None:
        self._file.execute(_KEEP_RUN, (job_id, run.number, msgspec.json.encode(run).decode()))
        self._file.execute(
            "DELETE FROM runs WHERE job = ? AND number <= ?", (job_id, run.number - KEPT_RUNS)
        )

    def _save(self, job: Job) -> None:
        text = msgspec.json.encode(job).decode()
        is_waiting = int(bool(job.undelivered))
        self._file.execute(
            _SAVE, (job.id, job.state.value, job.queued_at, job.next_due, is_waiting, text)
        )

    def _job(self, text: str) -> Job:
        try:
            return msgspec.json.decode(text, type=Job)
        except msgspec.MsgspecError as error:
            raise self._file.damaged(error) from error


def _begins_anew(job: Job) -> bool:
    """Return whether a finished job that goes on has something to do: its next round."""
    return KINDS[job.kind].has_one_directory and not job.retries
