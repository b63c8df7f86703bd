"""A registry of policies: rules and pace of each site, fetched once by a function of the caller."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.aio_policies import AsyncPolicies
from mannerly.politeness.drivers.thread_policies import ThreadedPolicies
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.testing import FakeClock

AGENT = "my-bot/1.0 (+https://example.org)"
RULES = b"User-agent: my-bot\nDisallow: /private\nCrawl-delay: 7\n"
URL, PRIVATE = "https://a.example/page", "https://a.example/private/x"


class Site:
    """Answers for robots.txt, in order; the last one is repeated. It counts what was asked for."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, url: str) -> Any:
        self.asked.append(url)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def policies_of(site: Site, clock: FakeClock, **options: Any) -> ThreadedPolicies:
    paced = ThreadedPoliteness(Settings(max_rate="unlimited", min_delay_s=0), clock=clock)
    return ThreadedPolicies(site, agent=AGENT, politeness=paced, **options)


# ---------------------------------------------------------------------- rules and pace


def test_rules_are_fetched_when_they_are_first_asked_for() -> None:
    """Once for each origin: scheme, host and port."""
    site, clock = Site((200, RULES)), FakeClock()
    policies = policies_of(site, clock)

    assert site.asked == []
    assert (policies.allowed(URL), policies.allowed(PRIVATE)) == (True, False)
    assert policies.allowed("https://b.example:8443/private") is False
    assert site.asked == ["https://a.example/robots.txt", "https://b.example:8443/robots.txt"]
    assert len(policies) == 2


def test_crawl_delay_becomes_a_part_of_the_pace() -> None:
    """Of the host that asked for it alone; the request for robots.txt counts as the first."""
    site, clock = Site((200, RULES), (200, b"")), FakeClock()
    policies = policies_of(site, clock)

    policies.allowed(URL)
    policies.allowed("https://b.example/")

    assert policies.policy(URL).crawl_delay_s == 7.0
    assert policies.politeness.ready_at(URL) - clock.now() == 7.0
    assert policies.politeness.ready_at("https://b.example/") - clock.now() < 7.0


def test_delay_after_a_robots_txt_counts_from_its_answer() -> None:
    """The function may connect for a while before its request leaves."""
    clock = FakeClock()

    def fetch(_url: str) -> tuple[int, bytes]:
        clock.advance(3)
        return 200, RULES

    async def fetch_async(url: str) -> tuple[int, bytes]:
        return fetch(url)

    async def ask() -> float:
        paced = AsyncPoliteness(Settings(min_delay_s=0), clock=clock)
        await AsyncPolicies(fetch_async, agent=AGENT, politeness=paced).policy(URL)
        return paced.ready_at(URL) - clock.now()

    paced = ThreadedPoliteness(Settings(min_delay_s=0), clock=clock)
    ThreadedPolicies(fetch, agent=AGENT, politeness=paced).policy(URL)

    assert paced.ready_at(URL) - clock.now() == 7.0
    assert asyncio.run(ask()) == 7.0


@pytest.mark.parametrize(
    ("answer", "unreachable", "allowed"),
    [
        ((200, RULES), "disallow", False),
        ((404, b"<html>"), "disallow", True),
        ((403, b""), "disallow", True),
        ((429, b""), "disallow", False),
        ((503, RULES), "disallow", False),
        ((503, RULES), "allow", True),
        (OSError("no route"), "disallow", False),
        (OSError("no route"), "allow", True),
        (TimeoutError(), "disallow", False),
    ],
)
def test_answer_means_what_rfc_9309_says(answer: Any, unreachable: Any, allowed: bool) -> None:
    """A file that cannot be had forbids all, or allows all at the default pace if so asked."""
    policies = policies_of(Site(answer), FakeClock(), unreachable=unreachable)

    assert policies.allowed(PRIVATE) is allowed


def test_redirects_that_the_function_returns_are_followed_in_slots_of_their_own() -> None:
    """Five hops at most; what leads nowhere, or further, allows all."""
    site = Site((301, b"", {"Location": "/rules"}), (200, RULES))
    endless = Site((302, b"", {"location": "/again"}))
    nowhere = Site((301, b"", {"Location": "ftp://b.example/"}))
    paced = ThreadedPoliteness(Settings(enabled=False), clock=FakeClock())

    allowed = [
        ThreadedPolicies(each, agent=AGENT, politeness=paced).allowed(PRIVATE)
        for each in (site, endless, nowhere)
    ]

    assert allowed == [False, True, True]
    assert site.asked == ["https://a.example/robots.txt", "https://a.example/rules"]
    assert (len(endless.asked), len(nowhere.asked)) == (6, 1)
    assert paced.snapshot().requests == 9


