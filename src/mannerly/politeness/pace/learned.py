"""`learned`: find the host's hidden limit and hold just under it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ..model import Outcome
from .base import Effect, Lesson, Note

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..vitals import Vitals

GROWTH = 1.3
STEP_OK = 10
STEP_S = 4.0
HOLD0_S = 15.0
HOLD_MAX_S = 1800.0
HOLD_MIN_MAX_S = 60.0
PROBE_GAIN = 1.25
ALLOWANCE0 = 8.0
ALLOWANCE_MAX = 300.0
PROVE_MARGIN = 3.0
WINDOW = 20  # accepts between two checkpoints


class Phase(Enum):
    STARTUP = "startup"
    CRUISE = "cruise"
    PROBE = "probe"
    RECOVER = "recover"


class Learned:
    def __init__(self, settings: Settings) -> None:
        self.s = settings
        self.burst = 1
        self.ceiling = settings.rate_ceiling
        self.rate = min(self.ceiling, 1.0 / settings.start_delay_s)
        self.concurrency = settings.max_concurrency
        self.trial_only = False
        self.ph = Phase.STARTUP
        self.est = 0.0
        self.hi = 0.0
        self.hi_at = 0.0
        self.B = ALLOWANCE0
        self.hold = HOLD0_S
        self.hold_t = 0.0
        self.blk = 0.0
        self.proven = False
        self.gain = PROBE_GAIN
        # accounting
        self.n = 0
        self.born = None
        self.ck_t = self.ck_old_t = 0.0
        self.ck_n = self.ck_old_n = 0
        self.step_t = 0.0
        self.step_n = 0
        # episodes
        self.ep_t = float("-inf")
        self.ep_n = 0
        self.prev_ep_t = None
        self.prev_ep_n = 0
        self.rec_t = None  # last recovery instant
        self.rec_n = 0
        self.from_phase = Phase.STARTUP
        self.rej_rate = 0.0
        self.k = 0
        self.wait = 0.0
        # probe
        self.p = 0.0
        self.excess = 0.0
        self.last_acc = 0.0
        # concurrency
        self.okc = [0, 0]
        self.okc_t = 0.0
        self.chold = 30.0
        self.conc_t = 0.0
        self.conc_prev = 0
        # latency
        self.act_n = 0
        self.base = [0.0, 0.0]
        self.base_t = 0.0
        self.drain_until = 0.0
        self.weak = 0
        self.weak20 = 0

    @property
    def phase(self):
        return self.ph.value

    def _set_rate(self, r):
        self.rate = max(1.0 / self.s.max_delay_s, min(self.ceiling, r))

    def delivery(self, now):
        """accepted/s over the last 20..40 accepts"""
        t = self.ck_old_t
        return (self.n - self.ck_old_n) / max(1e-6, now - t)

    def on_sample(self, s: Sample, vitals: Vitals) -> Effect | None:
        now = s.done_at
        if self.born is None:
            self.born = s.sent_at
            self.ck_t = self.ck_old_t = self.step_t = self.hold_t = s.sent_at
            self.base_t = self.okc_t = now
        o = s.outcome
        if o is Outcome.THROTTLE:
            return self._throttled(s, now)
        if o is Outcome.OVERLOAD:
            return self._overloaded(s, now)
        self.n += 1
        if self.n - self.ck_n >= WINDOW:
            self.ck_old_t, self.ck_old_n = self.ck_t, self.ck_n
            self.ck_t, self.ck_n = now, self.n
        if o is Outcome.NEUTRAL:
            return None
        self.weak = 0
        self.weak20 *= 0.95
        # concurrency evidence
        if now - self.okc_t > 60:
            self.okc = [0, self.okc[0]]
            self.okc_t = now
        if s.in_flight > self.okc[0]:
            self.okc[0] = s.in_flight
        if self.concurrency < self.s.max_concurrency and now - self.conc_t > self.chold and s.in_flight >= self.concurrency:
            self.concurrency += 1
            self.conc_t = now
        if self.ph is Phase.RECOVER:
            if s.sent_at > self.ep_t:
                return self._recovered(now)
            return None
        if vitals.samples % 5 == 0:
            e = self._latency_guard(s, now, vitals)
            if e is not None:
                return e
        self.act_n += 1
        if self.ph is Phase.STARTUP:
            return self._startup(s, now)
        if self.ph is Phase.CRUISE:
            return self._cruise(s, now)
        return self._probe(s, now)

    def _startup(self, s, now):
        if s.sent_at < self.step_t:
            return None
        self.step_n += 1
        if self.step_n >= STEP_OK and now - self.step_t >= STEP_S:
            got = self.step_n / (now - self.step_t)
            self.step_t, self.step_n = now, 0
            if got >= 0.7 * self.rate and self.rate < self.ceiling:
                self._set_rate(self.rate * GROWTH)
                return Effect(note=Note.SPED_UP)
            if s.in_flight >= self.concurrency or self.rate >= self.ceiling:
                self.est = self.rate / self.s.cruise
                self._enter_cruise(now)
        return None

    def _enter_cruise(self, now):
        self.ph = Phase.CRUISE
        self.trial_only = False
        self.hold_t = now
        self.step_t, self.step_n = now, 0
        self._set_rate(self.s.cruise * self.est)

    def hold_max(self):
        return max(10 * self.blk, min(HOLD_MAX_S, max(HOLD_MIN_MAX_S, 1.5 / (self.s.probe_budget * self.est))))

    def _cruise(self, s, now):
        self.step_n += 1
        if self.drain_until and now > self.drain_until:
            self.drain_until = 0.0
            self._set_rate(self.s.cruise * self.est)
        quiet = now - self.hold_t
        if not self.proven and quiet >= max(15.0, 3 * self.blk) and self.step_n >= 20:
            self.proven = True
        if quiet < max(self.hold, 3 * self.blk) or self.step_n < 10:
            return None
        if self.rate >= self.ceiling:
            return None
        if self.delivery(now) < 0.8 * self.rate:
            return None  # application-limited
        if self.hi and now - self.hi_at > 600:
            self.hi = 0.0
        return self._start_probe(now)

    def _start_probe(self, now):
        if self.hi > 1.08 * self.est:
            self.p = (self.est + self.hi) / 2
        else:
            self.p = self.gain * self.est
        self.ph = Phase.PROBE
        self._set_rate(self.p)
        self.p = self.rate
        self.excess = 0.0
        self.last_acc = now
        self.probe_t = now
        return Effect(note=Note.PROBING)

    def _probe(self, s, now):
        if s.sent_at <= self.probe_t:
            return None
        self.excess += 1 - self.est * (s.sent_at - max(self.last_acc, self.probe_t))
        self.last_acc = s.sent_at
        if self.excess >= self.B + PROVE_MARGIN:
            self.est = self.p
            self.proven = True
            if self.p >= 0.999 * self.ceiling:
                self.est = self.ceiling / self.s.cruise
                self._enter_cruise(now)
                return Effect(note=Note.SPED_UP)
            if self.hi and self.hi <= 1.08 * self.est and now - self.hi_at < 600:
                self.hold = HOLD0_S if self.hold < HOLD0_S else self.hold
                self._enter_cruise(now)
                return Effect(note=Note.SPED_UP)
            if not (self.hi > 1.08 * self.est):
                self.gain = min(2.0, self.gain * 1.25)
            self._start_probe(now)
            return Effect(note=Note.SPED_UP)
        if now - self.probe_t > 120 or self.excess < -5:
            self._enter_cruise(now)
        return None

    # ----------------------------------------------------------- refusals
    def _attribute(self, s, now):
        if s.in_flight >= 2 and s.in_flight > max(self.okc):
            self.conc_prev = self.concurrency
            self.concurrency = max(1, s.in_flight - 1)
            if self.conc_t:
                self.chold = min(600.0, self.chold * 2)
            self.conc_t = now
            return True
        return False

    def _throttled(self, s, now):
        if s.sent_at <= self.ep_t:
            return None
        if self.ph is Phase.RECOVER:
            self.k += 1
            self.ep_last = now
            self.ep_t = now
            return Effect(block_s=self._wait())
        if self._attribute(s, now):
            self.ep_t = now
            return Effect(block_s=0.25, note=Note.SLOWED)
        self.prev_ep_t, self.prev_ep_n = (self.ep_start if hasattr(self, "ep_start") else self.born), self.ep_n
        self.ep_start = now
        self.ep_t = now
        self.ep_n = self.n
        self.from_phase = self.ph
        self.rej_rate = self.rate
        self.k = 1
        self.ph = Phase.RECOVER
        self.trial_only = True
        return Effect(block_s=self._wait(), note=Note.SLOWED)

    def _wait(self):
        base = max(0.5, 1 / self.est) if self.est else 1.0
        if self.blk > 2 * base:
            if self.k == 1:
                return 0.9 * self.blk
            return 0.25 * self.blk * 2.0 ** max(0, self.k - 5)
        return min(self.s.max_delay_s, base * 2.0 ** (self.k - 1))

    def _recovered(self, now):
        self.blk = now - self.ep_start
        # avg over recent accepts or over a horizon that covers the block
        avg = (self.n - self.ck_old_n) / max(1e-6, now - self.ck_old_t)
        since = self.prev_ep_t
        e2e = (self.ep_n - self.prev_ep_n) / max(1e-6, self.ep_start - since)
        accepts = self.ep_n - self.prev_ep_n
        fp = self.from_phase
        if self.est:
            old = self.est
        if fp is Phase.STARTUP:
            self.est = min(max(avg, e2e), self.rej_rate)
            self._refused(self.rej_rate, now)
        elif fp is Phase.PROBE:
            k = old if self.proven else 0.7 * old
            self.est = max(k, min(avg, 0.95 * self.p))
            self._refused(self.p, now)
            self.hold = min(2 * self.hold, self.hold_max())
            self.B = min(ALLOWANCE_MAX, max(self.B, self.excess))
            self.gain = PROBE_GAIN
        else:
            if accepts < 10:
                self.est = min(max(1.05 * e2e, 0.6 * old), 0.93 * old)
            else:
                self.est = min(max(min(avg, e2e), 0.7 * old), 0.93 * old)
            self._refused(self.rej_rate, now)
            if self.est < 0.85 * old:
                self.hold = HOLD0_S
            self.proven = False
        self._enter_cruise(now)
        return Effect(note=Note.RECOVERED)

    def _refused(self, rate, now):
        self.hi = rate
        self.hi_at = now

    def _overloaded(self, s, now):
        if s.sent_at > self.ep_t and self._attribute(s, now):
            self.ep_t = now
            return Effect(block_s=0.25, note=Note.SLOWED)
        self.weak += 1
        self.weak20 += 1
        if (self.weak >= 3 or self.weak20 >= 5) and s.sent_at > self.drain_until and self.ph is not Phase.RECOVER:
            self.weak = 0
            self.weak20 = 0.0
            self.est = 0.7 * self.rate
            self.drain_until = now
            self._enter_cruise(now)
            return Effect(note=Note.SLOWED)
        if self.ph is Phase.RECOVER and s.sent_at > self.ep_t:
            self.k += 1
            self.ep_t = now
            return Effect(block_s=self._wait())
        return None

    def _latency_guard(self, s, now, vitals):
        if now - self.base_t > 300:
            self.base = [0.0, self.base[0]]
            self.base_t = now
        if self.act_n < 15:
            return None
        med = vitals.median_s(15)
        b0, b1 = self.base
        if b0 == 0.0 or med < b0:
            self.base[0] = b0 = med
        base = min(b0, b1) if b1 else b0
        if med > 2 * base + 0.02:
            deliv = self.delivery(now)
            self.est = min(0.9 * deliv, 0.95 * self.rate)
            self._refused(self.rate, now)
            if self.ph is Phase.PROBE:
                self.hold = min(2 * self.hold, self.hold_max())
            self._enter_cruise(now)
            self._set_rate(0.6 * self.est)
            self.drain_until = now + 2 * med
            self.act_n = 0
            return Effect(note=Note.SLOWED)
        return None

    def restart(self, now):
        self.est = max(0.5 * (self.est or self.rate), 1 / self.s.max_delay_s)
        self._enter_cruise(now)

    def recall(self, lesson, trust):
        pass

    def lesson(self):
        return Lesson(delay_s=1 / (self.est or self.rate), floor_s=1 / self.hi if self.hi else 0.0,
                      allowance=self.B, block_s=self.blk, concurrency=self.concurrency, is_proven=self.proven)
