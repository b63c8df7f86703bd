"""A network of its own with a lying DNS server, web servers, and the real command in it.

Run as `unshare -rmn python lying_dns.py FOLDER SEED-URL… OPTION…`: within its own namespaces this
process may bring a loopback up, bind the ports 53 and 80, and put its own /etc/resolv.conf in
place. It crawls, and prints as JSON what was asked for and what came back. Names say what they get:

    good.example      127.0.0.2, always
    nx.example        NXDOMAIN
    servfail.example  SERVFAIL
    silent.example    no answer
    flapping.example  SERVFAIL twice of three times
    many.example      1,000 addresses, over TCP
    rebinding.example 127.0.0.2 and 127.0.0.3 in turn, with a time to live of 0
    mixed.example     both in one answer
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

ALLOWED, FORBIDDEN = "127.0.0.2", "127.0.0.3"
PAGES = 12
NXDOMAIN, SERVFAIL = 3, 2
_BIND = 4096  # MS_BIND of mount(2)
_UP, _GET, _SET = 1, 0x8913, 0x8914  # IFF_UP, SIOCGIFFLAGS, SIOCSIFFLAGS

questions: Counter[str] = Counter()
visits: list[tuple[str, str, str]] = []  # (address that was connected, host, path)
_turns = count()


def answer(name: str) -> tuple[int, list[str]] | None:
    """Return the code and the addresses for a name; None: say nothing."""
    turn = next(_turns)
    match name.partition(".")[0]:
        case "good":
            return 0, [ALLOWED]
        case "servfail":
            return SERVFAIL, []
        case "silent":
            return None
        case "flapping":
            return (0, [ALLOWED]) if questions[name] % 3 == 0 else (SERVFAIL, [])
        case "many":
            return 0, [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(1000)]
        case "rebinding":
            return 0, [(ALLOWED, FORBIDDEN)[turn % 2]]
        case "mixed":
            return 0, [FORBIDDEN, ALLOWED] if turn % 2 else [ALLOWED, FORBIDDEN]
    return NXDOMAIN, []


def reply(question: bytes, *, is_tcp: bool) -> bytes | None:
    """Return the answer to a question, as the protocol writes it."""
    at, labels = 12, []
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind, asked = struct.unpack(">H", question[at + 1 : at + 3])[0], question[12 : at + 5]
    name = ".".join(labels).lower()
    if kind != 1:  # not an IPv4 address: there is none
        found: tuple[int, list[str]] | None = (0, []) if name != "silent.example" else None
    else:
        questions[name] += 1
        found = answer(name)
    if found is None:
        return None
    code, addresses = found
    is_cut = len(addresses) > 20 and not is_tcp
    rows = b"".join(
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(each)
        for each in ([] if is_cut else addresses)
    )
    flags = 0x8180 | code | (0x0200 if is_cut else 0)
    head = struct.pack(
        ">HHHHHH", *struct.unpack(">H", question[:2]), flags, 1, len(rows) // 16, 0, 0
    )
    return head + asked + rows


def serve_udp(server: socket.socket) -> None:
    while True:
        question, client = server.recvfrom(4096)
        said = reply(question, is_tcp=False)
        if said is not None:
            server.sendto(said, client)


def serve_tcp(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        with connection:
            size = struct.unpack(">H", connection.recv(2))[0]
            said = reply(connection.recv(size), is_tcp=True)
            if said is not None:
                connection.sendall(struct.pack(">H", len(said)) + said)


class Page(BaseHTTPRequestHandler):
    """Twelve pages in a row on every host."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = self.connection.getsockname()[0]
        visits.append((address, self.headers["Host"], self.path))
        number = int(self.path[1:] or 0) if self.path != "/robots.txt" else PAGES
        body = f"<a href=/{number + 1}>next</a>".encode() if number < PAGES - 1 else b"end"
        self.send_response(200 if number < PAGES else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")  # so that each page needs its name again
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def prepare(folder: Path) -> None:
    """Bring the loopback up, and let names be asked for here."""
    with socket.socket() as probe:
        flags = struct.unpack("16sh", fcntl.ioctl(probe, _GET, struct.pack("16sh", b"lo", 0)))[1]
        fcntl.ioctl(probe, _SET, struct.pack("16sh", b"lo", flags | _UP))
    texts = {
        "resolv.conf": "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n",
        "nsswitch.conf": "hosts: files dns\n",
    }
    libc = ctypes.CDLL(None, use_errno=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
        source, target = str(folder / name).encode(), f"/etc/{name}".encode()
        if libc.mount(source, target, None, _BIND, None):
            raise OSError(ctypes.get_errno(), f"mount {target!r}")


def start() -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.53", 53))
    tcp = socket.create_server(("127.0.0.53", 53))
    web = ThreadingHTTPServer(("0.0.0.0", 80), Page)
    for target, arguments in ((serve_udp, (udp,)), (serve_tcp, (tcp,)), (web.serve_forever, ())):
        threading.Thread(target=target, args=arguments, daemon=True).start()


def main() -> None:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    prepare(folder)
    start()
    data_dir, target = folder / "crawl", folder / "pages.jsonl"
    command = [sys.executable, "-P", "-m", "mannerly"]
    crawl = subprocess.run(
        [*command, "crawl", *words, "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    export = [*command, "export", str(data_dir), "-o", str(target), "--include-skipped"]
    subprocess.run(export, capture_output=True, timeout=60, check=False)
    records = [json.loads(line) for line in target.read_text().splitlines()]
    said = {"code": crawl.returncode, "err": crawl.stderr, "records": records}
    print(json.dumps(said | {"visits": visits, "questions": questions}))


if __name__ == "__main__":
    main()
