"""Claims about Retry-After and the RateLimit dialects."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.politeness.cases import case

from mannerly.politeness.bounds import LONGEST_WAIT_S
from mannerly.politeness.headers import (
    MAX_WAIT_S,
    RELEVANT,
    RateLimits,
    lowered,
    rate_limits,
    retry_after_s,
)

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784111777.0  # the same instant


def wait(value: str, *, date: str | None = DATE, received_at: float | None = None) -> float | None:
    return retry_after_s(value, date=date, received_at=received_at)


def limits(in_flight: int = 0, **fields: str) -> RateLimits | None:
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    return rate_limits(headers, in_flight=in_flight, received_at=None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7.0),
        (" 7\t", 7.0),
        ("007", 7.0),
        ("86400", MAX_WAIT_S),
        ("172800", 172_800.0),
        ("3153600000", LONGEST_WAIT_S),
        ("9999999999999999999", LONGEST_WAIT_S),
        ("9" * 5_000, LONGEST_WAIT_S),
        ("60, 120", 120.0),
        ("1.5", 2.0),
        ("0.2", 1.0),
    ],
)
def test_retry_after_reads_seconds(value: str, expected: float) -> None:
    """Whole seconds are taken in full up to 100 years, fractions rounded up; the longer holds."""
    assert wait(value) == expected


def test_retry_after_that_is_no_wait_counts_as_absent() -> None:
    """Zero, signs, other scripts' digits and garbage leave the caller's own backoff in force."""
    cases: list[str] = [
        *("", " ", "0", "0.0", "-5", "+5", "inf", "nan", "1e20", "1_000", "９", "٣", "7s", "7, x"),
        *("7" + " " * 5_000 + "x", "\x007", "7\n", "soon", "0x10", ".5", "5."),
    ]
    for value in cases:
        with case(value):
            assert wait(value) is None


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:50:07 GMT",
        "Sunday, 06-Nov-94 08:50:07 GMT",
        "Sun Nov  6 08:50:07 1994",
        " Sun, 06 Nov 1994 08:50:07 GMT ",
    ],
)
def test_retry_after_reads_all_three_date_forms(value: str) -> None:
    """The three forms of RFC 9110 name the same instant."""
    assert wait(value) == 30.0


def test_retry_after_date_in_the_past_or_malformed_counts_as_absent() -> None:
    """A date that is over, impossible or in no legal form says nothing."""
    cases: list[str] = [
        "Sun, 06 Nov 1994 08:49:37 GMT",  # now
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sunday, 06-Nov-70 08:50:07 GMT",  # the last century
        "Sun, 31 Feb 1995 08:50:07 GMT",
        "Sun, 06 Nov 1994 24:50:07 GMT",
        "Sun, 06 Nov 0000 08:50:07 GMT",
        "Sun, 06 Nov 1994 08:50:61 GMT",
        "Sun, 6 Nov 1994 08:50:07 GMT",
        "Sun, 06 Nov 1994 08:50:07 CET",
        "Sun, 06 Nov 1994 08:50:07",
        "sun, 06 nov 1994 08:50:07 gmt",
        "Sun, ０6 Nov 1994 08:50:07 GMT",
        "1994-11-06T08:50:07Z",
    ]
    for value in cases:
        with case(value):
            assert wait(value) is None


def test_retry_after_date_takes_a_leap_second() -> None:
    """Second 60 is legal in the grammar and is read as 59."""
    assert wait("Sun, 06 Nov 1994 08:49:60 GMT") == 22.0


def test_retry_after_date_far_away_is_kept_up_to_a_hundred_years() -> None:
    """A date in the year 2050 is kept in full; one in the year 9999 counts as a hundred years."""
    assert wait("Sat, 01 Jan 2050 00:00:00 GMT") == 2_524_608_000.0 - EPOCH
    assert wait("Fri, 31 Dec 9999 23:59:59 GMT") == LONGEST_WAIT_S


def test_retry_after_date_is_relative_to_the_server_clock() -> None:
    """A wrong local clock does no harm as long as the response has a Date."""
    value = "Sun, 06 Nov 1994 08:50:07 GMT"

    assert wait(value, received_at=EPOCH + 4_000) == 30.0
    assert wait(value, date=None, received_at=EPOCH + 10) == 20.0
    assert wait(value, date="yesterday", received_at=EPOCH + 10) == 20.0
    assert wait(value, date=None) is None


@given(st.integers(1, 86_400), st.integers(0, 3_000_000_000))
def test_retry_after_date_agrees_with_the_standard_library(delay_s: int, sent_at: int) -> None:
    """Any date that the standard library writes is read back to the second."""
    sent = datetime.fromtimestamp(sent_at, UTC)
    until = sent + timedelta(seconds=delay_s)

    result = wait(format_datetime(until, usegmt=True), date=format_datetime(sent, usegmt=True))

    assert result == delay_s


@given(st.text(), st.none() | st.text(), st.none() | st.floats())
def test_retry_after_never_raises(value: str, date: str | None, received_at: float | None) -> None:
    """Whatever comes, the answer is None or a wait."""
    result = retry_after_s(value, date=date, received_at=received_at)

    assert result is None or result > 0


def test_remaining_quota_is_spread_over_the_time_left() -> None:
    """Draft 08: 50 left for 30 s, ten of them spoken for, 5 % kept back."""
    result = limits(
        10, ratelimit='"default";r=50;t=30', ratelimit_policy='"default";q=100;w=60;qu="requests"'
    )

    assert result == RateLimits(rate=pytest.approx(0.95 * 40 / 30), valid_s=30.0)


def test_policy_without_state_gives_quota_per_window() -> None:
    """Without a reset time the quota is spread over its window."""
    result = limits(ratelimit_policy='"default";q=100;w=60')

    assert result == RateLimits(rate=pytest.approx(0.95 * 100 / 60), valid_s=60.0)


def test_strictest_of_several_policies_counts() -> None:
    """The minimum over all policies, those without a state included, is the rate."""
    result = limits(
        ratelimit='"hour";r=900;t=3000',
        ratelimit_policy='"hour";q=1000;w=3600, "second";q=10;w=1',
    )

    assert result == RateLimits(rate=pytest.approx(0.95 * 0.3), valid_s=3000.0)


def test_used_up_quota_blocks_until_its_reset() -> None:
    """r=0 is a block, not a rate of zero."""
    assert limits(ratelimit='"default";r=0;t=12') == RateLimits(blocked_s=12.0, valid_s=12.0)


def test_block_is_capped_at_a_day() -> None:
    """A monthly quota that is used up stops the host for a day before the next look."""
    result = limits(ratelimit='"month";r=0;t=2000000')

    assert result == RateLimits(blocked_s=MAX_WAIT_S, valid_s=MAX_WAIT_S)


def test_quota_that_is_all_in_flight_leaves_a_trickle() -> None:
    """The rate is never zero: one request per reset time reaches past the reset."""
    result = limits(8, ratelimit='"default";r=5;t=10')

    assert result == RateLimits(rate=pytest.approx(0.095), valid_s=10.0)


def test_reset_of_zero_seconds_counts_as_one() -> None:
    """Senders round to whole seconds: a reset in 0 s counts as 1 s."""
    assert limits(ratelimit='"default";r=0;t=0') == RateLimits(blocked_s=1.0, valid_s=1.0)


def test_concurrency_quota_becomes_a_cap() -> None:
    """A quota of concurrent requests limits what is in flight, not the rate."""
    result = limits(ratelimit_policy='"slots";q=4;qu="concurrent-requests"')

    assert result == RateLimits(concurrency=4)


def test_byte_quota_becomes_a_bandwidth() -> None:
    """A quota of content bytes limits the bandwidth, and requests in flight do not count."""
    result = limits(
        5, ratelimit='"bytes";r=1000;t=10', ratelimit_policy='"bytes";q=9999;qu="content-bytes"'
    )

    assert result == RateLimits(bytes_per_s=pytest.approx(95.0), valid_s=10.0)


def test_unknown_quota_unit_is_skipped() -> None:
    """A limit on we know not what leaves the other policies in force."""
    result = limits(ratelimit_policy='"cpu";q=1;w=60;qu="cpu-seconds", "default";q=60;w=60')

    assert result == RateLimits(rate=pytest.approx(0.95), valid_s=60.0)
    assert limits(ratelimit_policy='"cpu";q=1;w=60;qu="cpu-seconds"') is None


def test_every_dialect_says_the_same() -> None:
    """Names, drafts and units of the reset differ; 50 left for 30 s is always the same rate."""
    cases: list[dict[str, str]] = [
        {"ratelimit": "limit=100, remaining=50, reset=30", "ratelimit-policy": "100;w=60"},
        {"ratelimit": "limit=100,remaining=50,reset=30"},
        {"ratelimit": "default;r=50;t=30"},
        {"ratelimit-limit": "100", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
        {"x-ratelimit-remaining": "50.0", "x-ratelimit-reset": "30"},
        {"x-rate-limit-limit": "9", "x-rate-limit-remaining": "50", "x-rate-limit-reset": "30"},
        {
            "x-ratelimit-remaining": "50",
            "x-ratelimit-reset": "1700003630",
            "date": "Tue, 14 Nov 2023 23:13:20 GMT",
        },
        {"x-ratelimit-remaining": "50", "x-ratelimit-reset": "1700000030000", "date": "?"},
        {
            "ratelimit": "half a field;",
            "x-ratelimit-limit": '60, 60;w=1;name="envoy"',
            "x-ratelimit-remaining": "50",
            "x-ratelimit-reset": "30",
        },
    ]
    for headers in cases:
        with case(headers):
            result = rate_limits(headers, in_flight=0, received_at=1_700_000_000.0)

            assert result == RateLimits(rate=pytest.approx(0.95 * 50 / 30), valid_s=30.0)


def test_window_on_the_limit_field_is_used_without_a_reset() -> None:
    """Registries that send `100;w=21600` and no reset get their quota spread over the window."""
    result = limits(ratelimit_limit="100;w=21600", ratelimit_remaining="76;w=21600")

    assert result == RateLimits(rate=pytest.approx(0.95 * 100 / 21_600), valid_s=21_600.0)


@pytest.mark.parametrize(
    ("remaining", "is_low"), [("0", True), ("9", True), ("10", False), ("100", False)]
)
def test_low_remaining_is_all_that_an_undated_quota_says(remaining: str, is_low: bool) -> None:
    """Without reset and window, less than a tenth of the quota asks for a slower pace."""
    result = limits(x_ratelimit_limit="100", x_ratelimit_remaining=remaining)

    assert result == RateLimits(low_remaining=is_low)


def test_reset_instant_that_is_over_is_no_reset() -> None:
    """A reset before the response's own Date must not turn the quota into a one-second burst."""
    result = rate_limits(
        {"x-ratelimit-remaining": "500", "x-ratelimit-reset": "1700000000"},
        in_flight=0,
        received_at=1_700_000_001.0,
    )

    assert result == RateLimits()


