"""One host as people see it: what it does, what it waits for and until when, pace, limit, counts.

Every screen, table, API, metric and report prints a `HostView` and computes nothing of its own. One
function makes it, `view_of`, from

    HostRecord     what is kept of the host, counts included
    Doing          what its shard saw when the record was written; it is kept in the record, packed
    queued         its URLs that are not fetched yet, those in flight included
    the crawl      whether it runs, and whether it or the host was paused

A running crawl passes its records in memory, a reader of the store those of the last commit. So two
screens differ by the age of a record (`age_s`) and by nothing else. Only URLs that were given up
are counted in the store alone: the live view of a run does not show them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.politeness.model import Reason
from mannerly.politeness.pace.kinds import KnownLimit  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from mannerly.crawler.model import HostRecord

# A problem of a host: nothing is fetched before its rules are known.
NO_ROBOTS = "robots.txt is unreachable"


class HostStatus(StrEnum):
    """The state of a host."""

    FETCHING = "fetching"  # it is asked as often as its pace allows
    ASKED_TO_WAIT = "asked_to_wait"  # by Retry-After
    BACKING_OFF = "backing_off"  # after refusals or failures
    SHARED = "shared"  # another crawl is sending to it; it waits for its turn
    PAUSED = "paused"  # by the operator
    WAITING = "waiting"  # the crawl does not run
    GIVEN_UP = "given_up"
    DONE = "done"  # nothing is queued


class StateRow(NamedTuple):
    """The signs of a state, and its look on every screen.

    Attributes:
        glyph: in a terminal: the sign, and what stands for it where there is only ASCII.
        icon: on the live page: a shape of `icons.js`.
        tone: the meaning of its colour: going, waiting, refused, plain or done.
        is_hatched: its share of the live page's bar is hatched.
        reasons: the host's next request waits for one of these.
        words: in a legend.
        cause: why the host waits, if that is the same for every host.
        is_left: something is queued for the host, and it is not given up.
        has_instant: its next request is due at an instant that can be shown.
    """

    glyph: str
    icon: str
    tone: str
    words: str
    cause: str = ""
    is_hatched: bool = False
    reasons: tuple[Reason, ...] = ()
    is_left: bool = True
    has_instant: bool = True


STATES: dict[HostStatus, StateRow] = {
    HostStatus.FETCHING: StateRow("●*", "dot", "going", "fetching"),
    HostStatus.ASKED_TO_WAIT: StateRow(
        "○o",
        "clock",
        "waiting",
        "asked to wait",
        is_hatched=True,
        reasons=(Reason.RETRY_AFTER, Reason.PARKED),
    ),
    HostStatus.BACKING_OFF: StateRow(
        "◆!",
        "diamond",
        "refused",
        "backing off",
        reasons=(
            *(Reason.BACKOFF, Reason.TRIAL, Reason.BREAKER_OPEN, Reason.HALF_OPEN),
            Reason.ROBOTS,
        ),
    ),
    HostStatus.SHARED: StateRow(
        "⇄~",
        "shared",
        "waiting",
        "shared with another crawl",
        cause="in use by another crawl",
        reasons=(Reason.SHARED,),
        has_instant=False,
    ),
    HostStatus.PAUSED: StateRow(
        "‖=",
        "pause",
        "plain",
        "paused by you",
        cause="by you",
        reasons=(Reason.PAUSED,),
        has_instant=False,
    ),
    HostStatus.WAITING: StateRow(
        "□-", "square", "plain", "waiting: not running", cause="not running"
    ),
    HostStatus.GIVEN_UP: StateRow(
        "×x", "cross", "refused", "given up", is_hatched=True, is_left=False, has_instant=False
    ),
    HostStatus.DONE: StateRow("✓+", "check", "done", "done", is_left=False, has_instant=False),
}
"""The rows, in the order in which they are shown. A new state is a member and a row."""
assert list(STATES) == list(HostStatus)

# With any other reason a host is fetching.
_STATUS_OF: dict[str, HostStatus] = {
    reason: state for state, row in STATES.items() for reason in row.reasons
}
# Of the hosts that have something queued.
NOT_FETCHING = tuple(
    state for state, row in STATES.items() if row.is_left and state is not HostStatus.FETCHING
)
WITHOUT_INSTANT = tuple(state for state, row in STATES.items() if not row.has_instant)
# Such a host comes back at an instant.
BACK = tuple(state for state in NOT_FETCHING if STATES[state].reasons and STATES[state].has_instant)


class LimitedBy(StrEnum):
    """The limit that a host's pace comes from."""

    UNKNOWN = ""  # it is still being learned
    LEARNED = "learned"  # the host has refused a higher rate
    ROBOTS = "robots"  # Crawl-delay
    MAX_RATE = "max"  # the operator's maximum
    ANNOUNCED = "announced"  # the host's RateLimit headers


