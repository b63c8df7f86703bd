"""A batch as the payload of `commit.lua`, and what its answer means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.control import Recrawl, encode
from mannerly.crawler.kinds import KINDS, Form, Kind
from mannerly.crawler.model import Entry, is_failed, is_given_up
from mannerly.crawler.payload import encode as encode_payload
from mannerly.crawler.store.base import Batch, Committed, by_shard, requests_first

from .host_codec import pack_host, pack_robots
from .layout import FoundUrl, LeavingUrl
from .packing import as_text, fingerprint, pack, pack_entry, queued_text, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import msgspec

    from mannerly.crawler.control import RetryUrls
    from mannerly.crawler.model import Candidate, PageRecord
    from mannerly.database.client import Payload

    from .writes import Answer

# Of records; of failed ones.
_LETTERS = {Form.PAGE: "pf", Form.LISTING: "lm", Form.CHECK: "cd", Form.REQUISITE: "qn"}
LISTS, PAGES = "lists", "pages"  # the stages of a recrawl
NOT_FAILED = "plcq"  # the kinds of records of URLs that have not failed (`kind_letters`)


def commit_payload(batch: Batch, round_number: int, ahead_s: float, clock_s: float) -> Payload:
    """Return what `commit.lua` takes, but for lengths of logs and the limit.

    `ahead_s`, `clock_s`: how far the clocks of server and shard are ahead of ours (`host_codec`).
    """
    assert not batch.handled_again, "logs of several machines have no page that is handled again"
    hosts: dict[str, int] = {}
    retries = [
        each
        for each in batch.retries
        if not isinstance(each, Recrawl) or each.round > round_number  # else it has begun
    ]
    rounds = [each.round for each in retries if isinstance(each, Recrawl)]
    pages: list[Any] = []
    entries: dict[str, str] = {}
    dropped: list[Any] = []
    for entry, record in batch.pages:
        kind = kind_of_record(entry, record)
        if kind not in NOT_FAILED:
            entries[str(len(pages) + 1)] = pack_entry(entry)
        pages += _leaving(hosts, entry, kind)
    for entry, reason in batch.dropped:
        given_up = f"{reason}\0{pack_entry(entry)}" if is_given_up(reason) else ""
        dropped += _leaving(hosts, entry, given_up)
    found, carried = offered(batch.found, hosts)
    links: list[Any] = []
    for shard, candidates in by_shard(batch.outgoing).items():
        theirs: dict[str, int] = {}
        values, theirs_carried = offered(requests_first(candidates), theirs)
        links += (shard, list(theirs), values, theirs_carried)
    robots = batch.robots.items()
    return {
        "pages": pages,
        "entries": entries,
        "dropped": dropped,
        "found": found,
        "carried": carried,
        "hosts": list(hosts),
        "links": links,
        "records": flat((each.host, pack_host(each, ahead_s, clock_s)) for each in batch.hosts),
        "robots": flat((name, pack_robots(each, ahead_s)) for name, each in robots if each),
        "forgotten": [name for name, each in robots if each is None],
        "sessions": flat(batch.sessions.items()),
        "votes": flat((host, *votes) for host, votes in batch.lastmods.items()),
        "sg": flat((name, str(length)) for name, length in batch.segments.items()),
        "round": max([round_number, *rounds]),
        "retries": [order for each in retries for order in _stages(each)],
        "applied": batch.applied,
    }


LINK_VALUES = 4  # of one shard, in `links`


def offered(
    candidates: Sequence[Candidate], hosts: dict[str, int]
) -> tuple[list[Any], dict[int, tuple[msgspec.Raw, bool, bool]]]:
    """Return candidates as `arrive.lua` takes them; their hosts join `hosts`.

    And what they carry, by the place of the candidate's first value, whether it takes a place, and
    whether it is told if it is known already (`Committed.repeated`).
    """
    values: list[Any] = []
    carried: dict[int, tuple[msgspec.Raw, bool, bool]] = {}
    for url, host, depth, priority, parent, hops, kind, payload in candidates:
        score(priority, 0)  # refuses one that does not fit
        packed = pack(url, host, depth, parent, hops, kind)
        identity = url
        if payload is not None:
            identity = payload.identity(url)
            is_told = not KINDS[kind].is_requisite
            packed_payload = as_text(encode_payload(payload))
            carried[len(values) + 1] = packed_payload, payload.takes_place, is_told
        values += FoundUrl(*fingerprint(identity), _place(hosts, host), priority, packed)
    return values, carried


def committed(answer: Answer, candidates: Sequence[Candidate]) -> Committed:
    """Return the new ones among the candidates that were offered, as entries."""
    new = [
        Entry(answer.first + at, url, host, depth, priority, parent, hops, kind)
        for at, place in enumerate(answer.new[: answer.queued])
        for url, host, depth, priority, parent, hops, kind, _ in (candidates[place],)
    ]
    return Committed(new, len(answer.new) - answer.queued, answer.repeated, answer.lagging)


def kind_of_record(entry: Entry, record: PageRecord) -> str:
    """Return the letter by which `commit.lua` counts a record."""
    return kind_letters(entry.kind)[is_failed(record, entry.kind)]


def kind_letters(kind: Kind) -> str:
    """Return the letters of a record, and of one of a URL that has failed (`model.is_failed`)."""
    return _LETTERS[KINDS[kind].form]


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the values of all rows, one after the other."""
    return [value for row in rows for value in row]


class Sent:
    """A batch whose commit was sent, and how much of it: it may grow before it is offered again."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._lengths = {name: len(getattr(batch, name)) for name in _LISTS}
        self._traffic = {interval: list(sums) for interval, sums in batch.traffic.items()}
        self._lastmods = dict(batch.lastmods)

    def rest(self) -> Batch:
        """Return what has joined the batch since."""
        batch = self.batch
        return Batch(
            **{name: getattr(batch, name)[length:] for name, length in self._lengths.items()},
            hosts=batch.hosts,
            robots=batch.robots,
            elements=batch.elements,
            unchanged=batch.unchanged,
            lastmods=_more(batch.lastmods, self._lastmods),
            applied=batch.applied,
            traffic={at: list(sums) for at, sums in _more(batch.traffic, self._traffic).items()},
            kept=batch.kept,
            items=batch.items,
            segments=batch.segments,
            sessions=batch.sessions,
        )


_LISTS = ("pages", "found", "outgoing", "dropped", "retries", "listed")


def _more(now: dict[Any, Any], before: dict[Any, Any]) -> dict[Any, tuple[int, int]]:
    """Return pairs of sums, less what they were before."""
    more = {}
    for key, (one, other) in now.items():
        first, second = before.get(key, (0, 0))
        if (one, other) != (first, second):
            more[key] = (one - first, other - second)
    return more


def _leaving(hosts: dict[str, int], entry: Entry, how: str) -> LeavingUrl:
    place = _place(hosts, entry.host)
    return LeavingUrl(place, entry.priority, entry.seq, queued_text(entry), how)


def _place(hosts: dict[str, int], host: str) -> int:
    """Return the place of a host in the list of a payload; Lua counts from 1."""
    place = hosts.get(host)
    if place is None:
        place = hosts[host] = len(hosts) + 1
    return place


def _stages(order: RetryUrls | Recrawl) -> list[str]:
    """Return an order as it is kept; a recrawl has two stages."""
    text = encode(order).decode()
    return (
        [f"{LISTS} {text}", f"{PAGES} {text}"] if isinstance(order, Recrawl) else [f"retry {text}"]
    )
