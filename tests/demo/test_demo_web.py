from __future__ import annotations

import gzip
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest

from mannerly.demo import (
    DemoError,
    DemoWeb,
    Feature,
    Record,
    RobotsFile,
    Site,
    SitemapKind,
    inside_retry_after,
    most_in_flight,
    plain_sites,
    read_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

SITES = (
    Site(name="plain", pages=50),
    Site(name="late", pages=50, latency_s=0.2),
    Site(name="packed", gzip=True, size=5_000),
    Site(name="bucket", limit="bucket:0.2:2+retry-after"),
    Site(name="date", limit="bucket:0.2:1+retry-after-date"),
    Site(name="pair", limit="concurrency:2:0.2"),
    Site(name="queue", limit="knee:1:0.05"),
    Site(name="closed", robots=RobotsFile.CLOSED),
    Site(name="huge", robots=RobotsFile.HUGE),
    Site(name="mapped", sitemap=SitemapKind.GZIP),
    Site(name="trap", features=frozenset(Feature)),
    Site(name="dead", limit="bucket:9:9+unreachable=0-60"),
)


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(SITES) as web:
        yield web


def connect(netloc: str) -> socket.socket:
    host, _, port = netloc.partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def ask(connection: socket.socket, sent: bytes, answers: int = 1) -> bytes:
    """Send raw bytes and read until that many heads have come, or the connection ends."""
    connection.sendall(sent)
    received = b""
    while received.count(b"\r\n\r\n") < answers and (data := connection.recv(65_536)):
        received += data
    return received


def exchange(netloc: str, sent: bytes, answers: int = 1) -> bytes:
    """The same on a connection of its own."""
    with connect(netloc) as connection:
        return ask(connection, sent, answers)


def test_all_hosts_share_one_port_on_addresses_of_their_own(web: DemoWeb) -> None:
    """As on the real web, hosts differ by name; only loopback is used."""
    if web.hosts[0].startswith("127.0.0.1:"):
        pytest.skip("this system has no loopback address but 127.0.0.1")
    addresses, ports = zip(*(host.split(":") for host in web.hosts), strict=True)

    assert addresses[:3] == ("127.0.0.2", "127.0.0.3", "127.0.0.4")
    assert len(set(ports)) == 1
    assert web.seeds()[0] == web.url("plain") == f"http://127.0.0.2:{ports[0]}/"


def test_log_has_what_was_asked_and_answered(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """Path with query, status, agent, body bytes, and instants on this machine's clock."""
    before = time.monotonic()
    page = fetch(web.url("plain", "/section-1/page-1.html?view=log"))
    after = time.monotonic()

    record = web.log_of("plain")[-1]

    assert (record.method, record.path) == ("GET", "/section-1/page-1.html?view=log")
    assert (record.status, record.user_agent) == (200, "test/1")
    assert record.bytes == len(page.body)
    assert record.answered_at is not None
    assert before <= record.t <= record.answered_at <= after
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Date" in page.headers


def test_connection_is_kept_for_the_next_request(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """Three requests of one client arrive on one connection, those of another on another."""
    for path in ("/", "/missing", "/robots.txt"):
        fetch(web.url("plain", path))
    exchange(web.host("plain"), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    *kept, other = web.log_of("plain")[-4:]

    assert len({record.connection for record in kept}) == 1
    assert other.connection != kept[0].connection
    assert [record.status for record in kept] == [200, 404, 200]
    assert {record.in_flight for record in (*kept, other)} == {1}


def test_head_gets_the_head_of_the_page_alone(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """The length is the page's, the body is not sent, and the connection stays usable."""
    head = fetch(web.url("plain"), method="HEAD")
    page = fetch(web.url("plain"))

    assert head.body == b""
    assert int(head.headers["Content-Length"]) == len(page.body)
    assert [record.bytes for record in web.log_of("plain")[-2:]] == [0, len(page.body)]


def test_other_methods_are_not_allowed(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """A web without forms."""
    reply = fetch(web.url("plain"), method="DELETE")

    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


def test_requests_sent_ahead_are_answered_in_order(web: DemoWeb) -> None:
    """More of them than a connection may have open, and one after they have been answered."""
    ahead = [
        b"HEAD /section-%d/page-%d.html HTTP/1.1\r\n\r\n" % (number % 7, number)
        for number in range(1, 201)
    ]

    with connect(web.host("late")) as connection:
        received = ask(connection, b"".join(ahead), answers=len(ahead))
        last = ask(connection, b"HEAD / HTTP/1.1\r\n\r\n")

    statuses = [line.split()[1] for line in received.split(b"\r\n") if line[:5] == b"HTTP/"]
    assert statuses == [b"200"] * 49 + [b"404"] * 151
    assert last.split()[1] == b"200"


def test_nothing_is_heard_after_the_last_request(web: DemoWeb) -> None:
    """A client that said it would close has nothing more to ask."""
    close, more = b"HEAD /last HTTP/1.1\r\nConnection: close\r\n\r\n", b"HEAD / HTTP/1.1\r\n\r\n"

    received = exchange(web.host("late"), close + more, answers=9)

    assert received.count(b"HTTP/1.1 ") == 1
    assert web.log_of("late")[-1].path == "/last"


def test_slow_answer_holds_back_those_behind_it(web: DemoWeb) -> None:
    """A queueing host answers two requests of one connection one after the other."""
    two = b"GET / HTTP/1.1\r\n\r\nGET /missing HTTP/1.1\r\nConnection: close\r\n\r\n"

    received = exchange(web.host("queue"), two, answers=9)

    assert [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404"]
    first, second = web.log_of("queue")
    assert first.answered_at is not None
    assert second.answered_at is not None
    assert first.t == second.t < first.answered_at <= second.answered_at


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"nonsense\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431")],
)
def test_malformed_request_is_refused_and_the_connection_closed(
    web: DemoWeb, sent: bytes, status: bytes
) -> None:
    """What follows such a head cannot be understood."""
    received = exchange(web.host("plain"), sent, answers=9)

    assert received.split()[1] == status
    assert b"Connection: close" in received


def test_page_is_compressed_for_those_who_accept_it(
    web: DemoWeb, fetch: Callable[..., Any]
) -> None:
    """And only for them; the log counts what was sent."""
    plain = fetch(web.url("packed"), Accept_Encoding="identity")
    packed = fetch(web.url("packed"), Accept_Encoding="gzip")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert [r.bytes for r in web.log_of("packed")[-2:]] == [len(plain.body), len(packed.body)]


def test_limit_is_enforced_and_the_log_knows_who_ignored_it(
    web: DemoWeb, fetch: Callable[..., Any]
) -> None:
    """Two pass, the third is asked to wait, and the fourth did not."""
    answers = [fetch(web.url("bucket")) for _ in range(3)]
    refused = web.log_of("bucket")[-1]
    answers.append(fetch(web.url("bucket")))

    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert refused.silent_until is not None
    assert refused.answered_at is not None
    asked_s = int(answers[2].headers["Retry-After"])
    assert 1 <= asked_s <= 5
    assert refused.silent_until - refused.answered_at == pytest.approx(asked_s, abs=0.5)
    assert len(inside_retry_after(web.log_of("bucket"), grace_s=0.0)) == 1


def test_accepted_answer_takes_as_long_as_the_model_says(
    web: DemoWeb, fetch: Callable[..., Any]
) -> None:
    """The servers really wait: no answer of this model takes less than a tenth of its mean."""
    fetch(web.url("date"))

    record = web.log_of("date")[0]

    assert record.answered_at is not None
    assert record.answered_at - record.t > 0.015


def test_retry_after_date_lies_ahead_of_the_date_header(
    web: DemoWeb, fetch: Callable[..., Any]
) -> None:
    """Both are today's, so that a client may use its own clock or the server's."""
    answers = [fetch(web.url("date", "/robots.txt")) for _ in range(2)]

    headers = answers[1].headers
    sent, until = (parsedate_to_datetime(headers[name]) for name in ("Date", "Retry-After"))
    assert answers[1].status == 429
    assert 4 <= (until - sent).total_seconds() <= 7
    assert abs(sent.timestamp() - time.time()) < 5


def test_third_request_at_once_is_refused(web: DemoWeb) -> None:
    """Two connections are served, the third hears 503 while they wait."""
    connections = [http.client.HTTPConnection(web.host("pair"), timeout=10) for _ in range(3)]

    for connection in connections:
        connection.request("GET", "/")
    statuses = [connection.getresponse().status for connection in connections]
    for connection in connections:
        connection.close()

    assert sorted(statuses) == [200, 200, 503]
    assert most_in_flight(web.log_of("pair")) == 3


def test_robots_txt_without_an_answer_closes_the_connection(web: DemoWeb) -> None:
    """The client sees an end, the log a status 0."""
    assert exchange(web.host("closed"), b"GET /robots.txt HTTP/1.1\r\n\r\n") == b""

    record = web.log_of("closed")[0]

    assert (record.path, record.status) == ("/robots.txt", 0)
    assert record.answered_at is not None


def test_host_that_is_out_accepts_and_says_nothing(web: DemoWeb) -> None:
    """What the model calls no connection is a closed one here."""
    assert exchange(web.host("dead"), b"GET / HTTP/1.1\r\n\r\n") == b""

    assert web.log_of("dead")[0].status == 0


def test_large_answer_arrives_whole(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """Ten megabytes of robots.txt."""
    reply = fetch(web.url("huge", "/robots.txt"))

    assert len(reply.body) == int(reply.headers["Content-Length"]) > 9_900_000


def test_sitemap_leads_to_pages_that_exist(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """robots.txt → index → gzipped file → page, all on this host."""
    robots = fetch(web.url("mapped", "/robots.txt")).body.decode()
    index = fetch(robots.partition("Sitemap: ")[2].strip()).body.decode()
    part = fetch(index.partition("<loc>")[2].partition("</loc>")[0])
    page = gzip.decompress(part.body).decode().rpartition("<loc>")[2].partition("</loc>")[0]

    assert part.headers["Content-Type"] == "application/gzip"
    assert fetch(page).status == 200


def test_endless_body_ends_only_with_the_client(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """It waits for a client that does not read, goes on when it does, and then serves others."""
    with connect(web.host("trap")) as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\n\r\n")
        sent = [-1, 0]
        while sent[-1] == 0 or sent[-1] > sent[-2]:
            sent += [record.bytes for record in web.log_of("trap") if record.path == "/endless"]
        received = 0
        while received < 2 * sent[-1]:
            received += len(connection.recv(65_536))

    assert fetch(web.url("trap")).status == 200
    endless = next(record for record in web.log_of("trap") if record.path == "/endless")
    assert endless.bytes > sent[-1]
    assert endless.answered_at is None


def test_canary_is_in_the_log_when_somebody_comes(web: DemoWeb, fetch: Callable[..., Any]) -> None:
    """It listens on 127.0.0.1, where a guarded crawler never goes."""
    assert not [record for record in web.log() if record.host == web.canary]

    fetch(f"http://{web.canary}/canary")

    assert [r.path for r in web.log() if r.host == web.canary] == ["/canary"]
    assert web.verdicts()[-1].broken[0] == "1 disallowed requests, the first /canary"


def test_hundred_hosts_start_and_answer(fetch: Callable[..., Any]) -> None:
    """One process, one port, a hundred addresses."""
    with DemoWeb(plain_sites(100, pages=3)) as web:
        statuses = {fetch(seed).status for seed in web.seeds()}

        assert statuses == {200}
        assert len({record.host for record in web.log()}) == 100


def test_log_file_agrees_with_the_log(tmp_path: Path, fetch: Callable[..., Any]) -> None:
    """Every record is in the file once the web has stopped."""
    path = tmp_path / "access.jsonl"

    with DemoWeb(plain_sites(2), log_path=path) as web:
        for seed in web.seeds() * 3:
            fetch(seed)
        records = web.log()

    assert len(records) == 6
    assert read_log(path) == records


def test_log_file_has_what_was_under_way_at_the_end(tmp_path: Path) -> None:
    """A request that never got an answer is a request all the same."""
    path = tmp_path / "access.jsonl"
    silent = Site(name="silent", robots=RobotsFile.HANGING)

    with DemoWeb([silent], log_path=path) as web:
        connection = http.client.HTTPConnection(web.hosts[0], timeout=10)
        connection.request("GET", "/robots.txt")
        arrived: list[Record] = []
        while not arrived:
            arrived = web.log()
    connection.close()

    assert read_log(path) == arrived
    assert (arrived[0].status, arrived[0].answered_at) == (0, None)


def test_leaving_the_block_stops_the_servers() -> None:
    """The process is gone, its port is free, and a second stop does nothing."""
    with DemoWeb(plain_sites(1)) as web:
        host = web.hosts[0]

    web.stop()

    with pytest.raises(ProcessLookupError):
        os.kill(web.pid, 0)
    with pytest.raises(ConnectionRefusedError):
        connect(host)
    with pytest.raises(DemoError, match="not running"):
        web.log()


def test_servers_end_when_their_parent_is_killed() -> None:
    """No orphan is left behind by a kill -9."""
    program = (
        "from mannerly.demo import DemoWeb, plain_sites\n"
        "with DemoWeb(plain_sites(1)) as web:\n"
        "    print(web.hosts[0], flush=True)\n"
        "    input()\n"
    )
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        netloc = parent.stdout.readline().strip()
        with connect(netloc) as connection:
            greeting = ask(connection, b"HEAD / HTTP/1.1\r\n\r\n")
            parent.send_signal(signal.SIGKILL)

            assert greeting.split()[1] == b"200"
            assert connection.recv(1) == b""


def test_taken_port_is_a_clear_error() -> None:
    """Not a traceback from another process."""
    with DemoWeb(plain_sites(1)) as web:
        port = int(web.hosts[0].partition(":")[2])

        with pytest.raises(DemoError, match="in use"), DemoWeb(plain_sites(1), port=port):
            pass


def test_web_never_leaves_loopback() -> None:
    """An address outside 127.0.0.0/8 is refused."""
    with pytest.raises(DemoError, match="leave"), DemoWeb(plain_sites(1), first_address="10.0.0.1"):
        pass
    with (
        pytest.raises(DemoError, match="leave"),
        DemoWeb(plain_sites(9), first_address="127.255.255.250"),
    ):
        pass


def test_names_must_differ() -> None:
    """A site is found by its name."""
    with pytest.raises(ValueError, match="name of its own"):
        DemoWeb([Site(name="twin"), Site(name="twin")])


def test_command_serves_and_judges(fetch: Callable[..., Any]) -> None:
    """It prints its hosts, and when it is stopped the table of what its log says."""
    with subprocess.Popen(
        [sys.executable, "-m", "mannerly.demo", "--port", "0", "--plain", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as command:
        assert command.stdout is not None
        urls = [command.stdout.readline().split()[0] for _ in range(2)]
        fetch(f"{urls[0]}robots.txt")
        command.send_signal(signal.SIGINT)
        told = command.stdout.read()

    assert command.returncode == 0
    assert "plain-0" in told
    assert "Smallest gap" in told


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux notes when bytes arrive")
def test_requests_are_logged_when_they_arrive_although_the_server_is_late() -> None:
    """A server that was stopped reads both requests at once; the gap between them stays."""
    with DemoWeb(plain_sites(1, pages=2)) as web:
        (host,) = web.hosts
        clients = [connect(host) for _ in range(2)]
        for client in clients:  # both are accepted before the server is stopped
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            client.recv(1)
        os.kill(web.pid, signal.SIGSTOP)
        sent_at = []
        for client in clients:
            client.sendall(b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
            sent_at.append(time.monotonic())
            time.sleep(0.3)
        os.kill(web.pid, signal.SIGCONT)
        while len(late := [record for record in web.log() if record.path == "/late"]) < 2:
            time.sleep(0.01)
        for client in clients:
            client.close()

    assert [record.t for record in late] == pytest.approx(sent_at, abs=0.05)
