"""The contract of a memory of hosts: what is known of each host, and who may send to it now.

Several crawls may want one host: crawls and jobs of one machine, or workers of several machines.
Together they may send no more than one of them could alone. So a host is *leased*: its holder
sends, the others wait. A memory keeps the leases and, for every host, its budget (`HostBudget`):
what was learned of its pace, the gap in force, and until when it must be left alone. A file of
the user (SQLite), a Redis or Valkey server and memory implement it; `contract.HostMemoryContract`
is the suite that every implementation passes.

**Keys.** `host` is the key under which a crawl paces: a host's name with its port, or its site's
(`group_by`). Crawls share the hosts for which their keys are equal.

**Holders.** A holder is one process of one crawl (`Holder`), under an id that is never used again.
It joins, and gives one sign of life for all its leases together (`renew`, every HEARTBEAT_S). It is
dead when the last sign of life is LEASE_S old, and then every call under its id raises
`HolderLost`: it forgets its leases and joins under another id. It must send nothing from SILENT_S
after the moment *before* it sent its last sign of life, so that no late request meets those of the
next holder.

**Claiming.** `claim` asks for many hosts at once. A host is granted if

    it is free           and no other crawl waits for it since earlier; that one has GRACE_S
                         after the release to take it, then any other may
    its holder is dead   (takeover)
    its holder belongs to the same crawl: within a crawl a host has one owner already

Otherwise the answer says who holds it (`InUse`), and the claim is remembered as a wish: hosts are
given in the order of wishes. `withdraw` takes a wish back; wishes of dead holders do not count.

**Handing over.** `wanted` tells a holder which of its hosts others wait for, and how many crawls.
It stops sending to such a host when its turn is over, waits for the answers of what it has sent,
and releases the host with its budget. So the next holder knows the pace, the next instant and a
Retry-After that came last.

**Nothing is sent too early by any holder.** A grant carries the host's budget. `next_in_s` is
what is left of the longest wait that any holder has written. After a death it is at least the gap
in force, counted from the takeover, because the last request of a dead holder is not known. A
holder writes a pause (Retry-After, a back-off) before it sends anything else to that host, and
`renew` takes what is still unwritten: no lease is prolonged without it. A process whose host
another one holds (its answer came late) can only prolong the wait.

**Lessons.** `HostBudget.lesson` None means "as it is stored". A lesson keeps its age: a holder that
has learned nothing does not make it younger. Lessons of private hosts are used for a day
(`usable`), because ports change owners.

**Time.** Nothing here is an instant: waits and ages are seconds from the moment of the call, so no
two clocks are compared. In a server they are dated by the monotonic clocks of those who write them,
and `now` is ignored. A file of this machine uses `now.mono` within one boot of the machine; after a
reboot a wait is served in full, a day at most. A wall clock that is set neither shortens nor
prolongs a wait; the age of a lesson is read from it.

**Callers that are stopped.** A process may be stopped, or wait for its turn to write, after it has
read the clock: then `now` is older than what others have written since. A sign of life from after
`now` is one of a living holder, and a wait that was written after `now` ends no earlier for it.
The claimer counts waits from a moment at which it has the answer. Whose host was taken over is dead
for good: a sign of life that it began before cannot bring it back. What is left is a process that
is stopped for longer than LEASE_S - SILENT_S in the microseconds between the permission for a
request and its bytes: that one request is late.

**Errors.** `StoreBusy` and `StoreFull`: nothing was changed, try again soon. Any other
`StoreError`: the memory cannot be used. Calls are bounded in time; the caller makes the batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from mannerly.politeness.keys import without_port

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mannerly.politeness.model import Now
    from mannerly.politeness.pace import Lesson

DAY_S = 86_400.0
PROGRAM = "program "  # what the names of holders begin with that are no crawls
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".test")
STALE_S = 60.0  # without a name of the boot: an instant further ahead is from before a reboot
UNREADABLE_WAIT_S = 60.0  # of a host whose wait cannot be read: it may have asked for one
LONGEST_UNSURE_S = DAY_S  # of a wait from before a reboot: it may be over long since
PRIVATE_LESSON_S = DAY_S  # how long a lesson of a loopback or private address is used
KEPT_S = 90 * DAY_S  # a lesson that was not used for so long is removed
SHORT_WAIT_S = 60.0  # a wait that is over by then, whatever the clocks show: it keeps no lesson


class LeaseTimes(NamedTuple):
    """The times of leases, in seconds. All processes that share a memory have the same."""

    lease_s: float = 15.0  # without a sign of life: others may take its hosts over
    heartbeat_s: float = 5.0  # between two signs of life
    silent_s: float = 12.0  # since the last one: nothing is sent any more
    grace_s: float = 2.0  # for the crawl that waits longest to take a host that was released
    turn_s: float = 10.0  # of a holder, while others wait
    round_s: float = 30.0  # of all turns together: each is shorter if many wait


class HolderLost(Exception):  # noqa: N818 - a state
    """This holder is dead or unknown to the memory: all its leases are lost."""


class Holder(NamedTuple):
    """A process of a crawl that leases hosts."""

    id: str  # random; never used again
    crawl: str  # the id of its crawl
    name: str  # of the crawl, as it is shown to people; of others, after PROGRAM
    worker: str  # the process, as it is shown to people


class HostBudget(NamedTuple):
    """Everything that holders of a host tell each other. Times are seconds from now."""

    host: str
    lesson: Lesson | None = None  # None: nothing was learned; written: what is stored stays
    crawl_delay_s: float = 0.0
    gap_s: float = 0.0  # in force between two requests
    sent_s_ago: float | None = None  # since the last request left; None: not known
    next_in_s: float = 0.0  # until the next one may leave: the gap, a Retry-After, a back-off
    failing_s: float | None = None  # since the first failure since the last success; None: none
    failures_in_a_row: int = 0
    breaker_opens: int = 0
    breaker_in_s: float | None = None  # until a probe may leave; None: the breaker is closed
    learned_s_ago: float = 0.0  # the age of the lesson
    learned_by: str = ""  # the name of the crawl that learned it


class Granted(NamedTuple):
    """The claimer holds the host from now on."""

    budget: HostBudget | None  # None: nothing is known of the host


NOTHING_KNOWN = Granted(None)


class InUse(NamedTuple):
    """Another crawl holds the host, or will be the next to hold it."""

    by: Holder
    waiting: int  # crawls that wait for the host, the claimer included


Claimed: TypeAlias = "Granted | InUse"


class HostMemory(Protocol):
    """A memory of hosts. Everything is called from one thread."""

    location: str  # as it is shown to people; never with a password
    times: LeaseTimes

    def join(self, holder: Holder, now: Now) -> None:
        """Become a holder: from now on its id may claim."""

    def renew(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give a sign of life for all leases, and write the budgets of some of its hosts.

        Raises:
            HolderLost: it comes too late.
        """

    def claim(self, holder: str, hosts: Mapping[str, float], now: Now) -> dict[str, Claimed]:
        """Ask for hosts, each with the gap in force if nothing is known of it.

        Raises:
            HolderLost: the holder is dead.
        """

    def wanted(self, holder: str, now: Now) -> dict[str, int]:
        """Return the hosts of a holder that other crawls wait for, and how many of them."""

    def write(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts; of a host that another holds, only a longer wait counts.

        It is no error if the holder is dead.
        """

    def release(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts and give these hosts back; like `write` for other hosts."""

    def withdraw(self, holder: str, hosts: Iterable[str], now: Now) -> None:
        """Take the holder's wishes for these hosts back."""

    def leave(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write these budgets, give all hosts back and take all wishes back: the process ends."""

    def budgets(self, hosts: Iterable[str], now: Now) -> dict[str, HostBudget]:
        """Return what is known of some hosts, without claiming them."""

    def in_use(self, hosts: Iterable[str], now: Now, *, besides: str = "") -> dict[str, Holder]:
        """Return the holders of these hosts; free hosts are left out.

        Holders of the crawl `besides` are left out, too: without them it costs less.
        """

    def forget(self, host: str, now: Now) -> bool:
        """Forget what was learned of a host, not its waits; return whether it was known."""

    def take_mended(self) -> list[str]:
        """Return what was wrong in the memory and is put right or left out, in words, each once.

        Numbers may be out of range, values of another type: others can write to a file or a server,
        and earlier revisions kept any number. No crawl stops for that.
        """

    def close(self) -> None:
        """Close the memory; closing twice is harmless. It does not `leave`."""


def said_of(name: str) -> str:
    """Return a holder's name as sentences have it: `crawl books`, `program fetch.py`."""
    return name if name.startswith(PROGRAM) else f"crawl {name}"


def usable(budget: HostBudget) -> HostBudget:
    """Return a budget without a lesson that is too old to be used."""
    if budget.lesson is None or budget.learned_s_ago <= PRIVATE_LESSON_S:
        return budget
    return budget._replace(lesson=None, crawl_delay_s=0.0) if is_private(budget.host) else budget


def is_private(host: str) -> bool:
    """Return whether a key names this machine or one of a private network."""
    from ipaddress import ip_address

    name = without_port(host)
    try:
        return not ip_address(name.strip("[]")).is_global
    except ValueError:
        return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def later(budget: HostBudget, elapsed_s: float, wall_s: float) -> HostBudget:
    """Return a budget some seconds after it was written; `wall_s`: by the wall clock."""
    left_s, sent_s_ago, open_s = budget.next_in_s, budget.sent_s_ago, budget.breaker_in_s
    return budget._replace(
        next_in_s=max(0.0, left_s - elapsed_s),
        sent_s_ago=None if sent_s_ago is None else max(0.0, sent_s_ago + elapsed_s),
        breaker_in_s=None if open_s is None else max(0.0, open_s - elapsed_s),
        learned_s_ago=0.0 if budget.lesson is None else budget.learned_s_ago + max(0.0, wall_s),
    )


def merged(stored: HostBudget | None, new: HostBudget, by: str) -> HostBudget:
    """Return what is kept after a holder has written: its word, but never a shorter wait.

    A lesson that is not new keeps its age and the name of the crawl that learned it.
    """
    if stored is None:
        return new._replace(learned_by=by if new.lesson is not None else "")
    new = new._replace(next_in_s=max(stored.next_in_s, new.next_in_s))
    if new.lesson is None:
        return new._replace(
            lesson=stored.lesson,
            learned_s_ago=stored.learned_s_ago,
            learned_by=stored.learned_by,
        )
    return new._replace(learned_by=by)


def prolonged(stored: HostBudget | None, late: HostBudget) -> HostBudget:
    """Return what is kept after a process has written that does not hold the host."""
    if stored is None:
        return HostBudget(late.host, next_in_s=late.next_in_s)
    return stored._replace(next_in_s=max(stored.next_in_s, late.next_in_s))


def after_death(stored: HostBudget | None, host: str, gap_s: float) -> HostBudget:
    """Return a host's budget when it is taken over from a dead holder."""
    known = stored or HostBudget(host)
    gap_s = max(gap_s, known.gap_s)
    return known._replace(gap_s=gap_s, next_in_s=max(known.next_in_s, gap_s))


def unlearned(budget: HostBudget) -> HostBudget:
    """Return a budget without what was learned; the waits that the host asked for stay."""
    return HostBudget(
        budget.host,
        gap_s=budget.gap_s,
        sent_s_ago=budget.sent_s_ago,
        next_in_s=budget.next_in_s,
    )