def test_reset_instant_without_any_clock_is_no_reset() -> None:
    """Neither Date nor time of arrival: an instant cannot become a span."""
    result = limits(x_ratelimit_remaining="0", x_ratelimit_reset="1700000000")

    assert result == RateLimits(low_remaining=True)


def test_valid_retry_after_outranks_the_reset() -> None:
    """With a Retry-After the reset time is left out; an unusable one changes nothing."""
    fields = {"ratelimit": '"d";r=0;t=12', "ratelimit_policy": '"d";q=60;w=60'}

    assert limits(**fields, retry_after="3") == RateLimits(rate=pytest.approx(0.95), valid_s=60.0)
    assert limits(**fields, retry_after="0") == RateLimits(blocked_s=12.0, valid_s=12.0)


@pytest.mark.parametrize(("age", "is_ignored"), [("0", False), ("x", False), ("1", True)])
def test_cached_response_says_nothing(age: str, is_ignored: bool) -> None:
    """With an Age above zero the quota is outdated and ignored."""
    result = limits(ratelimit='"default";r=0;t=12', age=age)

    assert (result is None) is is_ignored


def test_malformed_field_is_ignored_as_a_whole() -> None:
    """A field with a syntax error is ignored as a whole."""
    cases: list[str] = [
        '"default"',
        '"default";r=50;t=soon',
        '"default";r=-1;t=30',
        '"default";r=50;t=30, broken',
        '"default";r=50;t=30,',
        '"default;r=50',
        '"default";r=1_000;t=30',
        '"default";r=５０;t=30',
        '"default";r=1e3;t=30',
        '"default";r=9999999999999999;t=30',
        "limit=100, reset=30",
        "limit=0, remaining=0, reset=30",
        "limit=, remaining=",
        "",
        ",",
        "\ud800",
        ", ".join(['"d";r=1;t=1'] * 33),
        '"d";r=1;t=1;x=' + "a" * 5_000,
    ]
    for field in cases:
        with case(field):
            assert limits(ratelimit=field) is None


