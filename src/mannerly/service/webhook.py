"""Tell another server that a run of a job has ended: a POST with the job, signed, tried four times.

The URL comes with the job, so it is not trusted: the network guard judges the address that is about
to be connected, redirects are not followed, and the answer is thrown away. With a secret, the
header `X-Mannerly-Signature` is `sha256=` and the HMAC of the body, in hexadecimal digits.

A job keeps the ended runs whose webhook is not delivered: until it was accepted (any 2xx) or tried
`len(WAITS_S) + 1` times, so that a restart of the service loses none. It has the job as it was at
that end, whatever has begun since; those of one job are sent one after the other. If the service is
killed between the answer and its note, it is sent again: `X-Mannerly-Delivery` is the same then,
the job and the run that ended.

Requests are sent by threads of their own (`AT_ONCE`): slow receivers delay nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.fetch.guard import AddressVerdict, split_origin
from mannerly.crawler.fetch.libcurl import pycurl

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from mannerly.crawler.fetch.guard import NetworkGuard

    from .jobs.book import JobBook
    from .jobs.model import Job, JobRun

log = logging.getLogger("mannerly.service")

WAITS_S = (5.0, 30.0, 300.0)  # between two tries
TIMEOUT_S = 10
AT_ONCE = 8  # requests
SIGNATURE = "X-Mannerly-Signature"
DELIVERY = "X-Mannerly-Delivery"


class WebhookError(Exception):
    """The other server did not accept it; the text says why."""


class _Delivery:
    """The end of one run, on its way to the receiver."""

    def __init__(self, job: Job, now: float) -> None:
        self.job = job
        self.run: JobRun = job.undelivered[0]
        self.due_at = now  # of the next try
        self.tries = 0
        self.is_over = False  # it was accepted, or tried often enough
        self.sending: Future[None] | None = None

    def body(self) -> bytes:
        """Return the job as it was when the run had ended."""
        assert self.run.state is not None, "it has ended"
        job = msgspec.structs.replace(self.job, state=self.run.state, run=self.run, undelivered=[])
        return msgspec.json.encode({"event": "ended", "job": job})

    def hear(self, error: BaseException | None, now: float) -> None:
        """Take the outcome of a try."""
        self.sending = None
        self.tries += 1
        self.is_over = error is None or self.tries > len(WAITS_S)
        if not self.is_over:
            self.due_at = now + WAITS_S[self.tries - 1]
        if error is not None:
            is_foreseen = isinstance(error, WebhookError)
            words = (self.job.id, str(error) or type(error).__name__)
            log.warning(
                "the webhook of job %s failed: %s", *words, exc_info=None if is_foreseen else error
            )


class Webhooks:
    """Sends the webhooks that jobs owe.

    Args:
        book: the jobs.
        guard: judges the addresses of receivers.
        secret: signs bodies; None: they are not signed.
        is_ending: whether a process still works on this run of this job: its result is awaited.
    """

    def __init__(
        self,
        book: JobBook,
        guard: NetworkGuard,
        secret: str | None,
        is_ending: Callable[[str, int], bool] = lambda _job_id, _run: False,
    ) -> None:
        self._book = book
        self._guard = guard
        self._secret = secret
        self._is_ending = is_ending
        self._deliveries: dict[str, _Delivery] = {}  # by job
        self._threads = ThreadPoolExecutor(AT_ONCE, "webhook")
        self._is_closed = Event()

    def tick(self, now: float) -> None:
        """Hear what became of the webhooks that were sent, and send those that are due.

        `now` is monotonic.
        """
        waiting = {job.id: job for job in self._book.with_undelivered()}
        for job in waiting.values():
            if job.id not in self._deliveries and not self._is_ending(
                job.id, job.undelivered[0].number
            ):
                self._deliveries[job.id] = _Delivery(job, now)
        for job_id, delivery in list(self._deliveries.items()):
            if delivery.sending is not None and delivery.sending.done():
                delivery.hear(delivery.sending.exception(), now)
            if delivery.is_over or (delivery.sending is None and job_id not in waiting):
                self._book.delivered(job_id, delivery.run)
                del self._deliveries[job_id]
            elif delivery.sending is None and now >= delivery.due_at:
                delivery.sending = self._threads.submit(self._send, delivery)

    def close(self) -> None:
        """Stop sending; what is not delivered is sent after the next start."""
        self._is_closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, delivery: _Delivery) -> None:
        """Send one webhook; this runs in a thread."""
        job = delivery.job
        assert job.webhook is not None, "it has an undelivered webhook"
        name = f"{job.id}/{delivery.run.number}"
        post(job.webhook, delivery.body(), self._guard, self._secret, name, self._is_closed.is_set)


def check_webhook(url: str, guard: NetworkGuard) -> None:
    """Check a URL before it is kept.

    Raises:
        ValueError: it is not an http or https URL, or leads into a private network.
    """
    origin = split_origin(url)
    if origin is None:
        raise ValueError(f"webhook is {url!r}; allowed: an http or https URL without a password")
    if guard.judge_host(origin[1], origin[2]) is not AddressVerdict.ALLOWED:
        raise ValueError(
            "webhook leads to a private address or an unusual port: the operator has to allow it "
            "with --allow-net"
        )


def signature(body: bytes, secret: str) -> str:
    """Return the value of the signature's header."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def post(
    url: str,
    body: bytes,
    guard: NetworkGuard,
    secret: str | None,
    delivery: str,
    is_closed: Callable[[], bool] = lambda: False,
) -> None:
    """Send one webhook, and wait for the answer; not any more once `is_closed`.

    Raises:
        WebhookError: it was not accepted.
    """
    origin = split_origin(url)
    if origin is None:
        raise WebhookError("not a URL")
    host = origin[1]
    opened: list[socket.socket] = []  # pycurl duplicates them

    def open_socket(_purpose: int, peer: pycurl.CurlSockAddr) -> socket.socket | int:
        if guard.judge(peer.addr[0], peer.addr[1], host) is not AddressVerdict.ALLOWED:
            return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        opened.append(socket.socket(peer.family, peer.socktype, peer.protocol))
        return opened[-1]

    headers = ["Content-Type: application/json", "Expect:", f"{DELIVERY}: {delivery}"]
    if secret is not None:
        headers.append(f"{SIGNATURE}: {signature(body, secret)}")
    handle = pycurl.Curl()
    try:
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.POST, 1)
        handle.setopt(pycurl.POSTFIELDS, body)
        handle.setopt(pycurl.HTTPHEADER, headers)
        handle.setopt(pycurl.USERAGENT, "mannerly-webhook")
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.PROXY, "")
        handle.setopt(pycurl.TIMEOUT, TIMEOUT_S)
        handle.setopt(pycurl.NOPROGRESS, 0)
        handle.setopt(pycurl.XFERINFOFUNCTION, lambda *_numbers: int(is_closed()))
        handle.setopt(pycurl.WRITEFUNCTION, lambda _data: None)
        handle.setopt(pycurl.OPENSOCKETFUNCTION, open_socket)
        handle.perform()
        status = handle.getinfo(pycurl.RESPONSE_CODE)
    except pycurl.error as error:
        raise WebhookError(str(error.args[-1])) from error
    finally:
        handle.close()
        for each in opened:
            each.close()
    if not 200 <= status < 300:
        raise WebhookError(f"the server answered {status}")
