"""What a request carries: its codec, its identity, its way through redirects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mannerly.crawler.kinds import Kind
from mannerly.crawler.payload import (
    MAX_BODY,
    MAX_DATA,
    Payload,
    decode,
    encode,
    payload,
    was_refused,
)

URL = "https://shop.example/api"
_NAMES = st.from_regex(r"X-[A-Za-z0-9]{1,8}", fullmatch=True)
_VALUES = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), max_size=20)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
_REFERENCES = st.sampled_from(["env:TOKEN", "file:/run/secret"])


@st.composite
def payloads(draw: st.DrawFn) -> Payload:
    """Any payload that differs from a plain request."""
    parts: dict[str, Any] = {
        "method": draw(st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"])),
        "headers": draw(st.dictionaries(_NAMES, _VALUES, max_size=3)),
        "label": draw(st.sampled_from(["", "product", "größe"])),
        "data": draw(_JSON),
        "session": draw(st.sampled_from(["", "a"])),
        "is_idempotent": draw(st.booleans()),
        "again": draw(st.sampled_from(["", "7.1"])),
    }
    if parts["method"] not in ("GET", "HEAD"):
        if draw(st.booleans()):
            parts["body"] = draw(st.binary(max_size=50))
        else:
            parts["form"] = draw(st.dictionaries(_VALUES, _VALUES, max_size=3))
    parts["secrets"] = tuple(draw(st.dictionaries(_NAMES, _REFERENCES, max_size=2)).items())
    return payload(**parts) or Payload(label="plain")


@given(payloads())
def test_a_payload_is_read_as_it_was_written(made: Payload) -> None:
    """Every field, and again the same bytes."""
    assert decode(encode(made)) == made
    assert encode(decode(encode(made))) == encode(made)


@given(_JSON)
def test_data_come_back_as_they_were(data: Any) -> None:
    """{} stands for none."""
    made = payload(label="x", data=data)

    assert made is not None
    assert made.data == ({} if data is None else data)


@given(payloads(), payloads())
def test_requests_are_the_same_by_url_method_and_body(one: Payload, other: Payload) -> None:
    """Not by label, data, headers or session."""
    key = (one.method, one.body, one.form, one.again)
    is_same = key == (other.method, other.body, other.form, other.again)

    assert (one.identity(URL) == other.identity(URL)) == is_same
    assert one.identity(URL).startswith(URL)
    assert (one.identity(URL) == URL) == (one.method == "GET" and not one.again)


@given(payloads(), st.sampled_from([301, 302, 303, 307, 308]))
def test_no_header_and_no_secret_leaves_its_origin(made: Payload, status: int) -> None:
    """Label, data and session go with a redirect, and what refers to secrets does not."""
    try:
        target = made.redirected(status, is_same_origin=False)
    except ValueError:
        assert len(made.form) > 0 < len(made.references)
        return

    assert target is None or (target.headers, target.references) == ((), ())
    kept = Payload() if target is None else target
    assert (kept.label, kept.json, kept.session) == (made.label, made.json, made.session)


@given(payloads(), st.sampled_from([301, 302, 303, 307, 308]))
def test_references_still_name_the_same_values_after_a_redirect(made: Payload, status: int) -> None:
    """However many headers were left out before them."""
    target = made.redirected(status, is_same_origin=True) or Payload()

    before = [(made.headers + made.form)[place] for place in made.references]
    after = [(target.headers + target.form)[place] for place in target.references]
    assert after == [each for each in before if each in target.headers + target.form]
    assert decode(encode(target)) == target


@pytest.mark.parametrize(
    ("method", "status", "becomes"),
    [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("HEAD", 303, "HEAD"),
    ],
)
def test_a_redirect_changes_the_method_as_in_browsers(
    method: str, status: int, becomes: str
) -> None:
    """A GET has no body any more."""
    made = payload(method, label="x", body=b"" if method == "HEAD" else b"1")

    assert made is not None
    target = made.redirected(status, is_same_origin=True)

    assert target is not None
    assert target.method == becomes
    assert target.body == (b"" if becomes == "GET" else made.body)


def test_what_carries_nothing_is_a_plain_request() -> None:
    """And so is the target of a redirect that nothing goes along with."""
    form = payload("POST", form={"q": "tea"})

    assert form is not None
    assert payload() is payload("get", data={}) is None
    assert form.redirected(303, is_same_origin=False) is None


def test_only_a_get_with_a_label_takes_the_place_of_a_link() -> None:
    """Not a POST, and none that is asked again on purpose."""
    made = [
        payload(label="a"),
        payload(data=1),
        payload("POST", label="a"),
        payload(label="a", again="1"),
    ]

    assert [each is not None and each.takes_place for each in made] == [True, False, False, False]


def test_the_kind_says_whether_a_request_is_repeated() -> None:
    """GET and HEAD are, and what says that it may be."""
    made = [payload("GET", label="x"), payload("HEAD"), payload("POST")]
    made.append(payload("DELETE", is_idempotent=True))

    kinds = [each.kind for each in made if each is not None]

    assert kinds == [Kind.REQUEST, Kind.REQUEST, Kind.SUBMISSION, Kind.REQUEST]


def test_secrets_are_read_when_a_request_is_made() -> None:
    """Only those that the program named: a page may have any text in its fields."""
    made = payload(
        "POST",
        headers={"X-Page": "env:HOME"},
        form={"hidden": "env:HOME"},
        secrets=(("password", "env:PASSWORD"),),
    )

    assert made is not None
    sent = made.sendable({"env:PASSWORD": "p&w"}.__getitem__)

    assert sent.body == b"hidden=env%3AHOME&password=p%26w"
    assert sent.headers == (
        ("X-Page", "env:HOME"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    )


def test_a_payload_is_not_printed() -> None:
    """Its values may be secret."""
    made = payload("POST", headers={"X-A": "geheim"}, body="geheim", data="geheim", label="in")

    assert "geheim" not in repr(made)
    assert "POST 'in'" in repr(made)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"method": "CONNECT"}, "not a method"),
        ({"method": "GET X"}, "not a method"),
        ({"body": b"1"}, "a GET has no body"),
        ({"method": "POST", "body": b"1", "form": {"a": "b"}}, "not both"),
        ({"headers": {"X": "a\r\nY: b"}}, "header 1 is none"),
        ({"headers": {"Host": "other.example"}}, "Host is set by the crawl"),
        ({"headers": {"X": "a" * 20_000}}, "16,384 bytes"),
        ({"secrets": (("X", "geheim"),)}, "env:NAME or file:PATH"),
        ({"method": "POST", "body": b"1" * (MAX_BODY + 1)}, "1,048,576 bytes"),
        ({"data": "a" * MAX_DATA}, "65,536 bytes as JSON, not 65,538"),
        ({"data": object()}, "values of JSON"),
        ({"label": "a" * 201}, "a label has at most 200"),
        ({"session": "a\n"}, "a session has at most"),
    ],
)
def test_what_cannot_be_sent_or_stored_is_refused(parts: dict[str, Any], why: str) -> None:
    """The message says which value it is, or its limit, and never a value."""
    with pytest.raises(ValueError, match=why) as refusal:
        payload(**parts)

    assert "geheim" not in str(refusal.value)


def test_what_is_damaged_is_no_payload() -> None:
    """Neither bytes of something else, nor values that were never allowed."""
    for data in (b"", b"\xc1", b"\x81\xa1m\xa3G T", encode(Payload(references=(3,)))):
        with pytest.raises(ValueError, match=r"\w"):
            decode(data)


def test_a_refusal_says_that_nothing_was_done() -> None:
    """A 429, and a 503 that says when to come back."""
    assert was_refused(429, {})
    assert was_refused(503, {"retry-after": "3"})
    assert not was_refused(503, {})
    assert not was_refused(500, {"retry-after": "3"})
    assert not was_refused(None, {})