@pytest.mark.parametrize(
    "policy", ["0;w=60", "100;w=0", '"a";w=60', '"a";q=1;w=60, "b";q=x', "100;w=60;"]
)
def test_malformed_policy_leaves_the_state_in_force(policy: str) -> None:
    """Each field stands for itself: a broken policy does not unsay the state."""
    result = limits(ratelimit='"a";r=50;t=50', ratelimit_policy=policy)

    assert result == RateLimits(rate=pytest.approx(0.95), valid_s=50.0)


@pytest.mark.parametrize("value", ["-1", "unlimited", "5, 6", "", "1 2"])
def test_malformed_number_ignores_the_triple(value: str) -> None:
    """One bad number of the three spoils all three."""
    assert limits(x_ratelimit_remaining=value, x_ratelimit_reset="30") is None
    assert limits(x_ratelimit_remaining="5", x_ratelimit_reset=value) is None


def test_limit_alone_says_nothing() -> None:
    """A quota without window, reset or remaining count cannot be paced."""
    assert limits(x_ratelimit_limit="60") is None
    assert limits() is None


fragments = st.sampled_from(
    [
        '"a"',
        "a",
        ";r=",
        ";t=",
        ";q=",
        ";w=",
        ';qu="concurrent-requests"',
        "=",
        ",",
        " ",
        "0",
        "1",
        "100",
        "1.5",
        "-",
        '"',
        "\\",
    ]
) | st.text(max_size=3)
field_values = st.lists(fragments, max_size=12).map("".join)
field_names = st.sampled_from(
    sorted(lowered(dict.fromkeys(RELEVANT, "")) | {"date": "", "age": ""})
)


