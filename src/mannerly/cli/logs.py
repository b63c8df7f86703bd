"""Write log lines to stderr, as text or JSON. Nothing global is configured.

The event is always a fixed word; crawled text may only be a value, and is escaped in both forms. No
logging package is used: importing one takes 0.1 s, for a line every ten seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime

from .terminal import json_escaped, note, safe_term


def log(log_format: str, event: str, **fields: object) -> None:
    """Write one log line, as `text` or as `json`."""
    now = datetime.now(UTC)
    line = _as_json(now, event, fields) if log_format == "json" else _as_text(now, event, fields)
    note(line)


def _as_json(now: datetime, event: str, fields: dict[str, object]) -> str:
    import msgspec

    # These last, so that no field can replace them.
    said = {**fields, "event": event, "level": "info", "timestamp": now}
    return json_escaped(msgspec.json.encode(said).decode())


def _as_text(now: datetime, event: str, fields: dict[str, object]) -> str:
    """Return a line like `2026-11-15T20:51:03Z Waiting: 2 hosts …  pages=7`."""
    reason = fields.pop("reason", None)
    head = event if reason is None else f"{event}: {reason}"
    values = " ".join(f"{name}={safe_term(str(value))}" for name, value in fields.items())
    return f"{now:%Y-%m-%dT%H:%M:%SZ} {head}  {values}"
