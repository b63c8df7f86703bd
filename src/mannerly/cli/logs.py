"""Log lines on stderr: text for people, JSON for machines; nothing global is configured.

The event is always a word of ours; whatever was crawled may only be a value, and comes out escaped
in both forms.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .terminal import safe_term

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger


def logger(log_format: str) -> Any:
    """A logger that writes `text` or `json` lines."""
    import msgspec
    import structlog

    if log_format == "json":
        renderer: Any = structlog.processors.JSONRenderer(
            serializer=lambda value, **_: msgspec.json.encode(value).decode()
        )
    else:
        renderer = _as_text
    return structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
    )


def _as_text(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """`2026-11-15T20:51:03Z Waiting: 2 hosts …  pages=7`: the reason reads as a sentence."""
    when = str(event.pop("timestamp"))[:19] + "Z"
    event.pop("level")
    head = str(event.pop("event"))
    if "reason" in event:
        head += f": {event.pop('reason')}"
    values = " ".join(f"{name}={safe_term(str(value))}" for name, value in event.items())
    return f"{when} {head}  {values}"