@given(st.dictionaries(field_names, field_values), st.integers(0, 99), st.none() | st.floats())
def test_rate_limits_never_raises(
    headers: dict[str, str], in_flight: int, received_at: float | None
) -> None:
    """Whatever comes, the numbers that leave are finite, positive and usable as divisors."""
    result = rate_limits(headers, in_flight=in_flight, received_at=received_at)

    if result is not None:
        numbers = (result.rate, result.blocked_s, result.bytes_per_s, result.concurrency)
        assert all(number is None or 0 < number < math.inf for number in numbers)
        assert 0 < result.valid_s <= MAX_WAIT_S


def test_huge_fields_cost_little() -> None:
    """A megabyte in every field is refused in milliseconds: no pattern backtracks."""
    cases: list[str] = [" ", ";a", "a,", ';a="', "a" * 9 + ";", '"\\"', "1", ";=", "*"]
    for piece in cases:
        with case(piece):
            for size in (4_000, 1_000_000):
                headers = dict.fromkeys(
                    lowered(dict.fromkeys(RELEVANT, "")), piece * (size // len(piece))
                )
                started = time.process_time()

                rate_limits(headers | {"date": "0" * size, "age": "0" * size}, in_flight=0)

                assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "name",
    ["Retry-After", "retry-after", "RateLimit", "X-Ratelimit-Reset", "X-RateLimit-Remaining"],
)
def test_relevant_knows_the_common_spellings(name: str) -> None:
    """One set operation is enough to see that a response speaks of limits."""
    assert not RELEVANT.isdisjoint({name: "1", "Date": DATE})
    assert RELEVANT.isdisjoint({"Date": DATE, "Age": "0", "Content-Type": "text/html"})


def test_lowered_keeps_only_what_is_read() -> None:
    """Names become lower-case, and headers that are not read are left out."""
    headers = {"RETRY-after": "7", "Date": DATE, "AGE": "0", "Set-Cookie": "a=b", "RateLimit": "x"}

    assert lowered(headers) == {"retry-after": "7", "date": DATE, "age": "0", "ratelimit": "x"}
