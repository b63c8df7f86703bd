"""What a robots.txt, or the lack of one, means for an origin, and for how long."""

from __future__ import annotations

import pytest

from mannerly.crawler.model import (
    GO,
    PASSING,
    Drop,
    Entry,
    Fetched,
    FetchError,
    Judgement,
    Later,
    LocalError,
    Now,
    Request,
    RobotsRecord,
    RobotsRequest,
    Unknown,
)
from mannerly.crawler.robots.gate import UNREACHABLE, Learned, RobotsGate, request_for
from mannerly.politeness.bounds import LONGEST_WAIT_S
from mannerly.politeness.model import ErrorKind
from mannerly.politeness.robots import Robots
from mannerly.politeness.robots.keeping import MAX_BODY_BYTES

ORIGIN = "https://e.com"
AGENT = "mannerly/0.1 (+https://example.org)"
PRIVATE = b"User-agent: *\nDisallow: /private\nCrawl-delay: 3\nSitemap: https://e.com/s.xml\n"
EPOCH = 1_700_000_000.0
DAY_S = 86_400.0


class Site:
    """A gate with a store behind it, and a clock that reads `now` here and EPOCH + now outside."""

    def __init__(self, **settings) -> None:
        self.settings = settings
        self.records: dict[str, RobotsRecord] = {}
        self.loaded: list[Learned] = []
        self.now = 0.0
        self.restart()

    def restart(self) -> None:
        self.gate = RobotsGate(AGENT, **self.settings)

    @property
    def time(self) -> Now:
        return Now(self.now, EPOCH + self.now)

    def judge(self, url: str = f"{ORIGIN}/private") -> Judgement:
        """Rules that are not in memory are loaded first, as a shard does."""
        entry = Entry(1, url, "e.com", 1, 5, None, 0)
        ruling = self.gate.judge(entry, self.now)
        if not isinstance(ruling, Unknown) or ruling.origin in self.gate:
            return ruling
        record = self.records.get(ruling.origin)
        if record is not None:
            self.loaded.append(self.gate.load(record, self.time))
            ruling = self.gate.judge(entry, self.now)
        return ruling

    def ask(self, path: str = "/private", origin: str = ORIGIN) -> str:
        """One letter: Allowed, Disallowed, Unknown; and when to ask for it."""
        match self.judge(origin + path):
            case Drop(reason="robots"):
                return "D"
            case Later(until=None):
                return "U"
            case Later(until=due):
                return f"U{due:g}"
            case Unknown():
                return f"U{self.now:g}"
            case ruling:
                assert ruling is GO
                return "A"

    def answer(
        self,
        status: int | None,
        body: bytes = b"",
        *,
        origin: str = ORIGIN,
        request: RobotsRequest | None = None,
        error: FetchError | None = None,
        **headers,
    ) -> RobotsRequest | list[Learned]:
        request = request or self.gate.request(origin)
        if status is None and error is None:
            error = ErrorKind.TIMEOUT
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = Fetched(Request(request.url, "e.com", 5.0), status, said, body, error=error)
        return self.keep(self.gate.answered(request, answer, self.records, self.time))

    def keep(self, outcome: RobotsRequest | list[Learned]) -> RobotsRequest | list[Learned]:
        if isinstance(outcome, list):
            self.records.update({learned.record.origin: learned.record for learned in outcome})
        return outcome


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, "D A"),
        (203, "D A"),
        (301, "A A"),  # without a Location it leads nowhere
        (401, "A A"),
        (403, "A A"),
        (404, "A A"),
        (410, "A A"),
        (429, "U60 U60"),
        (500, "U60 U60"),
        (503, "U60 U60"),
        (None, "U60 U60"),
        (999, "U60 U60"),
    ],
)
def test_status_decides_as_rfc_9309_says(status: int | None, expected: str) -> None:
    """2xx is parsed, 4xx allows, everything that may pass waits for a second chance."""
    site = Site()
    site.answer(status, PRIVATE)

    assert f"{site.ask('/private')} {site.ask('/')}" == expected


def test_unknown_origin_wants_one_fetch_and_then_waits_for_it() -> None:
    """robots.txt is asked for first; while it is under way nothing else is sent."""
    site = Site()

    first, needed = site.judge(), site.gate.needs(ORIGIN, 0.0)
    request = site.gate.request(ORIGIN)
    second, needed_again = site.judge(), site.gate.needs(ORIGIN, 0.0)

    assert first == Unknown(ORIGIN)
    assert request == RobotsRequest(f"{ORIGIN}/robots.txt", "e.com", ORIGIN) == request_for(ORIGIN)
    assert second == Later(None)
    assert (needed, needed_again) == (True, False)
    assert site.gate.fetching == {ORIGIN}
    with pytest.raises(RuntimeError, match="being fetched already"):
        site.gate.request(ORIGIN)


