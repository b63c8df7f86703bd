"""Frontier and robots gate together: no page before its robots.txt, no robots.txt twice."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crawler.frontier.frontier_world import OK, FakePoliteness, World

from mannerly.crawler.model import Entry, Fetched, Now, Request, RobotsRequest
from mannerly.crawler.robots.gate import Learned, RobotsGate, request_for
from mannerly.crawler.web.urls import host_key_of
from mannerly.politeness import Politeness, Response, Settings
from mannerly.politeness.model import ErrorKind

if TYPE_CHECKING:
    from mannerly.crawler.frontier.model import Need
    from mannerly.crawler.host.inflight import InFlight
    from mannerly.crawler.model import Judgement, RobotsRecord

# What a server says when it is asked for a robots.txt: (status, body, Location).
Answer = tuple[int | None, bytes, str | None]
EPOCH = 1_700_000_000.0
NOTHING: Answer = (404, b"", None)


class Web(World):
    """A shard's glue between frontier, politeness and robots gate, and servers behind it."""

    def __init__(self, answers: dict[str, list[Answer]], politeness=None, **limits) -> None:
        super().__init__(politeness, **limits)
        self.answers = answers
        self.records: dict[str, RobotsRecord] = {}
        self.robots = RobotsGate("mannerly")
        self.asked: Counter[str] = Counter()
        self.cleared: set[str] = set()  # origins that were answered for

    @property
    def time(self) -> Now:
        return Now(self.now, EPOCH + self.now)

    def _judge(self, entry: Entry, now: float) -> Judgement:
        return self.robots.judge(entry, now)

    def provide(self, need: Need) -> None:
        if self.robots.needs(need.origin, self.now):
            record = None if need.origin in self.robots else self.records.get(need.origin)
            if record is not None:
                self.obey(self.robots.load(record, self.time))
            if self.robots.needs(need.origin, self.now):
                self.frontier.request(self.robots.request(need.origin), now=self.now)
                return
        self.wake(need.host)

    def obey(self, learned: Learned) -> None:
        self.records[learned.origin] = learned.record
        self.cleared.add(learned.origin)
        if isinstance(self.politeness, Politeness):
            delay_s = learned.crawl_delay_s
            self.politeness.robots(learned.host, crawl_delay_s=delay_s, now=self.now)

    def take(self) -> list[InFlight]:
        starts = super().take()
        for start in starts:
            if isinstance(start.item, RobotsRequest):
                assert start.item.origin in self.robots.fetching
                self.asked[start.item.url] += 1
            else:
                assert start.item.url[: start.item.url.index("/", 8)] in self.cleared
        return starts

    def finish(self, start: InFlight, response: Response = OK) -> None:
        if isinstance(start.item, RobotsRequest):
            script = self.answers.get(start.item.url, [NOTHING])
            self.said = script.pop(0) if len(script) > 1 else script[0]
            status = self.said[0]
            response = Response(status, 0.01, error=None if status else "timeout")
        super().finish(start, response)

    def robots_answered(self, request: RobotsRequest) -> None:
        status, body, location = self.said
        answer = Fetched(
            Request(request.url, request.host, 5.0),
            status,
            {} if location is None else {"location": location},
            body,
            error=None if status else ErrorKind.TIMEOUT,
        )
        for origin in request.origins[1:]:
            own = request_for(origin)
            if self.frontier.unrequest(own):
                self.robots.withdrawn(own)
                self.wake(own.host)
        follows = self.robots.answered(request, answer, self.records, self.time)
        if isinstance(follows, RobotsRequest):
            self.frontier.request(follows, now=self.now)
            return
        for learned in follows:
            self.obey(learned)
            self.wake(learned.host)

    def offer_url(self, url: str) -> None:
        host = host_key_of(url)
        (entry,) = self.store.offer(host, 5)
        entry = entry._replace(url=url)
        self.store.entries[host][entry.seq] = entry
        self.frontier.add([entry], now=self.now)


def test_robots_is_read_once_and_before_the_first_page() -> None:
    """One request for the rules, then the pages, a second apart; the forbidden one costs none."""
    rules = (200, b"User-agent: *\nDisallow: /2", None)
    web = Web({"https://a/robots.txt": [rules]})
    web.offer("a", 5, 5, 5)

    assert web.run() == "R0:a/robots.txt G1:a/1 D2:a/2 G2:a/3"


