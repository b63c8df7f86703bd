"""The answers of one host: what follows from them.

An answer is classified, its headers are obeyed, and the strategy learns from it. The strategy gets
a `Sample` and never sees a requested limit, so it cannot break one.
`blocked_until` never decreases (`limits`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from . import events
from .bounds import LONGEST_WAIT_S
from .classify import FORBIDDEN, SUCCESS, classify
from .doubts import PACE, PAGE, Doubts
from .errors import PermitError
from .gate import HostGate
from .headers import RELEVANT, lowered, rate_limits, retry_after_s
from .model import NEUTRAL, OK, OVERLOAD, THROTTLE, UNDECIDED, Reason, Sample
from .pace.base import Effect, PaceChange

if TYPE_CHECKING:
    from .model import Instant, Outcome, Permit, Response

# For these statuses, Retry-After is searched for in any spelling; otherwise in the usual ones only.
_MAY_CARRY_RETRY_AFTER = frozenset({403, 429, 503})
# A 403 within this time after a success may be a refusal (docs/adr/0005): see `doubts`.
BELIEVED = 3  # refusals in a row after whose Retry-After a request went
SUCCESS_IS_RECENT_S = 60.0


class HostAnswers(HostGate):
    """One host, as far as it learns from its answers."""

    __slots__ = ()

    def report(self, permit: Permit, response: Response, now: Instant) -> Outcome:
        """Settle a permit with its response, and learn from it."""
        if permit.is_settled:
            raise PermitError(f"{permit!r} was already reported or cancelled")
        status, latency_s, headers = response.status, response.latency_s, response.headers
        if not 0.0 <= latency_s < inf:
            raise ValueError(f"latency_s must be finite and at least 0, not {latency_s!r}")
        relevant: dict[str, str] | None = None
        retry_s: float | None = None
        if headers and (not RELEVANT.isdisjoint(headers) or status in _MAY_CARRY_RETRY_AFTER):
            relevant = lowered(headers)
            retry_s = _retry_after(relevant, response)
        is_usual = status == SUCCESS and retry_s is None
        outcome = OK if is_usual else classify(response, has_retry_after=retry_s is not None)
        if self._is_doubtful(outcome, response):
            outcome = self._weigh(permit, outcome, response, now)
        permit.is_settled = True
        self.in_flight -= not permit.is_abandoned
        if relevant is not None:
            self._apply_headers(relevant, retry_s, response, now)
        if permit.is_abandoned:
            self._reschedule()
            return outcome  # it came too late to learn from it, but its headers are obeyed
        if outcome is OK:
            self.last_ok_at = now
            if self.health is None:
                if relevant is None and self.requests == 1:
                    return outcome  # see __init__: nothing to learn yet
                if self.strategy is None and self._can_defer_sample(permit):
                    self._deferred = Sample(OK, permit.sent_at, now, latency_s, permit.in_flight)
                    return outcome
            elif self.health.doubts is not None:
                self._note_given(self.health.doubts, response, now)
        self._learn(permit, outcome, retry_s, response, now)
        return outcome

    def _can_defer_sample(self, permit: Permit) -> bool:
        """Return whether learning from this success now could change neither delay nor limit."""
        return (
            self._shared.can_defer
            and permit.in_flight == 1
            and self._deferred is None
            and self.stats is None
            and self.requested.quota is None
        )

    # ------------------------------------------------------------------ doubtful answers

    def _is_doubtful(self, outcome: Outcome, response: Response) -> bool:
        """Return whether an answer may be a refusal: a 403, or a page like one or like a row."""
        body, stats, health = response.body_digest, self.stats, self.health
        if outcome is not OK or body is None:
            return outcome is NEUTRAL and response.status == FORBIDDEN
        if stats is not None and stats.repeats(response.url, body):
            return True
        return health is not None and health.doubts is not None and health.doubts.knows(body)

    def _weigh(self, permit: Permit, outcome: Outcome, response: Response, now: Instant) -> Outcome:
        """Return what a 403 or a page like the one before is: the page's own, or a refusal."""
        health, page, body = self.health, response.url, response.body_digest
        doubts = None if health is None else health.doubts
        is_holding = doubts is not None and doubts.is_holding
        if outcome is NEUTRAL and now - self.last_ok_at > SUCCESS_IS_RECENT_S and not is_holding:
            return NEUTRAL
        if doubts is None:
            doubts = self._ensure_health().doubts = Doubts()
        sample = Sample(
            THROTTLE,
            permit.sent_at,
            now,
            response.latency_s,
            permit.in_flight,
            None,
            response.status,
        )
        was_holding = doubts.is_holding
        given = 0 if self.stats is None else self.stats.samples
        verdict = doubts.weigh(page, body, sample, given, is_given=outcome is OK)
        if doubts.is_holding:
            self.own_requested().block(doubts.hold_until, Reason.BACKOFF)
        if doubts.is_holding or was_holding:
            self._reschedule()
        if verdict is PAGE:
            return outcome
        if verdict is PACE:
            self._learn_refusals(doubts)
            return THROTTLE
        return UNDECIDED

    def _note_given(self, doubts: Doubts, response: Response, now: Instant) -> None:
        """Note a success: it may end a hold, and it may prove that pages were refused."""
        was_holding = doubts.is_holding
        decision = doubts.given(response.url, response.body_digest, now)
        if decision is PACE:
            self._learn_refusals(doubts)
        elif decision is PAGE and self.strategy is not None and doubts.before is not None:
            self.strategy.recall(doubts.before, 1.0)
            self._reschedule()
        if was_holding:
            self._reschedule()

    def _learn_refusals(self, doubts: Doubts) -> None:
        """Let the strategy learn from answers that turned out to be refusals."""
        held, doubts.held = doubts.held, []
        if not held:
            return
        strategy, stats = self.strategy, self.stats
        if strategy is None or stats is None:
            strategy, stats = self._begin_learning()
        self._ensure_health().throttles += len(held)
        doubts.before = doubts.before or strategy.lesson()
        for sample in held:
            effect = strategy.on_sample(sample, stats)
            if effect is not None:
                self._apply_effect(effect, None, sample.done_at)
        self._reschedule()

    # ------------------------------------------------------------------ headers

    def _apply_headers(
        self, headers: dict[str, str], retry_s: float | None, response: Response, now: Instant
    ) -> None:
        """Apply Retry-After and RateLimit headers."""
        requested = self.own_requested()
        if retry_s is not None:
            # The jitter only adds, so that many workers do not start at the same instant.
            jitter_s = self._shared.rng.uniform(0.0, min(1.0, 0.1 * retry_s))
            requested.block(now + retry_s + jitter_s, Reason.RETRY_AFTER)
            self._shared.mark_dirty(self)
            self._park_if_long(now)
            if retry_s >= LONGEST_WAIT_S:
                self.give_up("its Retry-After is 100 years or longer", now)
        if self._shared.settings.rate_limit_headers:
            received_at = response.received_at
            quota = rate_limits(headers, in_flight=self.in_flight, received_at=received_at)
            if quota is not None:
                requested.set_quota(quota, now)

    # ------------------------------------------------------------------ learning

    def _learn(
        self,
        permit: Permit,
        outcome: Outcome,
        retry_s: float | None,
        response: Response,
        now: Instant,
    ) -> None:
        shared = self._shared
        strategy, stats = self.strategy, self.stats
        if strategy is None or stats is None:
            strategy, stats = self._begin_learning()
        if outcome is UNDECIDED:  # what it teaches is known later: see `_learn_refusals`
            self._update_breaker(self._ensure_health(), permit, NEUTRAL, now)
            return
        rate, concurrency = strategy.rate, strategy.concurrency
        latency_s = response.latency_s
        if outcome is OK:
            if response.is_from_cache:
                stats.add_answer(now, failed=False)
            else:
                stats.add_success(latency_s, now)
            if self.health is not None:
                if self.health.has_failures:
                    shared.mark_dirty(self)
                self._update_breaker(self.health, permit, OK, now)
        else:
            stats.add_answer(now, failed=outcome is OVERLOAD)
            self._record_bad_answer(permit, outcome, response, retry_s, now)
        sample = Sample(
            outcome, permit.sent_at, now, latency_s, permit.in_flight, retry_s, response.status
        )
        effect = strategy.on_sample(sample, stats)
        if effect is not None:
            self._apply_effect(effect, retry_s, now)
        if outcome is not OK:
            self._report_bad_answer(outcome, response, retry_s, effect, now)
        if strategy.concurrency != concurrency:
            shared.emit(events.ConcurrencyChanged(self.key, now, strategy.concurrency, concurrency))
        if shared.has_size_or_duration_limits or self.requested.quota is not None:
            self._apply_size_and_duration(permit, response, now)
        elif (
            effect is None
            and strategy.rate == rate
            and strategy.concurrency == concurrency
            and retry_s is None
        ):
            return  # neither delay nor limit can have changed
        self._reschedule()

    def _report_bad_answer(
        self,
        outcome: Outcome,
        response: Response,
        retry_s: float | None,
        effect: Effect | None,
        now: Instant,
    ) -> None:
        """Report a refusal, and a host that makes no progress until it is asked again."""
        if outcome is NEUTRAL:
            return
        shared, health = self._shared, self._ensure_health()
        asked_at = now + (effect.block_s if effect is not None else 0.0)
        if health.is_newly_stalled(self._gap_s, asked_at, shared.settings):
            shared.emit(events.Stalled(self.key, now, health.throttle_streak))
        if outcome is THROTTLE:
            self._reschedule()
            wait_s = max(self._gap_s, self.not_before - now)
            shared.emit(events.Throttled(self.key, now, response.status, retry_s, wait_s))

    def _apply_effect(self, effect: Effect, retry_s: float | None, now: Instant) -> None:
        """Turn the effect of a sample into a pause and an event."""
        # A Retry-After that did not help twice is too short: from then on the longer wait holds.
        streak = self.health.throttle_streak if self.health is not None else 0
        if effect.block_s and (retry_s is None or streak > BELIEVED):
            self.own_requested().block(now + effect.block_s, Reason.BACKOFF)
        if effect.change is None:
            return
        self._shared.mark_dirty(self)
        before_s = self._gap_s
        self._reschedule()
        emit, delay_s = self._shared.emit, self._gap_s
        if effect.change is PaceChange.SLOWED:
            if delay_s > before_s:
                emit(events.Slowed(self.key, now, delay_s, streak))
        elif effect.change is PaceChange.SPED_UP:
            emit(events.SpedUp(self.key, now, delay_s))
        elif effect.change is PaceChange.PROBING:
            emit(events.Probing(self.key, now, delay_s))
        else:
            emit(events.Recovered(self.key, now, delay_s))

    def _apply_size_and_duration(self, permit: Permit, response: Response, now: Instant) -> None:
        """Delay the next request after a slow or large response (`delay_factor`, bandwidth)."""
        settings, requested = self._shared.settings, self.own_requested()
        requested.block(now + settings.delay_factor * response.latency_s, Reason.DURATION_FACTOR)
        bandwidths = (
            settings.max_bandwidth,
            requested.quota.bytes_per_s if requested.quota else None,
        )
        for bandwidth in filter(None, bandwidths):
            requested.block(permit.sent_at + response.bytes / bandwidth, Reason.BANDWIDTH)

    def _record_bad_answer(
        self,
        permit: Permit,
        outcome: Outcome,
        response: Response,
        retry_s: float | None,
        now: Instant,
    ) -> None:
        health = self._ensure_health()
        if outcome is not NEUTRAL or health.has_failures:
            self._shared.mark_dirty(self)
        self._update_breaker(health, permit, outcome, now)
        if outcome is NEUTRAL:
            return
        health.note_bad(response, retry_s, now)
        bad_s = now - health.bad_since
        if bad_s >= self._shared.settings.give_up_after_s:
            self.give_up(f"no success for {bad_s:.0f} s, latest: {health.latest}", now)


def _retry_after(headers: dict[str, str], response: Response) -> float | None:
    """Return the Retry-After of a response in seconds. On a 2xx the header means something else."""
    asked, status = headers.get("retry-after"), response.status
    if asked is None or not isinstance(status, int) or 200 <= status < 300:
        return None
    return retry_after_s(asked, date=headers.get("date"), received_at=response.received_at)
