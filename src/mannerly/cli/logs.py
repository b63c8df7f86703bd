"""Make log lines, as text or JSON. Nothing global is configured.

    2026-11-17T14:50:56Z Running pages=251620 per_second=31.4 queued=154702 …

The event is always a fixed word; crawled text may only be a value, and is escaped in both forms. No
logging package is used: importing one takes 0.1 s, for a line every ten seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime

from .terminal import json_escaped, note, safe_term


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
