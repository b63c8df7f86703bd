"""Find out whether doubtful answers of a host belong to their pages or to the pace.

A 403 may mean that its page is forbidden, or that the requests come too fast; a page that is the
same for several URLs may be a soft 404, or a challenge. One such answer alone does not say which,
so it stays undecided, and its page waits until the host has shown more:

    observed                                              speaks for
    ---------------------------------------------------   ------------------------------------
    the same page is given later                          the pace: that is a proof
    other pages are given meanwhile, this one is refused  the page
    different pages are refused one after the other, and  the pace, if that many forbidden pages
    a single trial after a pause is accepted              in a row would be unlikely
    answers come again soon after the host was slowed     the page
    the body is that of an answer that was decided        what that one was

`leaning` adds this up: above 0 every further such answer is a refusal, at `SURE` and below it is
its page's own. A different page in a row stops the host: only single trials go, after 1, 2, 4 … s,
because requests into a ban prolong it. The samples of such a run are held, and a strategy learns
them late, as refusals, or never. A page waits for at most one more request, two on a host that is
known to refuse so. Memory: `PAGES` pages and `BODIES` bodies.

Without a URL every request counts as another page; `GUESSES` times some of them close together are
taken for refusals, and what follows decides: slowing down has helped, or not.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from .model import NEVER

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .model import Instant, Sample
    from .pace.base import Lesson

PROOF = 3  # a page that is given later outweighs three that are not
SURE = -3  # three pages that stayed refused while others were given
RUN = 2  # different pages in a row: at 10 % forbidden pages a chance of 1 %
UNLIKELY, UNLIKELY_BODY = 1e-3, 1e-6  # of a run on a host with forbidden pages, and of a known body
PATIENCE_S, PATIENCE_BODY_S, PATIENCE_NEW_S = 63.0, 15.0, 7.0  # 6, 4 and 3 trials without success
PATIENCE_GIVEN_S = 63.0  # 6 trials, for pages with one body: a site may have such pages
PATIENCE_PROVED_S = 600.0  # on a host that is known to refuse so
NEW = 20  # successes after which a host is not new any more
SOON, QUIET = 20, 40  # successes: slowing down has not helped, has helped
CLOSE = 2.5  # doubtful answers among the last 20, about
GUESSES = 1
MANY = 6.0  # of the last 20: so many forbidden pages are rarer than a limit
PAGES, BODIES, HELD = 64, 8, 16


class Meaning(Enum):
    """The meaning of a doubtful answer: it belongs to the pace, or to its page."""

    UNDECIDED = "undecided"
    PACE = "pace"
    PAGE = "page"


UNDECIDED, PACE, PAGE = Meaning


class _Waiting:
    """A page that waits for the decision."""

    __slots__ = ("asked", "body", "given")

    def __init__(self, body: Hashable, given: int) -> None:
        self.body = body
        self.given = given  # successes of the host when the page was refused last
        self.asked = 0  # how often it was asked for again, when that counts


class Doubts:
    """The doubtful answers of one host, and what they are thought to mean."""

    __slots__ = (
        "_bodies",
        "_forbidden",
        "_given",
        "_guesses",
        "_is_patience_over",
        "_leaning",
        "_quiet",
        "_quiet_before",
        "_recent",
        "_run",
        "_run_at",
        "_run_body",
        "_trials",
        "_waiting",
        "before",
        "held",
        "hold_until",
    )

    def __init__(self) -> None:
        self._leaning = 0
        self._bodies: dict[Hashable, int] = {}  # the same, for one body
        self._waiting: dict[Hashable, _Waiting] = {}
        self._given = self._forbidden = 0  # successes; answers that were their pages' own
        self._quiet = self._quiet_before = 0  # successes since the latest run, and before it
        self._recent = 0.0  # doubtful answers lately
        self._guesses = 0
        self._run = 0  # different pages since the latest success
        self._run_at: Instant = NEVER
        self._run_body: Hashable = None  # the body that all its pages had, with status 200
        self._trials = 0
        self._is_patience_over = False
        self.hold_until: Instant = NEVER  # only single trials go, from then on; NEVER: no hold
        self.held: list[Sample] = []
        self.before: Lesson | None = None  # what the strategy knew before it learned of refusals

    @property
    def is_holding(self) -> bool:
        """Return whether at most one request may be in flight, until one succeeds."""
        return self.hold_until > NEVER

    def knows(self, body: Hashable) -> bool:
        """Return whether an answer with this body was a refusal."""
        return self._bodies.get(body, 0) > 0

    # ------------------------------------------------------------------ a doubtful answer

    def weigh(
        self, page: Hashable, body: Hashable, sample: Sample, given: int, *, is_given: bool
    ) -> Meaning:
        """Return what a doubtful answer means. `is_given`: it looks like a page, with status 200.

        `page` and `body` identify URL and body; None: unknown. `given` counts the host's successes.
        """
        now = sample.done_at
        self._given = max(self._given, given)
        waiting = None if page is None else self._waiting.get(page)
        if waiting is None:
            if not self._run:
                self._run_at, self._quiet_before, self._quiet = now, self._quiet, 0
                self._run = is_given  # the page before it had the same body
            self._run += 1
            self._run_body = body if is_given else None
        known = 0 if body is None else self._bodies.get(body, 0)
        if is_given and known < 0:  # a page that is the same for several URLs
            self._waiting.pop(page, None)
            return PAGE
        leaning = known if is_given else known or self._leaning
        self._recent += 1.0
        is_own = self._is_patience_over and not is_given
        if is_own or (waiting is not None and self._is_own(waiting, leaning)):
            return self._own(page, body)
        if leaning > 0 and not self._is_unlike(body, known, waiting):
            self._wait(page, body, waiting)
            if now - self._run_at >= (PATIENCE_PROVED_S if leaning >= PROOF else PATIENCE_S):
                self._lose_patience()
            return PACE
        is_frequent = page is None and self._recent >= MANY
        if leaning <= (-1 if known else SURE) and not (is_frequent or self._is_unlikely(known)):
            self._forbidden += 1
            return PAGE
        if self._is_guess(page, is_given=is_given):
            self._wait(page, body, waiting)
            return PACE
        self._wait(page, body, waiting)
        if len(self.held) < HELD:
            self.held.append(sample)
        if self._run >= RUN and sample.sent_at >= self.hold_until:
            self._hold(known, now, body if is_given else None)
        return UNDECIDED

    def _hold(self, known: int, now: Instant, given: Hashable) -> None:
        """Let the next trial wait, or give up waiting. `given`: the body of a page, or None."""
        patience_s = PATIENCE_BODY_S if known < 0 else PATIENCE_S
        if given is not None:
            patience_s = PATIENCE_GIVEN_S
        elif self._given < NEW:
            patience_s = PATIENCE_NEW_S
        if now - self._run_at >= patience_s:
            self._lose_patience()
            if given is not None:
                self._learn_body(given, -1)
        else:
            self.hold_until = now + 2.0**self._trials
            self._trials += 1

    def _lose_patience(self) -> None:
        """Take all answers for those of their pages until one is given."""
        self._is_patience_over = True
        self._leaning = SURE
        self.hold_until = NEVER
        self.held.clear()

    def _is_unlike(self, body: Hashable, known: int, waiting: _Waiting | None) -> bool:
        """Return whether this answer differs from those that were refusals."""
        if waiting is not None:
            return self._run <= 1
        return body is not None and not known and any(each > 0 for each in self._bodies.values())

    def _is_own(self, waiting: _Waiting, leaning: int) -> bool:
        """Return whether a page that was asked for again is refused for its own sake."""
        others = self._given > waiting.given
        if self._run > 1 or not (others or leaning <= 0):
            return False
        waiting.asked += 1
        waiting.given = self._given
        return waiting.asked >= (1 if leaning <= 0 else 2)

    def _own(self, page: Hashable, body: Hashable) -> Meaning:
        """Note that an answer was its page's own."""
        self._waiting.pop(page, None)
        self._forbidden += 1
        self._leaning = max(SURE, self._leaning - 1)
        if body is not None:
            self._learn_body(body, min(0, self._bodies.get(body, 0)) - 1)
        if not self._waiting and not self._run:
            self.held.clear()
        return PAGE

    def _wait(self, page: Hashable, body: Hashable, waiting: _Waiting | None) -> None:
        if page is None or waiting is not None:
            return
        if len(self._waiting) >= PAGES:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[page] = _Waiting(body, self._given)

    def _learn_body(self, body: Hashable, leaning: int) -> None:
        if len(self._bodies) >= BODIES and body not in self._bodies:
            del self._bodies[next(iter(self._bodies))]
        self._bodies[body] = leaning

    def _is_unlikely(self, known: int) -> bool:
        """Return whether so many forbidden pages in a row are hard to believe."""
        share = (self._forbidden + 1.0) / (self._forbidden + self._given + 2.0)
        return share**self._run < (UNLIKELY_BODY if known < 0 else UNLIKELY)

    def _is_guess(self, page: Hashable, *, is_given: bool) -> bool:
        """Return whether to take this answer for a refusal, and see whether that helps."""
        if page is not None or is_given or self._recent < CLOSE:
            return False
        if self._guesses >= GUESSES and self._recent < MANY:
            return False
        self._guesses += 1
        self._leaning = 2
        return True

    # ------------------------------------------------------------------ a success

    def given(self, page: Hashable, body: Hashable, now: Instant) -> Meaning | None:
        """Note a page that was given; return a decision about earlier answers, if it brings one.

        PACE: the held ones were refusals; PAGE: those that were taken for refusals were none.
        """
        waiting = self._waiting.get(page) if page is not None and self._waiting else None
        decision: Meaning | None = None
        if waiting is not None and waiting.body is not None and waiting.body == body:
            self._own(page, body)  # a page like others, but its own
        elif waiting is not None:
            del self._waiting[page]
            decision = PACE if self.held else None
            self._leaning = PROOF
            if waiting.body is not None:
                self._learn_body(waiting.body, PROOF)
            if not self._run and self.held:  # the host has given others meanwhile
                late = self.held[-1]
                late.sent_at = late.done_at = now
                self.held = [late]
        elif self._trials > 1 and self._run > RUN and not self._is_patience_over:
            decision = PACE
            self._leaning = min(PROOF, max(1, self._leaning + 1))
            if self._run_body is not None:
                self._learn_body(self._run_body, PROOF)
        elif self._run and page is None and self._leaning > 0:
            decision = self._judge_guess()
        elif not self._run and self.held and not self._waiting:
            self.held.clear()
        self._given += 1
        self._quiet += 1
        self._recent *= 0.95
        if self._quiet == QUIET and self._leaning > 0:
            self._leaning = min(PROOF, self._leaning + 1)
            self._guesses = 0
        if self._run:
            self._run = self._trials = 0
            self.hold_until = NEVER
            self._is_patience_over = False
            if decision is not PACE:
                del self.held[:-1]  # a later proof needs the latest only
        return decision

    def _judge_guess(self) -> Meaning | None:
        """Weigh a run that has ended on a host that was slowed down for such answers."""
        if self._run > RUN:
            self._leaning = min(PROOF, self._leaning + 1)
        elif self._quiet_before < SOON:
            self._leaning -= 1
        if self._leaning > 0:
            return None
        self._leaning = SURE if self._guesses >= GUESSES else 0
        return PAGE
