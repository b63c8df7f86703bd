"""Log lines, as text or JSON; and what happens in a crawl as such lines.

    2026-11-17T14:50:56Z Running pages=251620 per_second=31.4 queued=154702 …
    Slowed host=forum.example.org from_per_second=5.2 to_per_second=4.0 refusals=2
    Waiting 5.0 s before request to https://library.example.edu/a

The event is always a fixed word; crawled text may only be a value, and is escaped in both forms. No
logging package is used: importing one takes 0.1 s, for a line every ten seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mannerly.crawler import events as crawl_events
from mannerly.politeness import events as polite

from .terminal import json_escaped, note, safe_term

if TYPE_CHECKING:
    from mannerly.crawler.events import Event
    from mannerly.crawler.runtime.event_batches import EventBatch


def log(log_format: str, event: str, **fields: object) -> None:
    """Write one log line to stderr, as `text` or as `json`."""
    note(line_of(log_format, event, **fields))


def line_of(log_format: str, event: str, **fields: object) -> str:
    """Return a log line with the present time."""
    now = datetime.now(UTC)
    return _as_json(now, event, fields) if log_format == "json" else _as_text(now, event, fields)


def _as_json(now: datetime, event: str, fields: dict[str, object]) -> str:
    import msgspec

    # These last, so that no field can replace them.
    said = {**fields, "event": event, "level": "info", "timestamp": now}
    return json_escaped(msgspec.json.encode(said).decode())


def _as_text(now: datetime, event: str, fields: dict[str, object]) -> str:
    values = [f"{name}={_value(value)}" for name, value in fields.items()]
    return " ".join([f"{now:%Y-%m-%dT%H:%M:%SZ}", event, *values])


def _value(value: object) -> str:
    """Return a value; one with spaces or quotes is quoted, so that a line can be split."""
    text = safe_term(str(value))
    if text and not any(each in text for each in ' "='):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# Not printed above a live block unless asked for: the block or the summary shows it.
ORDINARY = frozenset({polite.Slowed, polite.Closed, crawl_events.HostGivenUp})
_HOSTS = 10_000  # whose pace is remembered, to say what it was before


class EventLog:
    """Words for events. It remembers the last pace of each host."""

    def __init__(self, log_format: str, *, leaves_out: frozenset[type] = frozenset()) -> None:
        self._format = log_format
        self._leaves_out = leaves_out
        self._paces: dict[str, float] = {}

    def lines(self, batch: EventBatch) -> list[str]:
        """Return a line for each event."""
        lines = [self._line(event) for event in batch.events if type(event) not in self._leaves_out]
        if batch.left_out:
            lines.append(line_of(self._format, "Omitted", events=batch.left_out))
        return [line for line in lines if line]

    def _line(self, event: Event) -> str:
        said = self._said(event)
        return line_of(self._format, said[0], **said[1]) if said is not None else ""

    def _said(self, event: Event) -> tuple[str, dict[str, object]] | None:
        match event:
            case polite.Slowed(host, _, delay_s, streak):
                return "Slowed", {**self._change(host, delay_s), "refusals": streak}
            case polite.SpedUp(host, _, delay_s):
                return "Sped-up", self._change(host, delay_s)
            case polite.Probing(host, _, delay_s):
                return "Probing", self._change(host, delay_s)
            case polite.Recovered(host, _, delay_s):
                return "Recovered", self._change(host, delay_s)
            case crawl_events.HostWaits(host, url, wait_s, reason):
                return self._waiting(host, url, wait_s, reason)
            case crawl_events.HostGivenUp(host, reason):
                from mannerly.crawler.inspection.reasons import error_words

                return "Given-up", {"host": host, "reason": error_words(reason)}
            case crawl_events.SitemapsLimited(host, sitemaps, size):
                return "Sitemaps-limited", {"host": host, "sitemaps": sitemaps, "bytes": size}
            case crawl_events.LoopStalled(took_s):
                return "Loop-stalled", {"for_s": _s(took_s)}
        return self._warning(event)

    def _warning(self, event: Event) -> tuple[str, dict[str, object]] | None:
        match event:
            case polite.Opened(host, at, until, times):
                fields: dict[str, object] = {"host": host, "for_s": _s(until - at), "times": times}
                return "Breaker-opened", fields
            case polite.Closed(host):
                return "Breaker-closed", {"host": host}
            case polite.Throttled(host, _, status, retry_after_s):
                asked = {} if retry_after_s is None else {"retry_after_s": _s(retry_after_s)}
                return "Refused", {"host": host, "status": status, **asked}
            case polite.Parked(host, at, until):
                return "Asked-to-wait", {"host": host, "for_s": _s(until - at)}
            case polite.LongCrawlDelay(host, _, asked_s, delay_s):
                return "Long-crawl-delay", {"host": host, "asked_s": asked_s, "kept_s": delay_s}
            case polite.Stalled(host, _, throttles):
                return "Stalled", {"host": host, "refusals": throttles}
            case polite.Revived(host):
                return "Revived", {"host": host}
            case polite.ConcurrencyChanged(host, _, concurrency, previous):
                return "In-flight-limit", {"host": host, "from": previous, "to": concurrency}
        return None

    def _waiting(
        self, host: str, url: str, wait_s: float, reason: str
    ) -> tuple[str, dict[str, object]]:
        if self._format == "json":
            fields = {"host": host, "url": url, "wait_s": _s(wait_s), "reason": reason}
            return "Waiting", fields
        return f"Waiting {wait_s:.1f} s before request to {safe_term(url)}", {}

    def _change(self, host: str, delay_s: float) -> dict[str, object]:
        pace = 1.0 / delay_s if delay_s else 0.0
        before = self._paces.pop(host, None)
        if len(self._paces) >= _HOSTS:
            del self._paces[next(iter(self._paces))]
        self._paces[host] = pace
        fields: dict[str, object] = {"host": host}
        if before is not None:
            fields["from_per_second"] = _figure(before)
        return {**fields, "to_per_second": _figure(pace), "delay_s": _figure(delay_s)}


def _s(seconds: float) -> float:
    return round(seconds, 1)


def _figure(number: float) -> float:
    return float(f"{number:.3g}")
