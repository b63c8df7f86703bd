"""Tell another server that a run of a job has ended: a POST with the job, signed, tried four times.

The URL comes with the job, so it is not trusted: the network guard judges the address that is about
to be connected, redirects are not followed, and the answer is thrown away. With a secret, the
header `X-Mannerly-Signature` is `sha256=` and the HMAC of the body, in hexadecimal digits.

A job keeps that its webhook is owed until it was accepted (any 2xx) or tried `len(WAITS_S) + 1`
times, so that a restart of the service loses none. If the service is killed between the answer and
its note, it is sent again: `X-Mannerly-Delivery` is the same then, the job and the run that ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler.fetch.guard import AddressVerdict, split_origin
from mannerly.crawler.fetch.libcurl import pycurl

if TYPE_CHECKING:
    from mannerly.crawler.fetch.guard import NetworkGuard

    from .jobs.book import JobBook
    from .jobs.model import Job

log = logging.getLogger("mannerly.service")

WAITS_S = (5.0, 30.0, 300.0)  # between two tries
TIMEOUT_S = 10
SIGNATURE = "X-Mannerly-Signature"
DELIVERY = "X-Mannerly-Delivery"


class WebhookError(Exception):
    """The other server did not accept it; the text says why."""


class Webhooks:
    """Sends the webhooks that jobs owe."""

    def __init__(self, book: JobBook, guard: NetworkGuard, secret: str | None) -> None:
        self._book = book
        self._guard = guard
        self._secret = secret
        self._sending: dict[str, asyncio.Task[None]] = {}

    def send_owed(self) -> None:
        """Begin to send what is owed and not being sent yet."""
        for job in self._book.owed():
            if job.id not in self._sending:
                self._sending[job.id] = asyncio.create_task(self._send(job))

    async def close(self) -> None:
        """Stop sending; what is owed is sent after the next start."""
        for task in list(self._sending.values()):
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def _send(self, job: Job) -> None:
        assert job.webhook is not None, "it is owed"
        body = msgspec.json.encode({"event": "ended", "job": job})
        delivery = f"{job.id}/{job.run.number}"
        for wait_s in (*WAITS_S, None):
            try:
                await asyncio.to_thread(
                    post, job.webhook, body, self._guard, self._secret, delivery
                )
                break
            except WebhookError as error:
                log.warning("the webhook of job %s failed: %s", job.id, error)
                if wait_s is not None:
                    await asyncio.sleep(wait_s)
        self._book.paid(job)
        del self._sending[job.id]


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


def post(url: str, body: bytes, guard: NetworkGuard, secret: str | None, delivery: str) -> None:
    """Send one webhook, and wait for the answer.

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
