"""Absurd numbers in requests to the service: each is taken, or refused in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import pytest
from tests.hostile.absurd import ABSURD
from tests.service.running import ServiceProcess

from mannerly.crawler.settings import CrawlSettings
from mannerly.service.jobs.model import ALLOWED, settings_of

if TYPE_CHECKING:
    from pathlib import Path

WORDS_OF_JSON = ("1e400", "-1e400", "1" + "0" * 400, "-1", "0.5", "1e15", "0", "true", "[]", "null")
QUERIES = ("hosts?limit=", "hosts?after=", "errors?limit=", "queue?text=a&limit=")
SHORT = 200  # characters: a longer address is refused by the web server itself


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_absurd_option_of_a_job_is_taken_or_refused(name: str) -> None:
    """As text and as a value of JSON; nothing else is raised than what becomes a 400."""
    refusals = []
    for text in (*map(json.dumps, ABSURD), *WORDS_OF_JSON):
        try:
            options = msgspec.json.decode(f'{{"{name}": {text}}}', type=dict[str, object])
            settings_of(options, CrawlSettings())
        except (ValueError, msgspec.DecodeError) as error:
            refusals.append(str(error))

    assert all(refusals)


@pytest.mark.processes
def test_absurd_query_is_answered_or_refused(tmp_path: Path) -> None:
    """By the real service, which stays ready."""
    with ServiceProcess(tmp_path) as service:
        job = service.create("http://127.0.0.9:9/", schedule="0 0 1 1 *")
        answers = {
            f"{query}{text}": service.call("GET", f"/api/jobs/{job}/{query}{quote(text)}")[0]
            for query in QUERIES
            for text in ABSURD
            if len(text) <= SHORT
        }
        ready, _ = service.call("GET", "/readyz")

    assert {query: status for query, status in answers.items() if status >= 500} == {}
    assert ready == 200
