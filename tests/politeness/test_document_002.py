"""The eleven steps of document 002's test plan (§14), in its order, one test each."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from mannerly.politeness import Grant, Outcome, Politeness, Refuse, Response, Retry, Settings, Wait
from mannerly.politeness.breaker import BreakerState
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.keys import host_key
from mannerly.politeness.retry import RetryBudget, RetryPolicy, backoff_s, decide
from mannerly.politeness.stats import HostStats
from mannerly.politeness.testing import FakeClock, ScriptedServer, Transcript, retry_after

HOST = "example.com"
OK, REFUSED, FAILED = Response(200, 0.05), Response(429, 0.05), Response(503, 0.05)
AIMD = Settings(strategy="aimd", start_delay_s=0.5, seed=1)
FIXED = Settings(strategy="fixed", delay_s=1.0, seed=1)
OWN_WORK_S = 0.001  # of a client, between an answer and its next request


class Client:
    """One request after the other, each as early as the core allows."""

    def __init__(self, settings: Settings) -> None:
        self.log = Transcript()
        self.core = Politeness(settings, on_event=self.log)
        self.now = 0.0

    def send(self, response: Response) -> Outcome:
        self.now = self.core.ready_at(HOST, now=self.now)
        decision = self.core.reserve(HOST, now=self.now)
        assert isinstance(decision, Grant)
        self.now += response.latency_s
        outcome = self.core.report(decision.permit, response, now=self.now)
        self.now += OWN_WORK_S
        return outcome

    @property
    def rate(self) -> float:
        host = self.core.host(HOST)
        assert host is not None
        return host.rate

    @property
    def breaker(self) -> BreakerState:
        host = self.core.host(HOST)
        assert host is not None
        return host.breaker


@pytest.mark.parametrize(
    ("spelling", "key"),
    [
        ("Example.COM", "example.com"),
        ("http://example.com:80/a", "example.com"),
        ("https://EXAMPLE.com:443", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
    ],
)
def test_step_01_domains_are_normalised(spelling: str, key: str) -> None:
    """Case and default ports make no second domain; another port does."""
    assert host_key(spelling) == key


def test_step_02_token_bucket_refills_caps_and_waits() -> None:
    """Four tokens go at once, the fifth waits for its share, and a long rest earns four again."""
    settings = Settings(
        strategy="aimd", start_delay_s=0.5, min_delay_s=0.0, aimd_burst=4, max_rate=2.0
    )
    core, log = Politeness(settings), Transcript()

    for now in (0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5):
        log.reserve(core, HOST, now=now)
    bucket = log.take()
    fresh = Politeness(settings)
    for now in (0.0, *[100.0] * 5):
        log.reserve(fresh, HOST, now=now)

    assert bucket == "G0.0 G0.0 G0.0 G0.0 W0.5 G0.5 W1.0"
    assert str(log) == "G0.0 G100.0 G100.0 G100.0 G100.0 W100.5"


def test_step_03_aimd_adds_on_success_and_multiplies_on_throttle() -> None:
    """A fast success adds α, a 429 or 503 multiplies by β, and neither leaves the bounds."""
    client = Client(AIMD)
    client.send(OK)

    client.send(OK)
    raised = client.rate
    client.send(REFUSED)
    cut = client.rate
    client.send(FAILED)
    cut_again = client.rate
    for _ in range(30):
        client.send(REFUSED)
    lowest = client.rate
    for _ in range(300):
        client.send(OK)

    assert raised == pytest.approx(2.0 + 0.05)
    assert cut == pytest.approx(0.7 * raised)
    assert cut_again == pytest.approx(0.7 * cut)
    assert lowest == pytest.approx(0.25)
    assert client.rate == pytest.approx(8.0)


def test_step_04_error_window_slides() -> None:
    """Failures count for thirty seconds, in buckets of two, and are then forgotten."""
    stats = HostStats()

    for second in range(10):
        stats.add_answer(100.0 + second, failed=second < 4)

    assert stats.errors(109.0) == (4, 10)
    assert stats.errors(131.0) == (2, 8)
    assert stats.errors(141.0) == (0, 0)


def test_step_05_breaker_goes_round() -> None:
    """Closed → open → half-open → open again → half-open → closed, by simulated feedback."""
    client = Client(FIXED)
    states = []

    for _ in range(5):
        client.send(FAILED)
    states.append(client.breaker)
    refusal = client.core.reserve(HOST, now=client.now)
    client.send(FAILED)
    states.append(client.breaker)
    for _ in range(2):
        client.send(OK)
    states.append(client.breaker)
    client.send(OK)
    states.append(client.breaker)

    assert isinstance(refusal, Refuse)
    assert states == [
        BreakerState.OPEN,
        BreakerState.OPEN,
        BreakerState.HALF_OPEN,
        BreakerState.CLOSED,
    ]
    assert [word[0] for word in str(client.log).split()] == ["O", "H", "O", "H", "K"]


def test_step_06_backoff_doubles_within_its_jitter() -> None:
    """The longest backoff doubles up to the cap; the jittered one lies between now and that."""
    policy = RetryPolicy(base_s=0.2, max_s=5.0, max_attempts=20, budget_ratio=1.0)
    rng = random.Random(7)

    longest = [backoff_s(policy, attempt) for attempt in range(1, 9)]
    dues = []
    for _ in range(200):
        decision = decide(
            policy,
            outcome=Outcome.OVERLOAD,
            response=FAILED,
            attempt=3,
            ready_at=10.0,
            now=10.0,
            budget=RetryBudget(policy),
            rng=rng,
        )
        assert isinstance(decision, Retry)
        dues.append(decision.due - 10.0)

    assert longest == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    assert 0.0 <= min(dues) < 0.1
    assert 0.7 < max(dues) <= 0.8


def test_step_07_retry_after_is_the_earliest_next_time() -> None:
    """A refusal with Retry-After blocks the host that long, and does not trip the breaker."""
    client = Client(AIMD)

    client.send(Response(429, 0.0, retry_after(30)))
    early = client.core.reserve(HOST, now=29.9)

    assert isinstance(early, Wait)
    assert early.until is not None
    assert 30.0 <= early.until <= 31.0
    assert isinstance(client.core.reserve(HOST, now=early.until), Grant)
    assert client.breaker is BreakerState.CLOSED


def test_step_08_eviction_takes_the_idle_and_leaves_the_active() -> None:
    """An hour later an idle domain goes; one that is blocked, open or under way stays."""
    core = Politeness(FIXED)
    for host, response in {
        "idle.example": OK,
        "blocked.example": Response(429, 0.0, retry_after(7200)),
    }.items():
        decision = core.reserve(host, now=0.0)
        assert isinstance(decision, Grant)
        core.report(decision.permit, response, now=0.0)
    core.reserve("busy.example", now=0.0)

    for number in range(10):
        core.reserve(f"new-{number}.example", now=3601.0)

    assert "idle.example" not in core
    assert "blocked.example" in core
    assert "busy.example" in core


def test_step_09_many_threads_acquire_and_report() -> None:
    """Sixteen real threads, thousands of slots, every kind of ending: the books balance."""
    settings = Settings(strategy="aimd", max_rate="unlimited", min_delay_s=0.0, start_delay_s=1e-6)
    politeness = ThreadedPoliteness(settings)
    statuses = [200, 200, 200, 404, 429, 200]

    def visit(rng: random.Random) -> None:
        with politeness.slot(f"host-{rng.randrange(40)}.example", deadline_s=0.002) as slot:
            if rng.random() < 0.1:
                raise InterruptedError
            slot.report(status=rng.choice(statuses))

    def work(seed: int) -> tuple[int, int]:
        rng = random.Random(seed)
        done = dropped = 0
        for _ in range(200):
            try:
                visit(rng)
                done += 1
            except (TimeoutError, InterruptedError):
                dropped += 1
        return done, dropped

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, range(16)))
    snapshot = politeness.snapshot()
    politeness.close()

    assert sum(done + dropped for done, dropped in results) == 16 * 200
    assert snapshot.in_flight == 0
    assert all(host.waiters == 0 for host in snapshot.top)
    assert snapshot.requests == sum(done for done, _ in results) + snapshot.cancelled


def test_step_10_scripted_server_moves_rate_and_breaker() -> None:
    """200, 200, a slow 200, 429, 200 …, then failures: the rate's way and the open time."""
    slow = Response(200, latency_s=0.8)
    settings = Settings(
        strategy="aimd", start_delay_s=0.5, aimd_latency_target_s=0.2, seed=1, breaker_open_s=5.0
    )
    client = Client(settings)
    server = ScriptedServer(200, 200, slow, 429, 200, 200, *[Response(500, 0.05)] * 5, 200)

    rates = []
    for _ in range(6):
        client.send(server.answer(client.now))
        rates.append(client.rate)
    for _ in range(5):
        client.send(server.answer(client.now))
    opened_at, reopens_at = client.now, client.core.ready_at(HOST, now=client.now)
    for _ in range(3):
        client.send(server.answer(client.now))

    up, cut = 0.05, 0.7
    expected = [2.0, 2.0 + up, (2.0 + up) * cut, (2.0 + up) * cut * cut]
    expected += [expected[-1] + up, expected[-1] + 2 * up]
    assert rates == pytest.approx(expected)
    assert 4.0 <= reopens_at - opened_at <= 6.0
    assert client.breaker is BreakerState.CLOSED


async def test_step_11_pipeline_workers_wait_for_the_limiter() -> None:
    """Four extraction workers on one slow domain wait their turn; a fast domain does not."""
    clock = FakeClock()
    politeness = AsyncPoliteness(FIXED, clock=clock)
    queue: asyncio.Queue[str] = asyncio.Queue()
    server = ScriptedServer(200)
    waits_s: list[float] = []

    async def extract() -> None:
        while not queue.empty():
            url = queue.get_nowait()
            async with politeness.slot(url) as slot:
                response = server.answer(clock.now())
                await clock.sleep(response.latency_s)
                slot.report(response)
            waits_s.append(slot.waited_s)

    for number in range(12):
        queue.put_nowait(f"https://example.com/{number}")
    await clock.run(*[asyncio.create_task(extract()) for _ in range(4)])
    async with politeness.slot("https://fast.example/") as slot:
        slot.report(status=200)

    assert clock.now() >= 11.0
    assert all(later - earlier == 1.0 for earlier, later in pairwise(server.starts))
    assert sum(wait_s > 0.5 for wait_s in waits_s) == 11
    assert slot.waited_s == 0.0
