"""Say when a job with a cron expression is due, in local time; `cronsim` reads the expression.

An instant is due once: the book keeps the last one that was served, in the transaction that queues
the run. Instants that passed while the service was down, or while the run before was still going,
are served once together, not each.
"""

from __future__ import annotations

from datetime import datetime

from cronsim import CronSim, CronSimError


class ScheduleError(ValueError):
    """The text is not a cron expression."""


def check_schedule(text: str) -> None:
    """Check a cron expression.

    Raises:
        ScheduleError: it is none, or it is never due.
    """
    next_due(text, 0.0)


def next_due(text: str, after: float) -> float:
    """Return the first instant after a wall time at which a cron expression is due.

    Raises:
        ScheduleError: it is no cron expression, or it is never due.
    """
    try:
        dues = (due.timestamp() for due in CronSim(text, datetime.fromtimestamp(after)))  # noqa: DTZ006
        # When clocks are put back, an hour of local time comes twice, and its first one counts.
        return next(due for due in dues if due > after)
    except (CronSimError, StopIteration) as error:
        raise ScheduleError(
            f"{text!r} is not a cron expression: write five fields, minute hour day month weekday, "
            'such as "0 3 * * *" for every day at 3:00'
        ) from error
