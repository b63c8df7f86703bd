"""Log lines on stderr: text for people, JSON for machines; nothing global is configured.

The event is always a word of ours; whatever was crawled may only be a value, and comes out escaped
in both forms. A logging package would be imported for 0.1 s to write a line every ten.
"""

from __future__ import annotations

from datetime import UTC, datetime

from .terminal import note, safe_term


def log(log_format: str, event: str, **fields: object) -> None:
    """Write one line, as `text` or as `json`."""
    now = datetime.now(UTC)
    line = _as_json(now, event, fields) if log_format == "json" else _as_text(now, event, fields)
    note(line)


def _as_json(now: datetime, event: str, fields: dict[str, object]) -> str:
    import msgspec

    # Our own words last: no field may stand in for them.
    said = {**fields, "event": event, "level": "info", "timestamp": now}
    return msgspec.json.encode(said).decode()


def _as_text(now: datetime, event: str, fields: dict[str, object]) -> str:
    """`2026-11-15T20:51:03Z Waiting: 2 hosts …  pages=7`: the reason reads as a sentence."""
    reason = fields.pop("reason", None)
    head = event if reason is None else f"{event}: {reason}"
    values = " ".join(f"{name}={safe_term(str(value))}" for name, value in fields.items())
    return f"{now:%Y-%m-%dT%H:%M:%SZ} {head}  {values}"
