"""What all operations of the API share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from mannerly.service.jobs_api import NewSeeds
from mannerly.service.operations import Problem, decoded


@pytest.mark.parametrize(
    "body",
    [b'{"urls": ["\xff\xfe"]}', b"\xff", b'{"urls": 5}', b"[", b"[" * 100_000, b'{"other": 1}'],
)
def test_json_that_is_wrong_is_a_bad_request(body: bytes) -> None:
    """Invalid UTF-8 included: the client is told, and nothing fails."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)

    with pytest.raises(Problem) as raised:
        asyncio.run(decoded(request, NewSeeds))

    assert raised.value.status == 400