class Doing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of a host at one moment, as its shard saw it. It has durations and no instants."""

    waits_for: str = ""  # a `Reason`; "": its next request may go
    wait_s: float | None = None  # from the moment on; None: not known
    delay_s: float = 0.0  # in force between two requests; 0: it was not asked yet
    limited_by: LimitedBy = LimitedBy.UNKNOWN
    problem: str = ""  # the latest refusal or failure, if no success came after it
    times: int = 0  # such answers in a row
    retry_after_s: float | None = None  # what the latest one asked for
    failing_s: float = 0.0  # since the first of them
    held_by: str = ""  # the name of the crawl that is sending to it
    p95_latency_s: float = 0.0  # of its latest answers; 0: not known
    error_rate: float = 0.0  # share of failures among them
    tokens: float = 0.0  # requests that could start at once
    success_streak: int = 0  # answers since the latest refusal or failure
    error_streak: int = 0  # refusals since the latest success
    known_limits: tuple[KnownLimit, ...] = ()  # their windows open so long after the moment


NOTHING_SEEN = Doing()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Doing).decode


def pack_doing(doing: Doing) -> bytes:
    """Return what a shard saw of a host as its record keeps it."""
    return b"" if doing == NOTHING_SEEN else _encode(doing)


def doing_in(record: HostRecord) -> Doing:
    """Return what a record says of the moment when it was written; what is unreadable is nothing.

    It is shown, and decides nothing.
    """
    if not record.doing:
        return NOTHING_SEEN
    try:
        return _decode(record.doing)
    except msgspec.MsgspecError:
        return NOTHING_SEEN


class HostView(NamedTuple):
    """One host at one moment. Its counts, gaps and waits so far are in `record`."""

    record: HostRecord
    state: HostStatus
    queued: int = 0  # URLs that are not fetched yet, those in flight included
    delay_s: float = 0.0  # in force between two requests; 0: it was not asked yet
    next_in_s: float | None = None  # until it may be asked; None: not known, or never
    limited_by: LimitedBy = LimitedBy.UNKNOWN
    limit: float = 0.0  # requests a second that it takes, found by its refusals; 0: none was found
    problem: str = ""  # the latest refusal or failure, or why it was given up
    times: int = 0  # such answers in a row
    retry_after_s: float | None = None  # what the latest one asked for
    failing_s: float = 0.0  # since the first of them
    given_up: int = 0  # URLs, as the store counts them; 0 in the live view of a run
    held_by: str = ""  # the name of the crawl that is sending to it
    p95_latency_s: float = 0.0  # of its latest answers; 0: not known
    error_rate: float = 0.0  # share of failures among them
    tokens: float = 0.0  # requests that could start at once
    success_streak: int = 0  # answers since the latest refusal or failure
    error_streak: int = 0  # refusals since the latest success
    known_limits: tuple[KnownLimit, ...] = ()  # of which the kind was recognised; in wall time
    age_s: float = 0.0  # since it was so

    @property
    def host(self) -> str:
        """Return its name, with the port if that is not the usual one."""
        return self.record.host

    @property
    def fetched(self) -> int:
        """Return how many pages it has given."""
        return self.record.fetched

    @property
    def refused(self) -> int:
        """Return how many requests it has refused."""
        return self.record.refused

    @property
    def pace(self) -> float:
        """Return its requests a second; 0: it was not asked yet."""
        return 1.0 / self.delay_s if self.delay_s else 0.0

    @property
    def needs_s(self) -> float:
        """Return the least time until its queue is empty: queued × delay, or its return."""
        return max(self.queue_s, self.next_in_s or 0.0)

    @property
    def queue_s(self) -> float:
        """Return how long its queue takes at its pace."""
        return self.queued * self.delay_s

    def after(self, seconds: float) -> HostView:
        """Return the same host this much later, if nothing else has happened."""
        wait_s = None if self.next_in_s is None else max(0.0, self.next_in_s - seconds)
        has_waited = wait_s == 0.0 and self.state in BACK
        return self._replace(
            state=HostStatus.FETCHING if has_waited else self.state,
            next_in_s=wait_s,
            failing_s=self.failing_s + seconds if self.problem else 0.0,
            age_s=self.age_s + seconds,
        )

    def as_paused(self) -> HostView:
        """Return the same host of a crawl that is paused as a whole."""
        if self.state in (HostStatus.GIVEN_UP, HostStatus.DONE):
            return self
        return self._replace(state=HostStatus.PAUSED, next_in_s=None)


def view_of(
    record: HostRecord,
    queued: int,
    *,
    now: float,
    given_up: int = 0,
    is_running: bool = True,
    is_paused: bool = False,
) -> HostView:
    """Return one host as it is seen at wall time `now`.

    Args:
        record: what is kept of it.
        queued: its URLs that are not fetched yet, those in flight included.
        now: wall time.
        given_up: its URLs that were given up.
        is_running: the crawl runs.
        is_paused: the operator has paused the host, or the crawl as a whole.
    """
    doing = doing_in(record)
    age_s = max(0.0, now - record.updated_at) if record.updated_at else 0.0
    state = _state(record, doing, queued, age_s, is_running=is_running, is_paused=is_paused)
    wait_s = None if doing.wait_s is None else max(0.0, doing.wait_s - age_s)
    has_limit = record.adaptive_delay_floor_s > 0.0 and record.adaptive_delay_s > 0.0
    return HostView(
        record=record,
        state=state,
        queued=queued,
        delay_s=doing.delay_s,
        next_in_s=None if state in WITHOUT_INSTANT else wait_s,
        limited_by=doing.limited_by,
        limit=1.0 / record.adaptive_delay_s if has_limit and record.refused else 0.0,
        problem=record.retired or doing.problem,
        times=doing.times,
        retry_after_s=doing.retry_after_s,
        failing_s=doing.failing_s + age_s if doing.problem else 0.0,
        given_up=given_up,
        held_by=doing.held_by,
        p95_latency_s=doing.p95_latency_s,
        error_rate=doing.error_rate,
        tokens=doing.tokens,
        success_streak=doing.success_streak,
        error_streak=doing.error_streak,
        known_limits=tuple(known.counted_from(-record.updated_at) for known in doing.known_limits),
        age_s=age_s,
    )


def _state(
    record: HostRecord,
    doing: Doing,
    queued: int,
    age_s: float,
    *,
    is_running: bool,
    is_paused: bool,
) -> HostStatus:
    if record.retired:
        return HostStatus.GIVEN_UP
    if not queued:
        return HostStatus.DONE
    if is_paused:
        return HostStatus.PAUSED
    if not is_running:
        return HostStatus.WAITING
    is_over = doing.wait_s is not None and doing.wait_s <= age_s
    return HostStatus.FETCHING if is_over else status_of(doing.waits_for)


def status_of(reason: str) -> HostStatus:
    """Return the state of a host whose next request waits for this `Reason`."""
    return _STATUS_OF.get(reason, HostStatus.FETCHING)
