"""What a robots.txt, or the lack of one, means for an origin, and for how long."""

from __future__ import annotations

import pytest

from mannerly.crawler.model import Drop, Entry, First, Later, RobotsRecord, RobotsRequest, Ruling
from mannerly.crawler.robots.answer import MAX_BODY_BYTES
from mannerly.crawler.robots.cache import (
    Allowed,
    Disallowed,
    Hop,
    Learned,
    RobotsCache,
    Unknown,
)
from mannerly.politeness.robots import Robots

ORIGIN = "https://e.com"
AGENT = "mannerly/0.1 (+https://example.org)"
PRIVATE = b"User-agent: *\nDisallow: /private\nCrawl-delay: 3\nSitemap: https://e.com/s.xml\n"
EPOCH = 1_700_000_000.0
DAY_S = 86_400.0


class Site:
    """A cache with a store behind it, and a clock that reads `now` here and EPOCH + now outside."""

    def __init__(self, **settings) -> None:
        self.settings = settings
        self.records: dict[str, RobotsRecord] = {}
        self.loaded: list[Learned] = []
        self.now = 0.0
        self.restart()

    def restart(self) -> None:
        self.cache = RobotsCache(
            AGENT,
            load=self.records.get,
            on_loaded=lambda learned, _: self.loaded.append(learned),
            **self.settings,
        )

    def ask(self, path: str = "/private", origin: str = ORIGIN) -> str:
        """One letter: Allowed, Disallowed, Unknown; and when to ask for it."""
        match self.cache.verdict(origin, origin + path, now=self.now, wall=EPOCH + self.now):
            case Allowed():
                return "A"
            case Disallowed():
                return "D"
            case Unknown(due=None):
                return "U"
            case Unknown(due=due):
                return f"U{due:g}"

    def answer(
        self, status: int | None, body: bytes = b"", errand: RobotsRequest | None = None, **headers
    ):
        errand = errand or RobotsRequest(f"{ORIGIN}/robots.txt", "e.com", ORIGIN)
        self.cache.begin(errand)
        outcome = self.cache.fetched(
            errand,
            status=status,
            body=body,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            now=self.now,
            wall=EPOCH + self.now,
        )
        if isinstance(outcome, list):
            self.records.update({learned.record.origin: learned.record for learned in outcome})
        return outcome

    def rule(self, url: str = f"{ORIGIN}/private"):
        entry = Entry(1, url, "e.com", 1, 5, None, 0, 0)
        return self.cache.rule(entry, now=self.now, wall=EPOCH + self.now)


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
    """The judge sends robots.txt first; while it is under way nothing else is sent."""
    site = Site()
    errand = RobotsRequest(f"{ORIGIN}/robots.txt", "e.com", ORIGIN)

    first = site.rule()
    site.cache.begin(errand)
    second = site.rule()

    assert first == First(errand)
    assert second == Later(None)
    assert site.cache.fetching == {ORIGIN}
    with pytest.raises(RuntimeError, match="being fetched already"):
        site.cache.begin(RobotsRequest(f"{ORIGIN}/other", "e.com", ORIGIN))


def test_judge_turns_verdicts_into_rulings() -> None:
    """Allowed goes, forbidden is dropped, out of reach waits."""
    site = Site()
    site.answer(200, PRIVATE)
    known = [site.rule(), site.rule(f"{ORIGIN}/")]
    site.now = DAY_S
    site.answer(503)
    site.now += 10.0
    failing = site.rule()

    assert known == [Drop("robots"), Ruling.GO]
    assert failing == Drop("robots")  # the copy still speaks


def test_abandoned_fetch_leaves_the_origin_unknown() -> None:
    """An errand that came to nothing on our side may be run again at once."""
    site = Site()
    errand = site.rule().errand
    site.cache.begin(errand)

    site.cache.abandon(errand)

    assert site.cache.fetching == frozenset()
    assert site.rule() == First(errand)


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

    assert site.rule() is Ruling.GO
    assert site.ask() == "A"