def test_judge_turns_rules_into_rulings() -> None:
    """Allowed goes, forbidden is dropped, out of reach waits."""
    site = Site()
    site.answer(200, PRIVATE)
    known = [site.judge(), site.judge(f"{ORIGIN}/")]
    site.now = DAY_S
    site.answer(503)
    site.now += 10.0
    failing = site.judge()
    site.answer(503, origin="https://f.com")
    out_of_reach = site.judge("https://f.com/private")

    assert known == [Drop("robots"), GO]
    assert failing == Drop("robots")  # the copy still speaks
    assert out_of_reach == Later(DAY_S + 70.0, needs_rules=True)


@pytest.mark.parametrize("error", sorted(PASSING))
def test_fetch_that_failed_on_our_side_leaves_the_origin_unknown(error: LocalError) -> None:
    """A request that came to nothing for the moment may be made again at once."""
    site = Site()

    learned = site.answer(None, error=error)

    assert learned == []
    assert site.gate.fetching == frozenset()
    assert site.judge() == Unknown(ORIGIN)


def test_request_that_was_taken_back_leaves_the_origin_unknown() -> None:
    """Before it is sent a request may be withdrawn, and made again."""
    site = Site()

    site.gate.withdrawn(site.gate.request(ORIGIN))

    assert site.gate.fetching == frozenset()
    assert site.judge() == Unknown(ORIGIN)


def test_host_that_may_not_be_asked_gives_no_page() -> None:
    """Where not even robots.txt may be asked for there is nothing to wait for."""
    site = Site()

    site.answer(None, error=LocalError.BLOCKED_ADDRESS)

    assert site.judge() == Drop("blocked_address")


def test_redirect_to_a_host_that_may_not_be_asked_leads_nowhere() -> None:
    """The origin that was asked about has no file, as with any redirect to nowhere."""
    site = Site()
    hop = site.answer(301, location="http://10.0.0.1/robots.txt")

    learned = site.answer(None, request=hop, error=LocalError.BLOCKED_ADDRESS)

    assert [each.record.status for each in learned] == [404, 404]
    assert site.ask() == "A"


def test_request_that_is_given_up_drops_the_pages_that_wait_for_it() -> None:
    """They would wait for ever; but where there is a copy of the rules, the copy speaks."""
    site = Site()
    site.keep(site.gate.give_up(site.gate.request(ORIGIN), site.records, site.time))
    without_copy = site.judge()
    site.now = DAY_S
    site.answer(200, PRIVATE)
    site.now += DAY_S
    site.keep(site.gate.give_up(site.gate.request(ORIGIN), site.records, site.time))

    assert without_copy == Drop(UNREACHABLE)
    assert [site.judge(), site.judge(f"{ORIGIN}/")] == [Drop("robots"), GO]
    assert site.gate.fetching == frozenset()


def test_pages_of_an_unreachable_robots_wait_only_so_long() -> None:
    """With a limit of patience they are dropped when it is over."""
    site = Site(patience_s=100.0)
    site.answer(503)
    at_first = site.ask()
    site.now = 60.0
    site.answer(503)
    after_a_minute = site.ask()
    site.now = 180.0
    site.answer(503)

    assert (at_first, after_a_minute) == ("U60", "U180")
    assert site.judge() == Drop(UNREACHABLE)


def test_forgotten_rules_are_asked_for_again() -> None:
    """An operator may have an origin's robots.txt fetched again."""
    site = Site()
    site.answer(404)

    site.gate.forget(ORIGIN)
    site.gate.forget("https://never.met")

    assert len(site.gate) == 0
    assert site.gate.judge(Entry(1, f"{ORIGIN}/", "e.com", 1, 5, None, 0), 0.0) == Unknown(ORIGIN)