def test_crawl_delay_counts_from_robots_itself() -> None:
    """The first page already keeps the distance that was asked for."""
    rules = (200, b"User-agent: *\nCrawl-delay: 5", None)
    web = Web({"https://a/robots.txt": [rules]}, Politeness(Settings(strategy="fixed", delay_s=1)))
    web.offer("a", 5, 5)

    assert web.run() == "R0:a/robots.txt G5:a/1 G10:a/2"


def test_redirect_takes_a_slot_of_the_other_host() -> None:
    """The hop waits for the other host's turn, and teaches both; nobody asks again."""
    web = Web(
        {
            "https://a/robots.txt": [(301, b"", "https://www.a/robots.txt")],
            "https://www.a/robots.txt": [(200, b"", None)],
        }
    )
    web.politeness.group("www.a").not_before = 7.0
    web.offer("a", 5, 5)
    web.offer("www.a", 5)

    log = web.run()

    assert log == "R0:a/robots.txt R7:www.a/robots.txt G7:a/1 G8:www.a/3 G8:a/2"


def test_redirect_within_the_host_takes_its_next_slot() -> None:
    """From http to https of the same host: one pace, one wait, no deadlock."""
    web = Web({"http://a/robots.txt": [(301, b"", "https://a/robots.txt")]})
    web.offer_url("http://a/x")

    log = web.run()

    assert log == "R0:a/robots.txt R1:a/robots.txt G2:a/x"


def test_pages_wait_for_an_unreachable_robots_and_are_not_lost() -> None:
    """Retries after one and two minutes; when the server is back every page is fetched."""
    web = Web({"https://a/robots.txt": [(503, b"", None), (None, b"", None), NOTHING]})
    web.offer("a", 5, 5)

    log = web.run()

    assert log == "R0:a/robots.txt R60:a/robots.txt R180:a/robots.txt G181:a/1 G182:a/2"


def test_unreachable_http_does_not_hold_up_https() -> None:
    """A link to a closed port waits by itself."""
    web = Web({"http://a/robots.txt": [(None, b"", None), NOTHING]})
    web.offer_url("http://a/x")
    web.offer_url("https://a/y")
    web.offer_url("https://a/z")

    log = web.run()

    assert log == "R0:a/robots.txt R1:a/robots.txt G2:a/y G3:a/z R60:a/robots.txt G61:a/x"


def test_expired_rules_are_fetched_again_before_the_next_page() -> None:
    """After a day the host is held once more, for one request."""
    web = Web({})
    web.offer("a", 5)
    web.run()
    web.now = 86_400.0
    web.offer("a", 5)

    log = web.run()

    assert log == "R0:a/robots.txt G1:a/1 R86400:a/robots.txt G86401:a/2"


URLS = st.sampled_from(
    [f"{scheme}://{host}/{page}" for scheme in ("http", "https") for host in "abc" for page in "xy"]
)
ROBOTS = [f"{scheme}://{host}/robots.txt" for scheme in ("http", "https") for host in "abc"]
ANSWERS = st.one_of(
    st.just(NOTHING),
    st.just((200, b"User-agent: *\nDisallow: /x", None)),
    st.just((503, b"", None)),
    st.just((None, b"", None)),
    st.sampled_from(ROBOTS).map(lambda url: (302, b"", url)),
)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(ROBOTS), st.lists(ANSWERS, min_size=1, max_size=3)),
    st.lists(URLS, min_size=1, max_size=12),
    st.floats(0.0, 3.0),
)
def test_any_web_is_crawled_to_the_end(
    answers: dict[str, list[Answer]], urls: list[str], latency_s: float
) -> None:
    """Whatever servers answer, every page is fetched or dropped, none before its robots.txt.

    `Web.take` asserts the order, `RobotsGate.request` the single flight.
    """
    script = {url: [*said, NOTHING] for url, said in answers.items()}
    web = Web(script, FakePoliteness(gap_s=1.0, limit=2), max_robots=2, per_host_window=2)
    for url in urls:
        web.offer_url(url)

    web.run(latency_s=latency_s)

    assert len(web.store) == 0
    assert web.robots.fetching == frozenset()
    assert web.frontier.snapshot(web.now).active == 0
