"""The modelled keyspace answers as a real server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.store.valkey_server import shared_url
from virtual.fleet.keyspace import Keyspace

if TYPE_CHECKING:
    from collections.abc import Iterator

small = st.integers(0, 4).map(lambda number: b"%d" % number)
place = st.integers(-3, 3).map(lambda number: b"%d" % number)
some = st.lists(small, min_size=1, max_size=3)
pairs = st.lists(st.tuples(small, small), min_size=1, max_size=3).map(
    lambda found: [each for pair in found for each in pair]
)

# By the kind of key that they work on: a name, and the arguments after the key.
COMMANDS: dict[bytes, dict[str, list[Any]]] = {
    b"hash": {
        "HSET": [pairs],
        "HSETNX": [small, small],
        "HGET": [small],
        "HMGET": [some],
        "HLEN": [],
        "HEXISTS": [small],
        "HINCRBY": [small, place],
        "HDEL": [some],
    },
    b"set": {"SADD": [some], "SREM": [some], "SISMEMBER": [small], "SCARD": []},
    b"list": {
        "RPUSH": [some],
        "LPOP": [],
        "LLEN": [],
        "LINDEX": [place],
        "LRANGE": [place, place],
        "LTRIM": [place, place],
        "LREM": [st.sampled_from([b"0", b"1", b"2"]), small],
    },
    b"sorted": {
        "ZADD": [pairs],
        "ZREM": [some],
        "ZCARD": [],
        "ZSCORE": [small],
        "ZRANGE": [place, place],
        "ZRANGEBYSCORE": [small, small],
        "ZREMRANGEBYSCORE": [small, small],
        "ZREMRANGEBYRANK": [place, place],
    },
    b"string": {"GET": [], "SET": [small], "EXISTS": [], "DEL": []},
}


@st.composite
def commands(draw: Any) -> list[bytes]:
    key = draw(st.sampled_from(sorted(COMMANDS)))
    name = draw(st.sampled_from(sorted(COMMANDS[key])))
    words = [name.encode(), key]
    for argument in COMMANDS[key][name]:
        drawn = draw(argument)
        words += drawn if isinstance(drawn, list) else [drawn]
    return words


@pytest.fixture(scope="module")
def real() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(shared_url(), db=9, protocol=2) as client:
        yield client


@pytest.mark.processes
@given(st.lists(commands(), max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_command_answers_as_a_real_server_does(
    real: redis.Redis, sequence: list[list[bytes]]
) -> None:
    """In any order, on keys that exist and on keys that do not."""
    real.flushdb()
    model = Keyspace()

    for command in sequence:
        assert model.run(*command) == _raw(real, command), command


def _raw(real: redis.Redis, command: list[bytes]) -> Any:
    """Return an answer as it is on the wire."""
    pool = real.connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    try:
        connection.send_command(*command)
        return connection.read_response()
    finally:
        connection.disconnect()


def test_the_last_moments_can_be_taken_back() -> None:
    """Everything since the last save: changes, new keys and deleted ones."""
    model = Keyspace()
    model.run(b"HSET", b"kept", b"a", b"1")
    model.run(b"RPUSH", b"list", b"x")
    model.run(b"RPUSH", b"long", b"x", b"y", b"z", b"y")
    model.keep()
    model.run(b"HSET", b"kept", b"a", b"2", b"b", b"3")
    model.run(b"DEL", b"list")
    model.run(b"ZADD", b"new", b"1", b"m")
    model.run(b"LREM", b"long", b"0", b"y")
    model.run(b"RPUSH", b"long", b"w")
    model.run(b"LPOP", b"long")

    model.rewind()

    assert model.run(b"HGETALL", b"kept") == [b"a", b"1"]
    assert model.run(b"LRANGE", b"list", b"0", b"-1") == [b"x"]
    assert model.run(b"LRANGE", b"long", b"0", b"-1") == [b"x", b"y", b"z", b"y"]
    assert model.run(b"EXISTS", b"new") == 0


def test_an_exchange_that_is_repeated_answers_anew() -> None:
    """Long ones are kept as they were unpacked, and their answers until a value changes."""
    model = Keyspace()
    exchange = [("HMGET", f"a key with a long name, number {at}", "a", "b") for at in range(100)]
    key = exchange[7][1]

    def seen() -> Any:
        return model.exchange(exchange, 0.0)[7], model.run("HGETALL", key)

    assert model.exchange(exchange, 0.0) == [[None, None]] * 100
    model.run("HSET", key, "b", 5)
    assert seen() == ([None, b"5"], [b"b", b"5"])
    model.keep()
    model.run("HSET", key, "b", 6, "a", 1)
    assert seen() == ([b"1", b"6"], [b"a", b"1", b"b", b"6"])
    model.rewind()
    assert seen() == ([None, b"5"], [b"b", b"5"])
    model.run("DEL", key)
    model.run("HSET", key, "b", 7)
    assert seen() == ([None, b"7"], [b"b", b"7"])


def test_a_renewal_of_calm_members_is_seen_at_once() -> None:
    """It is written past the journal: answers that are kept must not outlive it."""
    model = Keyspace()
    model.run("HSET", "shard", "token", "t", "beat", "b:1", "clock", 5)
    model.run("HSET", "cards", "w1", "5 b:1 card")
    before = model.run("HGET", "shard", "beat"), model.run("HGETALL", "cards")

    renewed = {"members": ["w1", "b:9"], "shards": ["shard", "b:9", 13], "heartbeats": "cards"}
    model.prolong({"now": 20, **renewed})

    assert before == (b"b:1", [b"w1", b"5 b:1 card"])
    assert model.run("HMGET", "shard", "beat", "clock") == [b"b:9", b"13"]
    assert model.run("HGETALL", "cards") == [b"w1", b"20 b:9 card"]


@pytest.mark.parametrize("number", [0, 127, 128, -1, -32, -33, 40_000, -70_000, 2**31, -(2**40)])
def test_numbers_are_answered_as_they_are(number: int) -> None:
    """Whatever their length."""
    model = Keyspace()

    assert model.run("HINCRBY", "hash", "field", number) == number


def test_an_unknown_command_is_named() -> None:
    """The model grows with the store."""
    with pytest.raises(NotImplementedError, match="no command BLPOP"):
        Keyspace().run(b"BLPOP", b"key", b"0")
