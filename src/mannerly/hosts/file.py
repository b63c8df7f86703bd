"""A memory of hosts in one SQLite file, shared by the crawls of this machine.

    hosts     one row a host of which something is known: its budget, dated on two scales
    holders   processes, with their last sign of life
    leases    one row a host that is held; without its holder's row it counts as released
    wishes    who waits for a host, in order
    times     how long leases last; fixed when the file is made
    claimed, noted    leases and budgets of a holder that is alone (`journal`)

A claim of many hosts is few statements, whatever their number: new leases are inserted, leases of
others are found, known budgets are read. Only hosts that have a lease already are handled singly.

Dates are `now.mono` within one boot of the machine. After a reboot a wait is served in full (a day
at most), because only the wall clock could tell how long it was off. A commit is in the log when it
returns, which survives kill -9; no disk is waited for.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.database.sqlite import Database
from mannerly.politeness.bounds import MOST, bounded

from .base import (
    NOTHING_KNOWN,
    Granted,
    Holder,
    HolderLost,
    HostBudget,
    InUse,
    LeaseTimes,
    after_death,
    merged,
    prolonged,
    unlearned,
)
from .journal import HostJournal
from .rows import HOSTS, budget_of, is_of_boot, row_of
from .table import KnownHosts
from .upkeep import FORGOTTEN_S, create, explained, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mannerly.database.sqlite import Row
    from mannerly.politeness.model import Now

    from .base import Claimed


LONGEST_LEASE_S = 3600.0  # a file with longer ones was not made by us
BUSY_MS = 50  # the loop of a crawl waits no longer for another writer: it tries again soon
OPEN_BUSY_MS = 5000  # at the start, and for commands

_ASKED = "FROM json_each(?) AS asked CROSS JOIN"
_HOLD = """
INSERT INTO leases (host, holder, gap_s) SELECT key, ?, value FROM json_each(?) WHERE true
ON CONFLICT (host) DO NOTHING
"""
_HELD = f"""
SELECT leases.host, holder, gap_s, freed_at {_ASKED} leases ON leases.host = asked.key
WHERE holder <> ?
"""
_FREE = "UPDATE leases SET holder = 0, freed_at = ?"
_TAKE = "UPDATE leases SET holder = ?, gap_s = ?, freed_at = 0 WHERE host = ?"
_END = "UPDATE holders SET lease_s = 0 WHERE number = ?"  # dead for good, whatever it writes
_WISHES = "SELECT holder FROM wishes WHERE host = ? ORDER BY number"
_WANTED = """
SELECT wishes.host, wishes.holder FROM wishes CROSS JOIN leases ON leases.host = wishes.host
WHERE leases.holder = ?
"""
_USED = f"""
SELECT leases.host, leases.holder {_ASKED} leases ON leases.host = asked.value
"""


class _Known(NamedTuple):
    """A row of `holders`."""

    number: int
    holder: Holder
    is_alive: bool


class HostFile:
    """A `HostMemory` in a file. `boot` names the boot of the machine, if it has a name."""

    def __init__(
        self, path: Path, *, boot: str = "", times: LeaseTimes | None = None, vfs: str | None = None
    ) -> None:
        self.location = str(path)
        self._boot = boot
        with explained(path):
            if not path.exists():
                create(path, times or LeaseTimes())
            self._file = Database.open(path, HOSTS, busy_ms=OPEN_BUSY_MS, vfs=vfs)
            row = self._file.row(f"SELECT {', '.join(LeaseTimes._fields)} FROM times")  # noqa: S608
            if row is None:
                raise self._file.damaged("it has no times")
        self.times = self._believable(row)
        self._table = KnownHosts(self._file)
        self._journal = HostJournal(self._file, self._table)
        self._numbers: dict[str, int] = {}  # of the holders of this process

    def _believable(self, row: Row) -> LeaseTimes:
        """Return the times of leases, or the usual ones instead of times that no file was given."""
        times = LeaseTimes(*(bounded(each, MOST) for each in row))
        if 0.0 < times.heartbeat_s < times.silent_s < times.lease_s <= LONGEST_LEASE_S:
            return times
        self._file.say(f"its times of leases are {', '.join(map(repr, row))[:80]}: not used")
        return LeaseTimes()

    def join(self, holder: Holder, now: Now) -> None:
        """Become a holder; what is out of date is removed on this occasion."""
        with self._patient():
            with self._changed():
                self._journal.apply_noted()
                tidy(self._file, self._boot, now)
            while self._journal.has_many_claimed():
                with self._changed():
                    self._journal.apply(some=True)
            with self._changed():
                self._journal.apply()
                row = self._file.row(
                    "INSERT INTO holders (id, crawl, name, worker, mono, wall, boot, lease_s) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
                    (*holder, now.mono, now.wall, self._boot, self.times.lease_s),
                )
                assert row is not None
        self._numbers[holder.id] = int(row[0])

    def renew(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give a sign of life, and write some budgets."""
        with self._changed():
            me = self._require(holder, now)
            self._file.execute(
                "UPDATE holders SET mono = ?, wall = ?, boot = ? WHERE number = ?",
                (now.mono, now.wall, self._boot, me.number),
            )
            self._write(me.number, budgets, now)

    def claim(self, holder: str, hosts: Mapping[str, float], now: Now) -> dict[str, Claimed]:
        """Ask for hosts."""
        asked = msgspec.json.encode(hosts).decode()
        with self._changed():
            me = self._require(holder, now)
            if self._is_alone(me.number, now):
                self._journal.claim(me.number, hosts, asked)
                are_free = self._file.row("SELECT 1 FROM leases LIMIT 1") is None
            else:
                self._journal.apply()
                self._file.execute(_HOLD, (me.number, asked))
                are_free = self._file.changes() == len(hosts)
            held: list[Row] = []
            if not are_free:
                held = self._file.execute(_HELD, (asked, me.number)).fetchall()
            stored = self._budgets(hosts, now)
            answers: dict[str, Claimed] = dict.fromkeys(hosts, NOTHING_KNOWN)
            answers.update({host: Granted(budget) for host, budget in stored.items()})
            for host, number, gap_s, freed_at in held:
                lease = (_count(number), bounded(gap_s), bounded(freed_at))
                answers[host] = self._contend(me, host, hosts[host], lease, stored.get(host), now)
        return answers

    def _contend(
        self,
        me: _Known,
        host: str,
        gap_s: float,
        lease: tuple[int, float, float],
        stored: HostBudget | None,
        now: Now,
    ) -> Claimed:
        """Answer a claim of a host that another process holds, or held."""
        number, their_gap_s, freed_at = lease
        owner = self._holder(number, now)
        crawl = me.holder.crawl
        if owner is not None and owner.is_alive and owner.holder.crawl != crawl:
            return self._refuse(me, host, owner, now)
        if owner is None:  # released
            freed_at = freed_at if not number else now.mono
            first = next(iter(self._waiting(host, now)), None)
            is_early = now.mono - freed_at < self.times.grace_s
            if first is not None and first.holder.crawl != crawl and is_early:
                self._file.execute(f"{_FREE} WHERE host = ?", (freed_at, host))
                return self._refuse(me, host, first, now)
        else:
            stored = after_death(stored, host, their_gap_s)
            self._put(stored, now)
            if not owner.is_alive:
                self._file.execute(_END, (number,))
        self._file.execute(_TAKE, (me.number, gap_s, host))
        self._file.execute("DELETE FROM wishes WHERE host = ? AND holder = ?", (host, me.number))
        return Granted(stored)

    def _refuse(self, me: _Known, host: str, by: _Known, now: Now) -> InUse:
        self._file.execute(
            "INSERT OR IGNORE INTO wishes (host, holder) VALUES (?, ?)", (host, me.number)
        )
        crawls = {each.holder.crawl for each in self._waiting(host, now)}
        return InUse(by.holder, len(crawls))

    def wanted(self, holder: str, now: Now) -> dict[str, int]:
        """Return the hosts of a holder that other crawls wait for."""
        number = self._numbers.get(holder, 0)
        if self._file.row("SELECT 1 FROM wishes LIMIT 1") is None:
            return {}
        me = self._holder(number, now)
        crawls: dict[str, set[str]] = {}
        for host, waiter in self._file.rows(_WANTED, (number,)):
            other = self._holder(_count(waiter), now)
            if other is not None and other.is_alive and me is not None:
                crawls.setdefault(host, set()).add(other.holder.crawl)
        mine = "" if me is None else me.holder.crawl
        return {host: len(names - {mine}) for host, names in crawls.items() if names - {mine}}

    def write(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts."""
        with self._changed():
            self._write(self._numbers.get(holder, -1), budgets, now)

    def release(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Write the budgets of hosts and give these hosts back."""
        number = self._numbers.get(holder, -1)
        with self._changed():
            self._journal.apply()
            self._write(number, budgets, now)
            for budget in budgets:
                lease = (budget.host, number)
                if self._file.row("SELECT 1 FROM wishes WHERE host = ?", lease[:1]) is None:
                    self._file.execute("DELETE FROM leases WHERE host = ? AND holder = ?", lease)
                else:
                    self._file.execute(f"{_FREE} WHERE host = ? AND holder = ?", (now.mono, *lease))

    def withdraw(self, holder: str, hosts: Iterable[str], now: Now) -> None:  # noqa: ARG002
        """Take wishes back."""
        number = self._numbers.get(holder, -1)
        with self._changed():
            self._file.executemany(
                "DELETE FROM wishes WHERE host = ? AND holder = ?",
                [(host, number) for host in hosts],
            )

    def leave(self, holder: str, budgets: Sequence[HostBudget], now: Now) -> None:
        """Give everything back."""
        number = self._numbers.pop(holder, -1)
        with self._patient(), self._changed():
            self._write(number, budgets, now)
            self._journal.apply_noted()
            self._journal.leave(number)
            self._file.execute("DELETE FROM wishes WHERE holder = ?", (number,))
            self._file.execute("DELETE FROM holders WHERE number = ?", (number,))
            if self._file.row("SELECT 1 FROM holders LIMIT 1") is None:
                self._file.execute("DELETE FROM leases")
            else:
                self._file.execute(
                    f"{_FREE} WHERE holder = ? AND host IN (SELECT host FROM wishes)",  # noqa: S608
                    (now.mono, number),
                )
                self._file.execute("DELETE FROM leases WHERE holder = ?", (number,))

    def budgets(self, hosts: Iterable[str], now: Now) -> dict[str, HostBudget]:
        """Return what is known of some hosts."""
        noted, names = self._journal.noted(), list(hosts)
        rows = self._table.read_anyway(names)
        found = {str(row[0]): budget_of(row, now, self._boot) for row in rows}
        # What is moved between these two looks is in both.
        journal = {name: noted[name] for name in names if name in noted}
        return found | {name: budget_of(row, now, self._boot) for name, row in journal.items()}

    def in_use(self, hosts: Iterable[str], now: Now, *, besides: str = "") -> dict[str, Holder]:
        """Return who holds these hosts."""
        names = list(hosts)
        numbers = self._journal.holders_of(names, besides)
        rows = self._file.rows(_USED, (msgspec.json.encode(names).decode(),))
        numbers = {host: _count(number) for host, number in rows} | numbers
        found = {host: self._holder(number, now) for host, number in numbers.items()}
        return {
            host: each.holder
            for host, each in found.items()
            if each is not None and each.is_alive and each.holder.crawl != besides
        }

    def forget(self, host: str, now: Now) -> bool:
        """Forget what was learned of a host."""
        with self._patient(), self._changed():
            self._journal.apply_noted()
            stored = self._budgets([host], now).get(host)
            if stored is None:
                return False
            self._put(unlearned(stored), now)
        return stored.lesson is not None or stored.crawl_delay_s > 0.0

    def take_mended(self) -> list[str]:
        """Return what was wrong in the file and is put right or left out."""
        return self._file.take_mended()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # ------------------------------------------------------------------ rows

    @contextmanager
    def _changed(self) -> Iterator[None]:
        """Commit what is done in here; explain what is wrong with the file."""
        with explained(self._file.path), self._file.transaction():
            yield

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """Wait longer for other writers in here; afterwards as in the loop of a crawl."""
        self._file.wait_for(OPEN_BUSY_MS)
        try:
            yield
        finally:
            self._file.wait_for(BUSY_MS)

    def _write(self, number: int, budgets: Sequence[HostBudget], now: Now) -> None:
        if not budgets:
            return
        hosts = msgspec.json.encode([each.host for each in budgets]).decode()
        known = self._holder(number, now)
        name = "" if known is None else known.holder.name
        if known is not None and known.is_alive and self._is_alone(number, now):
            leases = self._leased(hosts)
            if all(holder == number for holder in leases.values()):
                rows = [row_of(each, now, self._boot) for each in budgets]
                self._journal.note(number, name, rows)
                return
        self._journal.apply()
        leases = self._leased(hosts)
        mine = {host for host, holder in leases.items() if holder == number}
        stored = self._budgets([each.host for each in budgets], now)
        rows = []
        for budget in budgets:
            before = stored.get(budget.host)
            is_mine = budget.host in mine
            kept = merged(before, budget, name) if is_mine else prolonged(before, budget)
            rows.append(row_of(kept, now, self._boot))
        self._table.write(rows)

    def _leased(self, hosts: str) -> dict[str, int]:
        """Return the holders of these hosts (JSON) in the table of leases."""
        if self._file.row("SELECT 1 FROM leases LIMIT 1") is None:
            return {}
        return {str(host): _count(holder) for host, holder in self._file.rows(_USED, (hosts,))}

    def _put(self, budget: HostBudget, now: Now) -> None:
        self._table.write([row_of(budget, now, self._boot)])

    def _budgets(self, hosts: Iterable[str], now: Now) -> dict[str, HostBudget]:
        return {str(row[0]): budget_of(row, now, self._boot) for row in self._table.read(hosts)}

    def _waiting(self, host: str, now: Now) -> list[_Known]:
        """Return the living holders that wait for a host, in order."""
        rows: list[Row] = self._file.execute(_WISHES, (host,)).fetchall()
        found = (self._holder(_count(number), now) for (number,) in rows)
        return [each for each in found if each is not None and each.is_alive]

    def _require(self, holder: str, now: Now) -> _Known:
        known = self._holder(self._numbers.get(holder, -1), now)
        if known is None or not known.is_alive:
            raise HolderLost(holder)
        return known

    def _is_alone(self, number: int, now: Now) -> bool:
        """Return whether no other holder is alive."""
        others = self._file.rows(
            "SELECT mono, boot, lease_s FROM holders WHERE number <> ?", (number,)
        )
        return not any(self._is_alive(*each, now=now) for each in others)

    def _is_alive(self, mono: object, boot: str, lease_s: object, *, now: Now) -> bool:
        """Return whether a holder with this sign of life is alive; no lease is longer than ours."""
        if not isinstance(mono, float) or mono > now.mono + FORGOTTEN_S:
            return False
        shortest_s = min(bounded(lease_s), self.times.lease_s)
        return is_of_boot(boot, mono, now, self._boot) and now.mono - mono < shortest_s

    def _holder(self, number: int, now: Now) -> _Known | None:
        row = self._file.row(
            "SELECT id, crawl, name, worker, mono, boot, lease_s FROM holders WHERE number = ?",
            (number,),
        )
        if row is None:
            return None
        *names, mono, boot, lease_s = row
        is_alive = self._is_alive(mono, boot, lease_s, now=now)
        return _Known(number, Holder(*map(str, names)), is_alive)


def _count(number: object) -> int:
    """Return the number of a holder; 0, which none has, for what is none."""
    return int(bounded(number, MOST))