def test_what_was_forgotten_is_asked_for_again() -> None:
    """Also if another program of the same memory was told the rules a moment ago."""
    site = Site((200, b"User-agent: my-bot\nDisallow: /private\n"))
    pace = Settings(strategy="fixed", delay_s=0.01, max_rate="unlimited")
    with ThreadedPoliteness(pace, memory="memory:policies") as paced:
        first, second = (ThreadedPolicies(site, agent=AGENT, politeness=paced) for _ in range(2))

        assert first.allowed(PRIVATE) is second.allowed(PRIVATE) is False
        asked_before = len(site.asked)
        second.forget(URL)
        second.policy(URL)

    assert (asked_before, len(site.asked)) == (1, 2)


def test_file_is_fetched_again_when_it_has_expired() -> None:
    """After its max-age, a day at most; one that cannot be had after 1, 2, 4 minutes."""
    site = Site((200, RULES, {"Cache-Control": "max-age=600"}), (503, b""), (200, b""))
    clock = FakeClock()
    policies = policies_of(site, clock)
    seen = []

    for advance_s in (0, 599, 2, 59, 2):
        clock.advance(advance_s)
        seen.append((policies.allowed(PRIVATE), len(site.asked)))

    assert seen == [(False, 1), (False, 1), (False, 2), (False, 2), (True, 3)]


def test_least_recently_used_origins_are_dropped() -> None:
    """The registry is bounded; what was dropped is fetched again."""
    site, clock = Site((200, RULES)), FakeClock()
    policies = policies_of(site, clock, max_origins=2)

    for host in ("a", "b", "a", "c", "a"):
        policies.allowed(f"https://{host}.example/")

    assert len(policies) == 2
    assert [url.split("/")[2][0] for url in site.asked] == ["a", "b", "c"]
    assert policies.known("https://b.example/") is None
    policies.forget("https://a.example/")
    assert policies.known("https://a.example/") is None


def test_wrong_arguments_are_refused() -> None:
    """With what is allowed."""
    with pytest.raises(ValueError, match='unreachable is \'maybe\'; allowed: "disallow" or "allow'):
        ThreadedPolicies(Site(), agent=AGENT, unreachable="maybe")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_origins must be at least 1"):
        ThreadedPolicies(Site(), agent=AGENT, max_origins=0)


# ---------------------------------------------------------------------- how long callers wait


def test_a_slot_is_refused_at_once_if_robots_txt_would_have_to_wait() -> None:
    """A host with a long Retry-After, with rules that are not known: an error that says when."""
    clock, site = FakeClock(), Site((200, RULES))
    policies = policies_of(site, clock)
    with policies.politeness.slot(URL) as slot:
        slot.report(status=429, headers={"retry-after": "7200"})

    with pytest.raises(HostUnavailable) as raised, policies.slot(URL):
        pass

    assert raised.value.until is not None
    assert raised.value.until >= clock.now() + 7200.0
    assert site.asked == []


def test_a_slot_is_not_waited_for_longer_than_its_deadline() -> None:
    """The wait for robots.txt counts as well."""
    site = Site((200, RULES))
    paced = ThreadedPoliteness(Settings(strategy="fixed", delay_s=3600.0))
    policies = ThreadedPolicies(site, agent=AGENT, politeness=paced)
    with paced.slot(URL) as slot:
        slot.report(status=200)

    with pytest.raises(TimeoutError), policies.slot(URL, deadline_s=0.01):
        pass

    assert site.asked == []
    assert policies.politeness.snapshot().requests == 1


def test_a_deadline_ends_the_wait_for_a_fetch_of_another_thread() -> None:
    """That fetch goes on, and its caller gets the rules."""
    began, release = threading.Event(), threading.Event()

    def fetch(_url: str) -> tuple[int, bytes]:
        began.set()
        assert release.wait(60)
        return 200, RULES

    policies = ThreadedPolicies(fetch, agent=AGENT)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(policies.allowed, PRIVATE)
        assert began.wait(60)
        with pytest.raises(TimeoutError, match=r"no robots\.txt of https://a\.example in 0\.01 s"):
            policies.policy(URL, deadline_s=0.01)
        release.set()

        assert first.result(60) is False


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wait_when_open": False}, HostUnavailable),
        ({"deadline_s": 60.0}, TimeoutError),
        ({}, None),
    ],
)
async def test_each_task_waits_for_a_host_that_is_refused_as_it_wants_to(
    options: Any, expected: Any
) -> None:
    """One raises at once, one after its deadline, one has the rules in the end."""
    clock, asked_at = FakeClock(), []

    async def fetch(_url: str) -> tuple[int, bytes]:
        asked_at.append(clock.now())
        return 200, RULES

    paced = AsyncPoliteness(Settings(max_rate="unlimited", min_delay_s=0), clock=clock)
    policies = AsyncPolicies(fetch, agent=AGENT, politeness=paced)
    async with paced.slot(URL) as slot:
        slot.report(status=429, headers={"retry-after": "7200"})
    patient = asyncio.create_task(policies.allowed(PRIVATE))
    asking = asyncio.create_task(policies.policy(PRIVATE, **options))
    await clock.run(asyncio.create_task(asyncio.wait((patient, asking))))

    assert type(asking.exception()) is (expected or type(None))
    assert patient.result() is False
    assert len(asked_at) == 1
    assert asked_at[0] >= 7200.0


