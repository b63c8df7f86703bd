"""A form is sent with the fields that a browser would send, and with the values of the program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mannerly.testing import page

if TYPE_CHECKING:
    from mannerly import Request

LOGIN = """
<base href="/in/">
<form id=login action=go method=post>
  <input name=user value=nobody><input name=password type=password>
  <input type=hidden name=csrf value="env:HOME"><input name=off disabled value=1>
  <input type=checkbox name=keep checked><input type=checkbox name=spam value=1>
  <select name=lang multiple><option selected>de<option selected>en<option>fr</select>
  <input name=theirs form=other value=1>
  <button name=act value=in>Log in</button><button name=act2 value=new>Register</button>
</form>
<input name=shop form=login value=3>
<fieldset disabled><input name=none form=login></fieldset>
"""
OLD = """
<table><form id=one action="/1?x=1"><tr><td><input name=q value="ä b"></td></tr></form>
<form id=two action=/2 method=post><tr><td><input name=r value=2><input type=submit></td></tr>
</table>
"""
PARTS = """
<form method=post enctype=multipart/form-data>
<input name='a"b' value=1><input name=f type=file></form>
"""


def test_fields_are_those_of_a_browser() -> None:
    """Hidden, checked and selected ones, those from elsewhere, and the first button."""
    asked = page(LOGIN).form("#login").submit()

    assert asked.url == "https://example.com/in/go"
    assert asked.payload is not None
    assert asked.payload.method == "POST"
    assert asked.payload.form == (
        *(("user", "nobody"), ("password", ""), ("csrf", "env:HOME"), ("keep", "on")),
        *(("lang", "de"), ("lang", "en"), ("shop", "3"), ("act", "in")),
    )
    assert asked.payload.references == ()


def test_values_take_the_place_of_fields() -> None:
    """Several, none, one that the form lacks, another button, a secret by its name."""
    form = page(LOGIN, session="a").form("#login")
    values = {"user": "me", "password": "env:PW", "lang": ["fr", "es"], "keep": None}

    asked = form.submit({**values, "act2": "new", "more": "1"}, label="in", data=[1])

    assert asked.payload is not None
    assert asked.payload.form == (
        *(("user", "me"), ("csrf", "env:HOME"), ("lang", "fr"), ("lang", "es"), ("shop", "3")),
        *(("act2", "new"), ("more", "1"), ("password", "env:PW")),
    )
    assert asked.payload.references == (7,)
    assert (asked.payload.label, asked.payload.data, asked.payload.session) == ("in", [1], "a")
    assert form.submit(session="b").payload.session == "b"  # type: ignore[union-attr]


def test_page_cannot_name_a_secret() -> None:
    """Also when the program passes on what the page, or the page before, has written."""
    found = page(LOGIN + "<p>file&#58;/etc/passwd", data={"q": ["env:PATH"]})
    values = {"user": "env:HOME", "password": "file:/etc/passwd", "more": "env:PATH"}

    asked = found.form("#login").submit(values)

    assert asked.payload is not None
    assert asked.payload.references == ()


SPLIT = "<h1>env<b></b>:PATH</h1><h2>env<!-- > -->:AWAY</h2>"
ESCAPED = '<script type=json>"\\u0065nv:AWS_SECRET"</script>'


def test_page_cannot_spell_a_secret_in_parts() -> None:
    """Neither by tags between letters, nor by its URL, its headers or escapes of JSON."""
    given = "env:OTHER", "file:/etc/hosts"
    url = "https://example.com/?q=env%3AOTHER"
    found = page(LOGIN + SPLIT + ESCAPED, url=url, headers={"x-a": "file:/etc/hosts"})
    form = found.form("#login")
    texts = [each.text for each in found.select("h1")]

    asked = form.submit(dict(zip("abc", (*texts, *given), strict=True)))

    assert asked.payload is not None
    assert asked.payload.references == ()
    escaped = json.loads(found.select_one("script").text)  # type: ignore[union-attr]
    for text in (escaped, found.select_one("h2").text):  # type: ignore[union-attr]
        with pytest.raises(ValueError, match=r"the field user is given a reference .*secrets="):
            form.submit({"user": text})


AT_MODULE = {"password": "env:PW_OF_MODULE"}


def test_reference_is_one_that_the_code_spells_out() -> None:
    """In the function, in its file, or in code without one; others are given as `secrets`."""
    form = page(LOGIN).form("#login")
    typed: dict[str, Any] = {"form": form}
    exec("asked = form.submit({'user': 'env:TYPED'})", typed)
    exec("def f(x='env:BY' 'DEFAULT'): return form.submit({'user': x})\nasked2 = f()", typed)

    assert references(form.submit(AT_MODULE)) == [("password", "env:PW_OF_MODULE")]
    assert references(typed["asked"]) == [("user", "env:TYPED")]
    assert references(typed["asked2"]) == [("user", "env:BYDEFAULT")]
    name = "_".join(["env:SHOP", "PW"])
    with pytest.raises(ValueError, match="the field user is given a reference"):
        form.submit({"user": name})
    assert references(form.submit({"user": "a"}, secrets={"user": name})) == [("user", name)]


def references(asked: Request) -> list[tuple[str, str]]:
    assert asked.payload is not None
    return [asked.payload.form[each] for each in asked.payload.references]


def test_forms_in_tables_have_the_fields_behind_them() -> None:
    """A browser ends such a form where it begins; by GET its fields are the query."""
    found = page(OLD, url="https://example.com/list?old=1")

    assert found.form("#one").submit().url == "https://example.com/1?q=%C3%A4+b"
    assert found.form("#two").submit().payload.form == (("r", "2"),)  # type: ignore[union-attr]


def test_parts_of_a_form_are_the_same_each_time() -> None:
    """So the same form is asked for once."""
    first, second = (page(PARTS).form().submit().payload for _ in range(2))

    assert first == second
    assert first is not None
    assert b'name="a%22b"\r\n\r\n1\r\n' in first.body
    assert first.headers[0][1].startswith("multipart/form-data; boundary=form-")


@pytest.mark.parametrize(
    ("html", "selector", "values", "words"),
    [
        (LOGIN, "#nowhere", {}, "example.com/: the form #nowhere is not there .*#login"),
        (LOGIN, "button", {}, "the form button is <button>"),
        ("", "form", {}, r"the form form is not there \(forms of the page: none\)"),
        ("<form action='http://'>", "form", {}, "leads to no URL: 'http://'"),
        ("<form method=dialog>", "form", {}, "only GET and POST"),
        (OLD, "#one", {"q": "env:PW"}, "sent by GET: a secret would be in a URL"),
        (PARTS, "form", {"f": "env:PW"}, "sent as multipart/form-data: secrets cannot be in it"),
        (LOGIN, "#login", {"user": 1}, "the value of the field user must be"),
    ],
)
def test_form_that_cannot_be_sent_is_an_error(
    html: str, selector: str, values: dict[str, str], words: str
) -> None:
    """It names the page, the form or the field."""
    with pytest.raises(ValueError, match=words):
        page(html).form(selector).submit(values)
