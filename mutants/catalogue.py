"""Every mutant: promise by promise, then row by row of docs/requirements.md."""

from __future__ import annotations

from .bounded import BOUNDED
from .failed import FAILED
from .fleets import FLEETS
from .grown import GROWN
from .left import LEFT
from .payloads import PAYLOADS
from .polite import POLITE
from .readable import READABLE
from .row_frontier import FRONTIER
from .row_pacing import PACING
from .row_trouble import TROUBLE
from .row_watch import WATCH
from .safe import SAFE
from .served import SERVED
from .shared import SHARED
from .spiders import SPIDERS
from .whole import WHOLE

MUTANTS = (
    *WHOLE,
    *POLITE,
    *SHARED,
    *FLEETS,
    *BOUNDED,
    *SAFE,
    *LEFT,
    *PAYLOADS,
    *SPIDERS,
    *FAILED,
    *GROWN,
    *READABLE,
    *SERVED,
    *PACING,
    *TROUBLE,
    *FRONTIER,
    *WATCH,
)
