"""Webhooks: signed, guarded, tried again, and told once for each end of a run."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.harness.sites import Request, serving
from tests.harness.waiting import eventually
from tests.service.jobs import FINISHED, Desk
from tests.service.running import ServiceProcess

from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.demo import DemoWeb, plain_sites
from mannerly.service import webhook
from mannerly.service.jobs.model import JobEnd, JobEvent, JobState, NewJob, new_job
from mannerly.service.webhook import WebhookError, Webhooks, check_webhook, post

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPEN = NetworkGuard((), ("127.0.0.0/8",))
CLOSED = NetworkGuard((), ())
SECRET = "between us"


class Delivered(NamedTuple):
    """One request, as the receiver saw it."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int  # of our answer


class Receiver:
    """A server that gets webhooks; `answers` are the next statuses, then 204."""

    def __init__(self) -> None:
        self.seen: list[Delivered] = []
        self.answers: list[int] = []
        self._open = ExitStack()
        self.url = f"{self._open.enter_context(serving(self._respond))}/hook"

    def _respond(self, request: Request) -> None:
        body = request.read()
        status = self.answers.pop(0) if self.answers else 204
        self.seen.append(Delivered(request.path, dict(request.headers), body, status))
        request.answer(status, headers={"Location": "/elsewhere"} if status == 302 else {})

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_body_is_signed(receiver: Receiver) -> None:
    """The receiver can compute the same HMAC from the body and the secret."""
    post(receiver.url, b'{"a": 1}', OPEN, SECRET, "job/1")

    (seen,) = receiver.seen
    wanted = hmac.new(SECRET.encode(), seen.body, hashlib.sha256).hexdigest()
    assert seen.headers["X-Mannerly-Signature"] == f"sha256={wanted}"
    assert seen.headers["X-Mannerly-Delivery"] == "job/1"
    assert seen.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("url", ["http://localhost:{port}/hook", "http://127.0.0.1:{port}/hook"])
def test_private_address_is_not_contacted(receiver: Receiver, url: str) -> None:
    """A name that leads there is judged when it is connected: nothing is sent."""
    port = receiver.url.split(":")[2].split("/")[0]

    with pytest.raises(WebhookError):
        post(url.format(port=port), b"{}", CLOSED, None, "job/1")

    assert receiver.seen == []


@pytest.mark.parametrize(
    "url",
    [
        *("http://10.0.0.1/", "http://169.254.169.254/latest", "http://[::1]:80/", "ftp://a/"),
        *("http://user:pw@a.example/", "http://0x7f.1/", "file:///etc/passwd", "javascript:1"),
    ],
)
def test_url_that_leads_inside_is_refused_with_the_job(url: str) -> None:
    """Before a job exists."""
    with pytest.raises(ValueError, match="webhook"):
        check_webhook(url, CLOSED)


def test_redirect_is_not_followed(receiver: Receiver) -> None:
    """It could lead anywhere; and it is no acceptance."""
    receiver.answers = [302]

    with pytest.raises(WebhookError, match="302"):
        post(receiver.url, b"{}", OPEN, None, "job/1")

    assert [seen.path for seen in receiver.seen] == ["/hook"]


def _desk(root: Path, url: str) -> tuple[Desk, str]:
    """Return a desk with one job that has ended and has an undelivered webhook."""
    desk = Desk(root)
    wanted = NewJob(seeds=["https://a.example/"], webhook=url)
    job = new_job(wanted, now=desk.now, next_due=None)
    desk.book.add(job)
    desk.tick()
    desk.started[0].ends(FINISHED)
    desk.tick()
    assert desk.job(job.id).state is JobState.FINISHED
    return desk, job.id


def _send(desk: Desk) -> None:
    """Send what is not delivered, until nothing is left; a second passes with each step."""
    hooks, now = Webhooks(desk.book, OPEN, SECRET), 0.0

    def is_done() -> bool:
        nonlocal now
        now += 1.0
        hooks.tick(now)
        return not desk.book.with_undelivered()

    eventually(is_done)
    hooks.close()


def test_refused_webhook_is_tried_again_with_longer_waits(
    receiver: Receiver, tmp_path: Path
) -> None:
    """Until it is accepted; the same delivery each time."""
    receiver.answers = [500, 503]
    desk, job = _desk(tmp_path, receiver.url)

    _send(desk)

    assert [seen.status for seen in receiver.seen] == [500, 503, 204]
    assert {seen.headers["X-Mannerly-Delivery"] for seen in receiver.seen} == {f"{job}/1"}
    assert json.loads(receiver.seen[0].body)["job"]["run"]["fetched"] == 3
    assert desk.book.with_undelivered() == []
    assert sorted(webhook.WAITS_S) == list(webhook.WAITS_S)