@pytest.mark.parametrize(
    ("cache_control", "lifetime_s"),
    [
        (None, DAY_S),
        ("max-age=3600", 3600.0),
        ("public, Max-Age = 7200", 7200.0),
        ('max-age="600"', 600.0),
        ("max-age=0", 300.0),
        ("max-age=999999999", DAY_S),
        ("no-store", 300.0),
        ("no-cache, max-age=3600", 300.0),
        ("max-age=-1", DAY_S),
        ("max-age=1_000", 300.0),
        ("max-age=" + "9" * 5000, DAY_S),
        ("s-maxage=600", DAY_S),
        ("garbage", DAY_S),
    ],
)
def test_answer_holds_for_a_day_or_for_what_it_says(
    cache_control: str | None, lifetime_s: float
) -> None:
    """Between five minutes and a day; then it has to be asked for again."""
    site = Site()
    headers = {} if cache_control is None else {"cache_control": cache_control}
    site.answer(200, PRIVATE, **headers)

    site.now = lifetime_s - 1.0
    before = site.ask()
    site.now = lifetime_s
    after = site.ask()

    assert before == "D"
    assert after == f"U{lifetime_s:g}"


def test_unreachable_is_asked_again_after_doubling_waits_even_across_restarts() -> None:
    """One minute, two, four … sixty; the record alone is enough to go on."""
    site = Site()
    waits = []
    for _ in range(9):
        site.answer(503)
        site.restart()
        due = float(site.ask()[1:])
        waits.append((due - site.now) / 60.0)
        site.now = due

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_copy_is_served_while_the_file_is_out_of_reach() -> None:
    """An old copy is better than guessing, and its file is asked for again and again."""
    site = Site()
    site.answer(200, PRIVATE)
    site.now = DAY_S
    site.answer(None)

    log = [site.ask(), site.ask("/")]
    site.now += 60.0
    log.append(site.ask())
    site.answer(500)
    site.now += 119.0
    log += [site.ask(), site.ask("/")]
    site.now += 1.0
    site.answer(404)
    log.append(site.ask())

    assert log == ["D", "A", f"U{DAY_S + 60:.6g}", "D", "A", "A"]
    assert site.records[ORIGIN].failing_since == 0.0


def test_no_file_is_no_copy() -> None:
    """A 404 of yesterday does not allow anything while the server fails today."""
    site = Site()
    site.answer(404)
    site.now = DAY_S
    site.answer(503)

    assert site.ask() == f"U{DAY_S + 60:.6g}"


def test_thirty_days_out_of_reach_is_as_good_as_none() -> None:
    """After a month without an answer the origin counts as one that has no robots.txt."""
    site = Site()
    site.answer(503)
    site.now = 30 * DAY_S - 1.0
    site.answer(503)
    before = site.ask()[0]

    site.now = 30 * DAY_S
    site.answer(503)

    assert before == "U"
    assert site.ask() == "A"


def test_fallback_of_document_003_allows_what_cannot_be_known() -> None:
    """With `unreachable="allow"` only an earlier copy still forbids, and the file is retried."""
    site = Site(unreachable="allow")
    site.answer(None)
    log = [site.ask()]
    site.now = 60.0
    log.append(site.ask())
    site.answer(200, PRIVATE)
    log.append(site.ask())
    site.now += DAY_S
    site.answer(503)
    log.append(site.ask())

    assert log == ["A", "U60", "D", "D"]


def test_ignoring_robots_asks_for_nothing() -> None:
    """With --ignore-robots every URL goes and no robots.txt is fetched."""
    site = Site(ignore=True)

    assert site.judge() is GO
    assert not site.gate.needs(ORIGIN, 0.0)
    assert site.ask() == "A"


def test_redirects_are_followed_for_the_origin_that_was_asked_about() -> None:
    """Five hops, each a request to its own host; the rules count for where we started."""
    site = Site()
    outcome = site.answer(301, location="http://www.e.com:8080/a")
    hops = []
    for _ in range(4):
        assert isinstance(outcome, RobotsRequest)
        hops.append(outcome)
        assert site.ask() == "U"
        outcome = site.answer(302, request=outcome, location="../b")
    outcome = site.answer(200, PRIVATE, request=outcome)

    assert hops[0] == RobotsRequest("http://www.e.com:8080/a", "www.e.com:8080", ORIGIN, 1)
    assert hops[1] == RobotsRequest("http://www.e.com:8080/b", "www.e.com:8080", ORIGIN, 2)
    assert [learned.origin for learned in outcome] == [ORIGIN]
    assert site.ask() == "D"


@pytest.mark.parametrize("location", ["", "mailto:me@e.com", "https://[bad/", "http://\x00/"])
def test_redirect_to_nowhere_is_no_robots(location: str) -> None:
    """A Location that cannot be fetched means that there is no file."""
    site = Site()
    site.answer(302, location=location)

    assert site.ask() == "A"


