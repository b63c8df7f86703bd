"""Read the header lines that curl wrote for one transfer: interim answers, the answer, trailers."""

from __future__ import annotations


def last_head(head: bytes) -> bytes:
    """Return the status line and the headers of the final answer, as they were received."""
    if head.find(b"\n\r\n") == len(head) - 3 and b"\n\n" not in head:
        return head  # there is no other block, as in nearly all answers
    blocks = head.replace(b"\r\n", b"\n").split(b"\n\n")
    last = len(blocks) - 2
    while last > 0 and not blocks[last].startswith(b"HTTP/"):
        last -= 1
    return blocks[max(last, 0)]


def parse_headers(head: bytes) -> dict[str, str] | None:
    """Return the headers of the final answer, without interim ones (1xx) and without trailers.

    None if the answer ended within its headers.
    """
    # Latin-1 maps every byte, and the blocks are cut at line feeds only: `splitlines` would also
    # cut at control characters, which a hostile value may hold.
    blocks = head.decode("latin-1").replace("\r\n", "\n").split("\n\n")
    last = len(blocks) - 2
    while last >= 0 and not blocks[last].startswith("HTTP/"):
        last -= 1
    if last < 0:
        return None
    headers: dict[str, str] = {}
    for line in blocks[last].split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    headers.pop("set-cookie", None)
    return headers