def test_webhook_that_nobody_accepts_is_given_up(receiver: Receiver, tmp_path: Path) -> None:
    """After four tries; the job does not wait for it."""
    receiver.answers = [500] * 50
    desk, _ = _desk(tmp_path, receiver.url)

    _send(desk)

    assert len(receiver.seen) == 4
    assert desk.book.with_undelivered() == []


def test_end_is_told_as_it_was_although_the_next_run_goes_on(
    receiver: Receiver, tmp_path: Path
) -> None:
    """A run that was asked for before the answer came is told when it has ended itself."""
    desk, job = _desk(tmp_path, receiver.url)
    desk.book.run_again(job, now=desk.now)
    desk.tick()

    _send(desk)
    told_while_running = len(receiver.seen)
    desk.started[1].ends(JobEnd("no_seed", error="not found"))
    desk.tick()
    _send(desk)

    told = [json.loads(seen.body)["job"] for seen in receiver.seen]
    assert told_while_running == 1
    assert [(each["state"], each["run"]["number"]) for each in told] == [
        ("finished", 1),
        ("failed", 2),
    ]


def test_webhook_that_fails_in_an_unexpected_way_blocks_no_later_one(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried as often as any other, and then the next end is told."""
    desk, job = _desk(tmp_path, receiver.url)

    def fail(*_arguments: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(webhook, "post", fail)
        _send(desk)
    desk.book.run_again(job, now=desk.now)
    desk.tick()
    desk.started[1].ends(FINISHED)
    desk.tick()
    _send(desk)

    assert [json.loads(seen.body)["job"]["run"]["number"] for seen in receiver.seen] == [2]


def test_slow_receivers_hold_up_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: stores are read meanwhile, by the threads that read them."""
    desk, names, over = Desk(tmp_path, jobs=40), set(), threading.Event()
    for number in range(40):
        desk.add(f"a{number}", webhook="https://slow.example/")
    desk.tick()
    for process in desk.started:
        process.ends()
    desk.tick()

    def wait(*_arguments: object) -> None:
        names.add(threading.current_thread().name.partition("_")[0])
        over.wait()

    monkeypatch.setattr(webhook, "post", wait)
    hooks = Webhooks(desk.book, OPEN, SECRET)

    async def read_beside() -> str:
        hooks.tick(0.0)
        return await asyncio.to_thread(lambda: "read")

    read = asyncio.run(read_beside())
    over.set()
    hooks.close()

    assert read == "read"
    assert names == {"webhook"}


def test_end_is_told_with_the_result_of_its_process(receiver: Receiver, tmp_path: Path) -> None:
    """A job that was stopped is told when its process has ended."""
    desk = Desk(tmp_path)
    job = desk.add(webhook=receiver.url)
    desk.tick()
    desk.started[0].obeys = False
    desk.book.move(job, JobEvent.STOPPED, now=desk.now)
    desk.tick()
    hooks = Webhooks(desk.book, OPEN, SECRET, desk.runner.is_on)

    hooks.tick(0.0)
    desk.started[0].ends(JobEnd("stopped", fetched=4))
    desk.tick()
    hooks.close()
    _send(desk)

    assert [json.loads(seen.body)["job"]["run"]["fetched"] for seen in receiver.seen] == [4]


@pytest.mark.processes
def test_each_end_is_told_once_after_kills(receiver: Receiver, tmp_path: Path) -> None:
    """Three jobs; the first tries are refused, and the service is killed meanwhile."""
    receiver.answers = [503, 503, 503]
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    options = {"strategy": "fixed", "delay": 0.02, "max_rate": 50, "seeding_strategy": "none"}
    with (
        DemoWeb(plain_sites(3, pages=5)) as web,
        ServiceProcess(tmp_path / "jobs", "--webhook-secret-file", str(secret)) as service,
    ):
        for name in ("plain-0", "plain-1", "plain-2"):
            service.create(web.url(name), options=options, webhook=receiver.url)
        eventually(lambda: len(receiver.seen) >= 3)
        service.kill()
        service.start()
        accepted = lambda: [seen for seen in receiver.seen if seen.status == 204]  # noqa: E731
        eventually(lambda: len(accepted()) >= 3)
        time.sleep(1.0)  # for one too many
        service.kill()
        service.start()
        time.sleep(1.5)

    told = Counter(seen.headers["X-Mannerly-Delivery"] for seen in accepted())
    assert len(told) == 3
    assert set(told.values()) == {1}
    assert all("X-Mannerly-Signature" in seen.headers for seen in receiver.seen)