def test_redirects_without_end_are_no_robots() -> None:
    """The sixth redirect is not followed."""
    site = Site()
    outcome = site.answer(302, location="/again")
    requests = 1
    while isinstance(outcome, RobotsRequest):
        outcome = site.answer(302, request=outcome, location="/again")
        requests += 1

    assert requests == 6
    assert site.ask() == "A"
    assert site.gate.fetching == frozenset()


def test_redirect_to_another_origins_robots_teaches_both() -> None:
    """The usual http to https redirect costs two requests, not three; sitemaps are told once."""
    site = Site()
    hop = site.answer(301, origin="http://e.com", location=f"{ORIGIN}/robots.txt")

    learned = site.answer(200, PRIVATE, request=hop)

    assert [each.origin for each in learned] == ["http://e.com", ORIGIN]
    assert [each.sitemaps for each in learned] == [("https://e.com/s.xml",), ()]
    assert [site.ask(origin="http://e.com"), site.ask()] == ["D", "D"]


def test_redirect_into_a_folder_teaches_only_who_was_asked_about() -> None:
    """A file of that name is an origin's own only at the top."""
    site = Site()
    hop = site.answer(301, origin="http://e.com", location=f"{ORIGIN}/a/robots.txt")

    learned = site.answer(200, PRIVATE, request=hop)

    assert [each.origin for each in learned] == ["http://e.com"]


def test_redirect_does_not_overrule_what_an_origin_said_itself() -> None:
    """Rules that are known and fresh are not replaced by another origin's request."""
    site = Site()
    site.answer(404)
    hop = site.answer(301, origin="http://e.com", location=f"{ORIGIN}/robots.txt")

    learned = site.answer(200, PRIVATE, request=hop)

    assert [each.origin for each in learned] == ["http://e.com"]
    assert site.ask() == "A"


def test_what_was_learned_is_told_with_the_record() -> None:
    """The engine gets the wish about pace, the sitemaps and what to store, in wall time."""
    site = Site()
    site.now = 7.0

    (learned,) = site.answer(200, PRIVATE)

    assert learned.host == "e.com"
    assert learned.crawl_delay_s == 3.0
    assert learned.sitemaps == ("https://e.com/s.xml",)
    assert learned.record == RobotsRecord(
        origin=ORIGIN,
        status=200,
        body=PRIVATE,
        fetched_at=EPOCH + 7.0,
        expires_at=EPOCH + 7.0 + DAY_S,
    )


def test_sitemaps_are_reported_once() -> None:
    """A file that is read again tomorrow, or after a restart, only tells what is new in it."""
    site = Site()
    site.answer(200, PRIVATE)
    site.restart()
    site.ask()
    site.now = DAY_S

    (learned,) = site.answer(200, PRIVATE + b"Sitemap: https://e.com/new.xml\n")

    assert site.loaded[0].sitemaps == ()
    assert learned.sitemaps == ("https://e.com/new.xml",)


def test_two_origins_of_a_host_share_the_longer_delay() -> None:
    """Both schemes have one pace, so the larger wish holds whichever is read last."""
    site = Site()
    site.answer(200, PRIVATE)

    (learned,) = site.answer(404, origin="http://e.com")

    assert learned.crawl_delay_s == 3.0


def test_rules_survive_a_restart() -> None:
    """A stored robots.txt is used without a request, until it expires, and its delay is told."""
    site = Site()
    site.answer(200, PRIVATE)

    site.restart()
    site.now = 3600.0

    assert site.ask() == "D"
    assert [(each.host, each.crawl_delay_s) for each in site.loaded] == [("e.com", 3.0)]
    site.now = DAY_S
    assert site.ask() == f"U{DAY_S:g}"


def test_record_from_the_future_holds_for_a_day() -> None:
    """A wall clock that was years ahead does not make a robots.txt immortal."""
    site = Site()
    site.records[ORIGIN] = RobotsRecord(
        origin=ORIGIN, status=200, body=PRIVATE, fetched_at=EPOCH * 2, expires_at=EPOCH * 2
    )
    before = site.ask()

    site.now = DAY_S

    assert before == "D"
    assert site.ask() == f"U{DAY_S:g}"


