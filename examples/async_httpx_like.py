"""asyncio: ten tasks share one politeness around a client of your choice.

    python examples/async_httpx_like.py

`fetch` stands for any asynchronous client. Nothing else of it is known here: the slot is taken
before the request and told what came back, and all tasks together keep the host's pace.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from local_server import limited_server

from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness


async def fetch(url: str) -> tuple[int, dict[str, str]]:
    """One GET request, by hand: the status and the headers."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"GET {place.path} HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    writer.close()
    await writer.wait_closed()
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    return int(head[0].split()[1]), headers


async def visit(politeness: AsyncPoliteness, url: str) -> None:
    """A page at the host's pace; a refusal is obeyed by everybody, and the page asked for again."""
    status = 0
    while status != 200:
        async with politeness.slot(url) as slot:
            slot.sent()
            status, headers = await fetch(url)
            slot.report(status=status, headers=headers)
        print(f"{status} after waiting {slot.waited_s:.2f} s")


async def main() -> None:
    """Ten pages from a server that allows one every 0.2 s, which nobody told us."""
    with limited_server(gap_s=0.2) as server:
        async with AsyncPoliteness(Settings(start_delay_s=0.25)) as politeness:
            await asyncio.gather(*(visit(politeness, server.url) for _ in range(10)))
        print(f"served {server.served}, refused {server.refused}")


asyncio.run(main())