def test_redirects_are_followed_for_the_origin_that_was_asked_about() -> None:
    """Five hops, each an errand to its own host; the rules count for where we started."""
    site = Site()
    outcome = site.answer(301, location="http://www.e.com:8080/a")
    hops = []
    for _ in range(4):
        assert isinstance(outcome, Hop)
        hops.append(outcome.errand)
        assert site.ask() == "U"
        outcome = site.answer(302, errand=outcome.errand, location="../b")
    outcome = site.answer(200, PRIVATE, errand=outcome.errand)

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
    while isinstance(outcome, Hop):
        outcome = site.answer(302, errand=outcome.errand, location="/again")
        requests += 1

    assert requests == 6
    assert site.ask() == "A"
    assert site.cache.fetching == frozenset()


def test_redirect_to_another_origins_robots_teaches_both() -> None:
    """The usual http to https redirect costs two requests, not three; sitemaps are told once."""
    site = Site()
    plain = RobotsRequest("http://e.com/robots.txt", "e.com", "http://e.com")
    hop = site.answer(301, errand=plain, location=f"{ORIGIN}/robots.txt")

    learned = site.answer(200, PRIVATE, errand=hop.errand)

    assert [each.origin for each in learned] == ["http://e.com", ORIGIN]
    assert [each.sitemaps for each in learned] == [("https://e.com/s.xml",), ()]
    assert [site.ask(origin="http://e.com"), site.ask()] == ["D", "D"]


def test_redirect_into_a_folder_teaches_only_who_was_asked_about() -> None:
    """A file of that name is an origin's own only at the top."""
    site = Site()
    plain = RobotsRequest("http://e.com/robots.txt", "e.com", "http://e.com")
    hop = site.answer(301, errand=plain, location=f"{ORIGIN}/a/robots.txt")

    learned = site.answer(200, PRIVATE, errand=hop.errand)

    assert [each.origin for each in learned] == ["http://e.com"]


def test_redirect_does_not_overrule_what_an_origin_said_itself() -> None:
    """Rules that are known and fresh are not replaced by somebody else's errand."""
    site = Site()
    site.answer(404)
    plain = RobotsRequest("http://e.com/robots.txt", "e.com", "http://e.com")
    hop = site.answer(301, errand=plain, location=f"{ORIGIN}/robots.txt")

    learned = site.answer(200, PRIVATE, errand=hop.errand)

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

    plain = RobotsRequest("http://e.com/robots.txt", "e.com", "http://e.com")
    (learned,) = site.answer(404, errand=plain)

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
        origin = f"https://e{number}.com"
        site.answer(
            200, PRIVATE, errand=RobotsRequest(f"{origin}/robots.txt", f"e{number}.com", origin)
        )

    kept = len(site.cache)
    verdicts = [site.ask(origin=f"https://e{number}.com") for number in range(10)]

    assert kept == 4
    assert verdicts == ["D"] * 10
    assert len(site.cache) == 4


def test_one_large_file_is_kept_although_it_exceeds_the_memory() -> None:
    """The bound never makes an origin unusable: the rules in use stay."""
    site = Site(memory_bytes=100)
    site.answer(200, PRIVATE)

    assert len(site.cache) == 1
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


def test_parser_that_fails_costs_one_origin() -> None:
    """The origin whose file our parser cannot bear is left alone; the next is served."""
    site = Site(parse=crash)
    (learned,) = site.answer(200, b"bug")
    other = RobotsRequest("https://f.com/robots.txt", "f.com", "https://f.com")
    site.answer(200, PRIVATE, errand=other)

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


def test_repr_tells_the_sizes() -> None:
    """What an operator sees in a debugger is enough to know the state."""
    site = Site()
    site.answer(200)
    site.cache.begin(RobotsRequest("https://f.com/robots.txt", "f.com", "https://f.com"))

    assert repr(site.cache) == "<RobotsCache 1 known, 1 being fetched>"