async def test_rules_are_fetched_for_the_user_agent_of_who_asks() -> None:
    """Its Crawl-delay holds, and its function is the one that fetches."""

    async def fetch(_url: str) -> tuple[int, bytes]:
        raise AssertionError

    async def fetch_rules(_url: str) -> tuple[int, bytes]:
        return 200, b"User-agent: other\nCrawl-delay: 9\n"

    policies = AsyncPolicies(fetch, agent=AGENT)

    policy = await policies.policy(URL, agent="other/2.0", fetch=fetch_rules)

    assert (policy.agent, policy.crawl_delay_s) == ("other/2.0", 9.0)


# ---------------------------------------------------------------------- many callers


def test_threads_share_one_fetch_and_readers_never_wait() -> None:
    """Eight threads, one request; while it is fetched, other origins are answered at once."""
    began, release, asked = threading.Event(), threading.Event(), []

    def fetch(url: str) -> tuple[int, bytes]:
        asked.append(url)
        if "slow" in url:
            began.set()
            assert release.wait(60)
        return 200, RULES

    policies = ThreadedPolicies(fetch, agent=AGENT)
    policies.allowed(URL)
    with ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(policies.allowed, "https://slow.example/private") for _ in range(8)]
        assert began.wait(60)
        meanwhile = policies.allowed(PRIVATE)
        release.set()
        answers = [each.result(60) for each in slow]

    assert meanwhile is False
    assert answers == [False] * 8
    assert asked == ["https://a.example/robots.txt", "https://slow.example/robots.txt"]


def test_interrupted_fetch_is_taken_over_by_the_next_caller() -> None:
    """Nobody waits for ever for a thread that was interrupted."""
    site = Site(KeyboardInterrupt(), (200, RULES))
    policies = policies_of(site, FakeClock())

    with pytest.raises(KeyboardInterrupt):
        policies.allowed(URL)

    assert policies.allowed(URL) is True


async def test_tasks_share_one_fetch_and_survive_a_cancelled_one() -> None:
    """Ten tasks, one request; the first of them is cancelled, the others get their answer."""
    release, asked = asyncio.Event(), []

    async def fetch(url: str) -> tuple[int, bytes]:
        asked.append(url)
        await release.wait()
        return 200, RULES

    policies = AsyncPolicies(fetch, agent=AGENT, politeness=AsyncPoliteness())
    tasks = [asyncio.create_task(policies.allowed(PRIVATE)) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    release.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [False] * 9
    assert asked == ["https://a.example/robots.txt"]


async def test_expired_rules_serve_while_one_task_fetches_anew() -> None:
    """Nobody but that task waits."""
    clock, gate, answers = FakeClock(), asyncio.Event(), [(200, RULES), (200, b"")]
    gate.set()

    async def fetch(_url: str) -> tuple[int, bytes]:
        await gate.wait()
        return answers.pop(0)

    paced = AsyncPoliteness(Settings(max_rate="unlimited", min_delay_s=0), clock=clock)
    policies = AsyncPolicies(fetch, agent=AGENT, politeness=paced)
    first = await policies.allowed(PRIVATE)
    clock.advance(25 * 3600)
    gate.clear()
    renewing = asyncio.create_task(policies.allowed(PRIVATE))
    await asyncio.sleep(0)
    meanwhile = await policies.allowed(PRIVATE)
    gate.set()
    renewed = await renewing

    assert (first, meanwhile, renewed) == (False, False, True)


async def test_slot_waits_for_the_crawl_delay() -> None:
    """A page may be asked for when the delay since the robots.txt has passed."""
    clock = FakeClock()

    async def fetch(_url: str) -> tuple[int, bytes]:
        return 200, RULES

    paced = AsyncPoliteness(Settings(max_rate="unlimited", min_delay_s=0), clock=clock)
    policies = AsyncPolicies(fetch, agent=AGENT, politeness=paced)
    waited: list[float] = []

    async def page() -> None:
        async with policies.slot(URL) as slot:
            slot.report(status=200)
            waited.append(slot.waited_s)

    await clock.run(asyncio.create_task(page()))

    assert waited == [7.0]
