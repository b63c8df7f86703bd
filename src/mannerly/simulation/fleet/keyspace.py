"""The data of a modelled server: the commands that the store uses, on plain dictionaries.

Values are bytes, as on the wire. A key that becomes empty is gone. Every change is also noted in a
journal, so that the last moments can be taken back (`rewind`): a server that writes its log to disk
once a second loses what came after when its machine dies.

A command that is not here raises an error that names it: the model grows with the store.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Value = Any  # bytes, dict, set, list or Scores


class WrongType(Exception):  # noqa: N818 - the server's own word
    """A command met a value of another kind."""


class Scores:
    """A sorted set: members by (score, member)."""

    __slots__ = ("order", "scores")

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.order: list[tuple[float, bytes]] = []

    def __len__(self) -> int:
        return len(self.scores)

    def copy(self) -> Scores:
        other = Scores()
        other.scores = self.scores.copy()
        other.order = self.order.copy()
        return other

    def add(self, member: bytes, score: float) -> bool:
        known = self.scores.get(member)
        if known == score:
            return False
        if known is not None:
            self._drop(known, member)
        self.scores[member] = score
        insort(self.order, (score, member))
        return known is None

    def remove(self, member: bytes) -> bool:
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self._drop(score, member)
        return True

    def between(self, low: float, high: float) -> tuple[int, int]:
        """Return the places of the members with scores from `low` to `high`, both included."""
        first = bisect_left(self.order, (low, b""))
        last = first
        while last < len(self.order) and self.order[last][0] <= high:
            last += 1
        return first, last

    def _drop(self, score: float, member: bytes) -> None:
        del self.order[bisect_left(self.order, (score, member))]


class Keyspace:
    """All keys of a server."""

    def __init__(self) -> None:
        self._values: dict[bytes, Value] = {}
        self._before: dict[bytes, Value] = {}  # values as they were at the last `keep`
        self._commands: dict[bytes, Callable[..., Any]] = {
            name.upper().encode(): getattr(self, f"_{name}") for name in _COMMANDS
        }

    def run(self, name: bytes, *arguments: bytes) -> Any:
        """Run a command, and return its answer."""
        command = self._commands.get(name.upper())
        if command is None:
            raise NotImplementedError(f"the modelled server has no command {name.decode()}")
        return command(*arguments)

    # ------------------------------------------------------------------ taking back

    def keep(self) -> None:
        """Note that everything so far is on disk."""
        self._before.clear()

    def rewind(self) -> None:
        """Take back everything since `keep`."""
        for key, value in self._before.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
        self._before.clear()

    def clear(self) -> None:
        """Forget everything (FLUSHALL)."""
        self._values.clear()
        self._before.clear()

    def _changing(self, key: bytes) -> None:
        if key not in self._before:
            value: Value = self._values.get(key)
            is_plain = value is None or isinstance(value, bytes)
            self._before[key] = value if is_plain else value.copy()

    def _get_as(self, key: bytes, kind: type) -> Value:
        """Return a value to read; an empty one if there is none."""
        value = self._values.get(key)
        if value is None:
            return kind()
        if not isinstance(value, kind):
            raise WrongType("WRONGTYPE Operation against a key holding the wrong kind of value")
        return value

    def _change(self, key: bytes, kind: type) -> Value:
        """Return a value to change."""
        self._changing(key)
        value = self._get_as(key, kind)
        self._values[key] = value
        return value

    def _tidy(self, key: bytes) -> None:
        if not self._values[key]:
            del self._values[key]

    # ------------------------------------------------------------------ keys and strings

    def _exists(self, *keys: bytes) -> int:
        return sum(key in self._values for key in keys)

    def _del(self, *keys: bytes) -> int:
        found = [key for key in dict.fromkeys(keys) if key in self._values]
        for key in found:
            self._changing(key)
            del self._values[key]
        return len(found)

    _unlink = _del

    def _get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._values.get(key)
        return value

    def _set(self, key: bytes, value: bytes) -> bytes:
        self._changing(key)
        self._values[key] = value
        return b"OK"

    # ------------------------------------------------------------------ hashes

    def _hget(self, key: bytes, name: bytes) -> bytes | None:
        found: bytes | None = self._get_as(key, dict).get(name)
        return found

    def _hmget(self, key: bytes, *names: bytes) -> list[bytes | None]:
        known = self._get_as(key, dict)
        return [known.get(name) for name in names]

    def _hgetall(self, key: bytes) -> list[bytes]:
        return [each for pair in self._get_as(key, dict).items() for each in pair]

    def _hkeys(self, key: bytes) -> list[bytes]:
        return list(self._get_as(key, dict))

    def _hlen(self, key: bytes) -> int:
        return len(self._get_as(key, dict))

    def _hexists(self, key: bytes, name: bytes) -> int:
        return int(name in self._get_as(key, dict))

    def _hset(self, key: bytes, *pairs: bytes) -> int:
        known = self._change(key, dict)
        before = len(known)
        known.update(zip(pairs[::2], pairs[1::2], strict=True))
        return len(known) - before

    def _hsetnx(self, key: bytes, name: bytes, value: bytes) -> int:
        known = self._change(key, dict)
        is_new = name not in known
        known.setdefault(name, value)
        return int(is_new)

    def _hincrby(self, key: bytes, name: bytes, by: bytes) -> int:
        known = self._change(key, dict)
        value = int(known.get(name, b"0")) + _whole(by)
        known[name] = b"%d" % value
        return value

    def _hdel(self, key: bytes, *names: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._change(key, dict)
        gone = sum(known.pop(name, None) is not None for name in names)
        self._tidy(key)
        return gone

    def _hscan(self, key: bytes, _cursor: bytes, *_options: bytes) -> list[Any]:
        return [b"0", self._hgetall(key)]

    # ------------------------------------------------------------------ sets

    def _sadd(self, key: bytes, *members: bytes) -> int:
        known = self._change(key, set)
        before = len(known)
        known.update(members)
        return len(known) - before

    def _srem(self, key: bytes, *members: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._change(key, set)
        before = len(known)
        known.difference_update(members)
        gone = before - len(known)
        self._tidy(key)
        return gone

    def _smembers(self, key: bytes) -> list[bytes]:
        return sorted(self._get_as(key, set))

    def _sismember(self, key: bytes, member: bytes) -> int:
        return int(member in self._get_as(key, set))

    def _scard(self, key: bytes) -> int:
        return len(self._get_as(key, set))

    # ------------------------------------------------------------------ lists

    def _rpush(self, key: bytes, *values: bytes) -> int:
        known = self._change(key, list)
        known.extend(values)
        return len(known)

    def _lpop(self, key: bytes) -> bytes | None:
        if key not in self._values:
            return None
        first: bytes = self._change(key, list).pop(0)
        self._tidy(key)
        return first

    def _llen(self, key: bytes) -> int:
        return len(self._get_as(key, list))

    def _lindex(self, key: bytes, place: bytes) -> bytes | None:
        known = self._get_as(key, list)
        return known[int(place)] if -len(known) <= int(place) < len(known) else None

    def _lset(self, key: bytes, place: bytes, value: bytes) -> bytes:
        self._change(key, list)[int(place)] = value
        return b"OK"

    def _lrange(self, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        known = self._get_as(key, list)
        found: list[bytes] = known[_span(first, last, len(known))]
        return found

    def _lrem(self, key: bytes, count: bytes, value: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._change(key, list)
        there: int = known.count(value)
        found = min(int(count) or there, there)
        for _ in range(found):
            known.remove(value)
        self._tidy(key)
        return found

    def _ltrim(self, key: bytes, first: bytes, last: bytes) -> bytes:
        if key in self._values:
            known = self._change(key, list)
            known[:] = known[_span(first, last, len(known))]
            self._tidy(key)
        return b"OK"

    # ------------------------------------------------------------------ sorted sets

    def _zadd(self, key: bytes, *pairs: bytes) -> int:
        known = self._change(key, Scores)
        scores = zip(pairs[::2], pairs[1::2], strict=True)
        new: int = [known.add(member, float(score)) for score, member in scores].count(True)
        return new

    def _zrem(self, key: bytes, *members: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._change(key, Scores)
        gone: int = [known.remove(member) for member in members].count(True)
        self._tidy(key)
        return gone

    def _zcard(self, key: bytes) -> int:
        return len(self._get_as(key, Scores))

    def _zscore(self, key: bytes, member: bytes) -> bytes | None:
        score = self._get_as(key, Scores).scores.get(member)
        return None if score is None else _score(score)

    def _zrange(self, key: bytes, first: bytes, last: bytes, *options: bytes) -> list[bytes]:
        known = self._get_as(key, Scores)
        return _listed(known.order[_span(first, last, len(known))], options)

    def _zrangebyscore(self, key: bytes, low: bytes, high: bytes, *options: bytes) -> list[bytes]:
        known = self._get_as(key, Scores)
        first, last = known.between(_bound(low), float(high))
        if low.startswith(b"("):
            while first < last and known.order[first][0] <= _bound(low):
                first += 1
        words = [each.upper() for each in options]
        if b"LIMIT" in words:
            at = words.index(b"LIMIT")
            first += int(options[at + 1])
            last = min(last, first + int(options[at + 2]))
        return _listed(known.order[first:last], options)

    def _zremrangebyscore(self, key: bytes, low: bytes, high: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._get_as(key, Scores)
        first, last = known.between(float(low), float(high))
        return self._zrem(key, *[member for _, member in known.order[first:last]])

    def _zremrangebyrank(self, key: bytes, first: bytes, last: bytes) -> int:
        if key not in self._values:
            return 0
        known = self._get_as(key, Scores)
        members = [member for _, member in known.order[_span(first, last, len(known))]]
        return self._zrem(key, *members) if members else 0

    def _zscan(self, key: bytes, _cursor: bytes, *_options: bytes) -> list[Any]:
        return [b"0", _listed(self._get_as(key, Scores).order, (b"WITHSCORES",))]


_COMMANDS = [
    name[1:]
    for name, value in vars(Keyspace).items()
    if callable(value)
    and name.startswith("_")
    and not name.startswith("__")
    and name not in ("_changing", "_get_as", "_change", "_tidy")
]


def _span(first: bytes, last: bytes, length: int) -> slice:
    start, end = int(first), int(last)
    start = max(0, start + length) if start < 0 else start
    end = end + length if end < 0 else end
    return slice(start, end + 1)


def _bound(text: bytes) -> float:
    return float(text.removeprefix(b"("))


def _listed(rows: list[tuple[float, bytes]], options: tuple[bytes, ...]) -> list[bytes]:
    if b"WITHSCORES" in [each.upper() for each in options]:
        return [each for score, member in rows for each in (member, _score(score))]
    return [member for _, member in rows]


def _score(score: float) -> bytes:
    return b"%d" % score if score == int(score) else repr(score).encode()


def _whole(text: bytes) -> int:
    return int(text) if b"." not in text else int(float(text))
