"""The age of a stamp is never larger than the time that has passed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mannerly.database.ages import MANY, SLACK, Ages

STEPS_S = st.floats(0.0, 100.0)


def test_the_age_of_a_stamp_of_this_machine_is_exact() -> None:
    """Another process of the same boot reads the same clock."""
    writer, reader = Ages("boot"), Ages("boot")

    stamp = writer.stamp(100.0)

    assert reader.age_s(stamp, 160.0) == 60.0


def test_a_stamp_that_cannot_be_read_has_no_age() -> None:
    """It is taken for new."""
    assert [Ages("boot").age_s(text, 5.0) for text in ("", "boot", "boot:", "boot:x")] == [0.0] * 4


def test_another_machine_is_known_by_the_newest_of_its_stamps() -> None:
    """A later stamp tells how old an earlier one is, although that is seen for the first time."""
    other, ours = Ages("other", origin_s=5000.0), Ages("ours")

    ours.age_s(other.stamp(160.0), 160.0)

    assert 59.9 <= ours.age_s(other.stamp(100.0), 160.0) <= 60.0


@given(
    origin_s=st.floats(-1e6, 1e6),
    steps=st.lists(st.tuples(STEPS_S, STEPS_S, st.booleans()), min_size=1, max_size=20),
    speed=st.floats(1.0 - SLACK / 2, 1.0 + SLACK / 2),
)
def test_an_age_is_never_too_large(
    origin_s: float, steps: list[tuple[float, float, bool]], speed: float
) -> None:
    """Whatever the other clock shows, however late stamps are seen, at any speed within SLACK."""
    other, ours, now = Ages("other", origin_s=2e6), Ages("ours"), 1000.0
    made: list[tuple[str, float]] = []
    for before_s, seen_after_s, is_again in steps:
        now += before_s
        made.append((other.stamp(origin_s + now * speed), now))
        now += seen_after_s
        stamp, at = made[0] if is_again else made[-1]

        age_s = ours.age_s(stamp, now)

        assert age_s <= (now - at) * (1.0 + SLACK) + 0.002


def test_machines_that_were_not_seen_for_longest_are_forgotten() -> None:
    """What is known of them does not grow without bound."""
    ours, first = Ages("ours"), Ages("boot-0").stamp(1.0)
    for number in range(MANY + 1):
        ours.age_s(Ages(f"boot-{number}").stamp(1.0), float(number))

    age_s = ours.age_s(first, MANY + 10.0)

    assert age_s == 0.0
