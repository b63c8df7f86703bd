"""Bytes that a queued request costs beyond a link to the same URL, beside its payload.

python -m bench payloads [--requests 100000]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench._valkey import commit, crawl_in_server
from mannerly.crawler.model import Candidate
from mannerly.crawler.payload import Payload, payload
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

BATCH = 500
HOST = "shop.example"
MOST = 120.0  # bytes


def label(number: int) -> Payload | None:
    return payload(label="product", data={"price": f"{number / 100}", "list": "/category/tea"})


def form(number: int) -> Payload | None:
    words = f'{{"q": "tea", "page": {number}}}'
    return payload(
        "POST", headers={"Content-Type": "application/json"}, body=words, label="results"
    )


def own_bytes(carried: Payload | None) -> int:
    """Return how long the values of a payload are, without names, lengths and places."""
    if carried is None:
        return 0
    texts = [text for pair in carried.headers for text in pair]
    method = "" if carried.method == "GET" else carried.method
    texts += [method, carried.label]
    return sum(len(text.encode()) for text in texts) + len(carried.body) + len(carried.json)


def candidates(made: list[Payload | None]) -> list[Candidate]:
    found = []
    for number, carried in enumerate(made):
        url = f"https://{HOST}/product/{number:06}-a-pot-of-tea"
        link = Candidate(url, HOST, 2, 300, f"https://{HOST}/category/tea")
        if carried is not None:
            link = link._replace(kind=carried.kind, payload=carried)
        found.append(link)
    return found


def in_sqlite(found: list[Candidate]) -> int:
    with tempfile.TemporaryDirectory() as place:
        create_shard(Path(place), 0, shards=1)
        options = ShardOptions(100_000_000)
        with SqliteStore(Path(place), 0, options, shards=1) as store:
            for start in range(0, len(found), BATCH):
                store.commit(Batch(found=found[start : start + BATCH]))
        return (Path(place) / "shard-0.db").stat().st_size


def in_server(found: list[Candidate]) -> int:
    with crawl_in_server(1) as bench:
        began = bench.memory()
        for start in range(0, len(found), BATCH):
            commit(bench.shards[0], Batch(found=found[start : start + BATCH]))
        return bench.memory() - began


def run(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench payloads")
    parser.add_argument("--requests", type=int, default=100_000)
    requests = parser.parse_args(arguments or []).requests
    print(f"{requests:,} requests, bytes of each\n")
    print("                        payload   SQLite   server   (beside the payload)")
    plain = candidates([None] * requests)
    links = in_sqlite(plain), in_server(plain)
    for name, make in (("GET, label, data", label), ("POST, JSON, label", form)):
        made = [make(number) for number in range(requests)]
        own = sum(map(own_bytes, made)) / requests
        found = candidates(made)
        more = [
            (size - link) / requests - own
            for size, link in zip((in_sqlite(found), in_server(found)), links, strict=True)
        ]
        print(f"{name:22} {own:8.1f} {more[0]:8.1f} {more[1]:8.1f}   (at most {MOST:g})")
    print(f"{'a link':22} {'':8} {links[0] / requests:8.1f} {links[1] / requests:8.1f}   (in all)")
