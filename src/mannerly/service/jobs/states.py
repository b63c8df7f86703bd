"""The states of a job, and the events that change them: one table.

    state      event      → state      meaning of the event
    queued     started    running      its process was started
    queued     paused     paused       by the operator
    queued     stopped    stopped      by the operator
    queued     failed     failed       it could not be started
    running    paused     paused       its process is told to end; it can go on
    running    stopped    stopped      the same
    running    finished   finished     its crawl has ended by itself
    running    failed     failed       the crawl ended with work left, or too many URLs failed
    running    cancelled  cancelled    its hosts answered with 429 too often
    running    lost       queued       its process or the service died: it goes on when it can
    paused     resumed    queued       by the operator
    paused     stopped    stopped      by the operator
    finished   resumed    queued       run again: retried, or due by its schedule
    failed     resumed    queued       the same
    stopped    resumed    queued       the same
    cancelled  resumed    queued       the same

Every other event is late: a process that ends after its job was stopped changes nothing. A paused
or stopped job has no process (after the grace of the requests under way), so nothing of it has to
be kept in memory, and a restart of the service finds it as it was.
"""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


class JobEvent(StrEnum):
    """Something that happened to a job."""

    STARTED = "started"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


_S, _E = JobState, JobEvent
TRANSITIONS: dict[JobState, dict[JobEvent, JobState]] = {
    _S.QUEUED: {
        _E.STARTED: _S.RUNNING,
        _E.PAUSED: _S.PAUSED,
        _E.STOPPED: _S.STOPPED,
        _E.FAILED: _S.FAILED,
    },
    _S.RUNNING: {
        _E.PAUSED: _S.PAUSED,
        _E.STOPPED: _S.STOPPED,
        _E.FINISHED: _S.FINISHED,
        _E.FAILED: _S.FAILED,
        _E.CANCELLED: _S.CANCELLED,
        _E.LOST: _S.QUEUED,
    },
    _S.PAUSED: {_E.RESUMED: _S.QUEUED, _E.STOPPED: _S.STOPPED},
    _S.FINISHED: {_E.RESUMED: _S.QUEUED},
    _S.FAILED: {_E.RESUMED: _S.QUEUED},
    _S.STOPPED: {_E.RESUMED: _S.QUEUED},
    _S.CANCELLED: {_E.RESUMED: _S.QUEUED},
}

# States in which nothing more happens until the operator, or its schedule, asks for it.
ENDED = frozenset({JobState.FINISHED, JobState.FAILED, JobState.STOPPED, JobState.CANCELLED})


def after(state: JobState, event: JobEvent) -> JobState | None:
    """Return the state after an event; None if the event is late and changes nothing."""
    return TRANSITIONS[state].get(event)