def test_memory_is_bounded_by_the_size_of_the_files() -> None:
    """Rules used longest ago are let go, and read from the store when they are needed again."""
    site = Site(memory_bytes=10_000)
    for number in range(10):
        site.answer(200, PRIVATE, origin=f"https://e{number}.com")

    kept = len(site.gate)
    verdicts = [site.ask(origin=f"https://e{number}.com") for number in range(10)]

    assert kept == 3
    assert verdicts == ["D"] * 10
    assert len(site.gate) == 3


def test_one_large_file_is_kept_although_it_exceeds_the_memory() -> None:
    """The bound never makes an origin unusable: the rules in use stay."""
    site = Site(memory_bytes=100)
    site.answer(200, PRIVATE)

    assert len(site.gate) == 1
    assert site.ask() == "D"


def test_large_file_is_cut_not_refused() -> None:
    """Rules within the first 500 KiB count, and no more is stored."""
    site = Site()
    body = PRIVATE + b"#" * (10 * 1024 * 1024) + b"\nDisallow: /late\n"

    (learned,) = site.answer(200, body)

    assert len(learned.record.body) == MAX_BODY_BYTES
    assert [site.ask(), site.ask("/late")] == ["D", "A"]


@pytest.mark.parametrize(
    "body", [b"<!doctype html><title>Hi</title>", bytes(range(256)), "Hi".encode("utf-16"), b""]
)
def test_what_is_no_robots_txt_forbids_nothing(body: bytes) -> None:
    """HTML, binary, UTF-16 and nothing at all have no rules."""
    site = Site()
    site.answer(200, body)

    assert site.ask() == "A"


def crash(body: bytes) -> Robots:
    """A parser with a bug that only one file finds."""
    if b"bug" in body:
        raise RecursionError
    return Robots.parse(body)


@pytest.mark.parametrize(
    ("lines", "delay_s"),
    [
        (b"Request-rate: 1/5", 5.0),
        (b"Request-rate: 30/1m", 2.0),
        (b"Crawl-delay: 3\nRequest-rate: 1/5", 5.0),
        (b"Crawl-delay: 8\nRequest-rate: 1/5", 8.0),
        (b"Request-rate: 1/10 0600-0845", 10.0),
        (b"Request-rate: fast", None),
        (b"Crawl-delay: 0", 0.0),
        (b"Crawl-delay: 1e9", 1e9),
        (b"Crawl-delay: 1e999", LONGEST_WAIT_S),
        (b"Request-rate: 1/999999999h", LONGEST_WAIT_S),
        *((b"Crawl-delay: " + text, None) for text in (b"-1", b"nan", b"1_000")),
    ],
)
def test_the_longer_of_crawl_delay_and_request_rate_is_told(
    lines: bytes, delay_s: float | None
) -> None:
    """Both bound the gap between two requests; what is no number counts as absent."""
    (learned,) = Site().answer(200, b"User-agent: *\n" + lines)

    assert learned.crawl_delay_s == delay_s


def test_parser_that_fails_costs_one_origin() -> None:
    """The origin whose file our parser cannot bear is left alone; the next is served."""
    site = Site(parse=crash)
    (learned,) = site.answer(200, b"bug")
    site.answer(200, PRIVATE, origin="https://f.com")

    assert site.ask("/") == "D"
    assert learned.crawl_delay_s is None
    assert site.ask("/", origin="https://f.com") == "A"


class Crooked(Robots):
    """Rules that parse well and fail when they are asked."""

    __slots__ = ()

    def allowed(self, url: str, agent: str) -> bool:
        raise ZeroDivisionError

    def crawl_delay_s(self, agent: str) -> float | None:
        raise ZeroDivisionError


def test_rules_that_fail_when_asked_cost_one_origin() -> None:
    """A crash in matching is a refusal too, not an exception."""
    site = Site(parse=Crooked.parse)
    site.answer(200, PRIVATE)

    assert site.ask() == "D"


def test_memory_of_hostile_files_is_bounded() -> None:
    """The rules of a large file count thirty times its size: two of half a megabyte fill 32 MB."""
    site = Site(memory_bytes=32 * 1024 * 1024)
    lines = "".join(f"Disallow: /*%61{number}*\n" for number in range(20_000))

    for number in range(5):
        site.answer(200, f"# {number}\n{lines}".encode(), origin=f"https://h{number}.example")

    assert len(site.gate) == 2


def test_repr_tells_the_sizes() -> None:
    """What an operator sees in a debugger is enough to know the state."""
    site = Site()
    site.answer(200)
    site.gate.request("https://f.com")

    assert repr(site.gate) == "<RobotsGate 1 known, 1 being fetched>"
