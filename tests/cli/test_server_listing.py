"""`mannerly status URL`: the crawls in a server."""

from __future__ import annotations

import json

import pytest
from tests.crawler.store.valkey_server import LocalServer
from typer.testing import CliRunner

from mannerly.cli import app
from mannerly.crawler.store import create_crawl
from mannerly.crawler.store.contract import new_manifest


@pytest.mark.parametrize("is_json", [False, True])
def test_a_damaged_crawl_does_not_hide_the_others(is_json: bool) -> None:
    """The sound ones are listed, the damaged one is named with its key, and the exit code is 4."""
    with LocalServer() as server:
        for name in ("sound", "damaged"):
            create_crawl(f"{server.url}#{name}", new_manifest(2)).close()
        with server.client() as client:
            client.hset("mannerly:{damaged:0}:n", "a.example", "many")

        outcome = CliRunner().invoke(app, ["status", server.url, *(["--json"] if is_json else [])])

    assert outcome.exit_code == 4
    assert "sound" in outcome.stdout
    assert "damaged cannot be read: mannerly:{damaged:0}:n holds" in outcome.stderr
    if is_json:
        assert [each.get("state") for each in json.loads(outcome.stdout)] == ["stopped", None]
