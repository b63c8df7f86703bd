"""A form of a page, and the request that sends it as a browser would.

The fields are those that a browser sends: hidden ones, what is checked and selected, controls that
name the form from elsewhere, and the first button, which is what Enter presses. Values of the
program take their place.

A value `env:NAME` or `file:PATH` is a reference to a secret if the code of the program spells it
out. One that the page has written is text, also if the program passes it on. Any other may come
from a page or from the program, so it is an error: no page may name what is read on this machine.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from mannerly.crawler.web.urls import canonical

from .literals import is_written_by_caller
from .request import PageRequest
from .tree import parse_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turbohtml import Document, Element

    from .page import Page

MOST_FIELDS = 10_000

_REFERENCE = re.compile(r"(env|file):.+")
_TAG = re.compile(r"<[^>]*>")
_BUTTONS = "button:not([type]), button[type=submit], input[type=submit], input[type=image]"
_CONTROLS = "input, select, textarea, button"
_IN_TABLES = frozenset({"table", "tbody", "thead", "tfoot", "tr"})
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


class PageForm:
    """A form of a page; `submit` makes a request of it. Get one from `page.form`.

    Attributes:
        url: where it is sent to.
        method: GET or POST.
        fields: names and values as the page has them, in its order.
    """

    def __init__(self, page: Page, selector: str) -> None:
        tree = parse_text(page.html)  # its own: controls are moved
        form = tree.select_one(selector)
        if form is None or form.tag != "form":
            found = f"is <{form.tag}>" if form is not None else "is not there"
            forms = ", ".join(map(_named, tree.select("form")[:10])) or "none"
            raise ValueError(
                f"{page.url}: the form {selector} {found} (forms of the page: {forms})"
            )
        button = _gathered(tree, form)
        written = str((None if button is None else button.attrs.get("formaction")) or "")
        action = (written or str(form.attrs.get("action") or "")).strip()
        url = canonical(action, page.base_url) if action else page.url
        if url is None:
            raise ValueError(f"{page.url}: the form {selector} leads to no URL: {action[:200]!r}")
        self.url = url
        self.method = str(form.attrs.get("method") or "get").strip().upper()
        if self.method not in ("GET", "POST"):
            raise ValueError(
                f"{page.url}: the form {selector} uses {self.method[:20]!r}: "
                "only GET and POST can be sent"
            )
        self.fields: Sequence[tuple[str, str]] = tuple(form.form_data())
        self._is_multipart = str(form.attrs.get("enctype") or "").strip().lower() == _MULTIPART
        self._buttons = _pairs_of(form.select(_BUTTONS))
        self._page = page

    def __repr__(self) -> str:
        return f"<Form {self.method} {self.url}, {len(self.fields)} fields>"

    def submit(
        self,
        values: Mapping[str, str | Sequence[str] | None] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        session: str | None = None,
        **parts: Any,
    ) -> PageRequest:
        """Return the request that sends the form, with every field of it.

            yield page.form("#login").submit(
                {"user": "me", "password": "env:SHOP_PASSWORD"}, label="account", session="a"
            )

        Args:
            values: take the place of fields, by name; several as a list, None for none. A name
                that the form lacks is added; that of a button presses it. `env:NAME` and
                `file:PATH` that your code spells out are stored as that, and read when the form
                is sent. Other values are stored, and never printed, logged or exported.
            secrets: more values, each `env:NAME` or `file:PATH` that your code puts together:
                never pass a text of a page here.
            session: name of the cookies to send and keep; that of the page unless given.
            parts: the other arguments of `mannerly.Request`: label, data, headers, priority …

        Raises:
            ValueError: it cannot be sent or stored; the message says which part, and its limit.
        """
        given = {name: _texts(name, value) for name, value in (values or {}).items()}
        secrets = {
            name: texts[0]
            for name, texts in given.items()
            if len(texts) == 1 and self._is_reference(name, texts[0])
        } | dict(secrets or {})
        given |= {name: [value] for name, value in secrets.items()}
        pressed = [pair for pair in self._buttons if pair[0] in given] or self._buttons[:1]
        fields: list[tuple[str, str]] = []
        left = {name: texts for name, texts in given.items() if name not in secrets}
        for name, value in (*self.fields, *pressed):
            if name not in given:
                fields.append((name, value))
            else:
                fields += [(name, text) for text in left.pop(name, ())]
        fields += [(name, text) for name, texts in left.items() for text in texts]
        if len(fields) > MOST_FIELDS:
            raise ValueError(f"a form has at most {MOST_FIELDS:,} fields")
        parts["session"] = self._page.session if session is None else session
        if self.method == "GET":
            return self._by_get(fields, secrets, parts)
        if self._is_multipart:
            return self._as_parts(fields, secrets, parts)
        if not fields and not secrets:
            headers = {"Content-Type": _URLENCODED, **(parts.pop("headers", None) or {})}
            return PageRequest(self.url, method="POST", headers=headers, **parts)
        return PageRequest(self.url, method="POST", form=fields, secrets=secrets, **parts)

    def _by_get(
        self, fields: list[tuple[str, str]], secrets: Mapping[str, str], parts: dict[str, Any]
    ) -> PageRequest:
        from urllib.parse import urlencode

        if secrets:
            raise ValueError(
                f"the form {self.url} is sent by GET: a secret would be in a URL, which is printed"
            )
        bare = re.split(r"[?#]", self.url, maxsplit=1)[0]
        return PageRequest(f"{bare}?{urlencode(fields)}", **parts)

    def _as_parts(
        self, fields: list[tuple[str, str]], secrets: Mapping[str, str], parts: dict[str, Any]
    ) -> PageRequest:
        from xxhash import xxh3_128_hexdigest

        if secrets:
            raise ValueError(
                f"the form {self.url} is sent as {_MULTIPART}: secrets cannot be in it"
            )
        bodies = [
            f'Content-Disposition: form-data; name="{_escaped(name)}"\r\n\r\n{value}\r\n'
            for name, value in fields
        ]
        # The same form has the same body, or it would be asked for again.
        mark = f"form-{xxh3_128_hexdigest(''.join(bodies).encode())}"
        body = "".join(f"--{mark}\r\n{each}" for each in bodies) + f"--{mark}--\r\n"
        headers = {
            "Content-Type": f"{_MULTIPART}; boundary={mark}",
            **(parts.pop("headers", None) or {}),
        }
        return PageRequest(self.url, method="POST", body=body, headers=headers, **parts)

    def _is_reference(self, name: str, value: str) -> bool:
        if not _REFERENCE.fullmatch(value) or self._is_text(value):
            return False
        if not is_written_by_caller(value):
            raise ValueError(
                f"the field {name} is given a reference to a secret that is not spelled out in the "
                "file of the code that sends the form: a page may have written it. If your code "
                "puts it together, or has it from another file, give it as "
                f"submit(…, secrets={{{name!r}: …}})"
            )
        return True

    def _is_text(self, value: str) -> bool:
        """Return whether the page, or what led to it, may have written a value."""
        page = self._page
        html = page.html
        return (
            any(value in each for each in (html, unescape(html), unescape(_TAG.sub("", html))))
            or value in unquote_plus(page.url)
            or any(value in each for each in page.headers.values())
            or _is_in(value, page.data)
        )


def _gathered(tree: Document, form: Element) -> Element | None:
    """Move the controls of a form into it, and those of others away; return its first button."""
    name = form.attrs.get("id")
    for control in form.select("[form]"):
        if control.attrs.get("form") != name:
            control.decompose()
    # In a table a browser ends a form at once, but the controls after it still belong to it.
    before = None  # the form that began last
    for each in tree.select(f"form, {_CONTROLS}"):
        if each.tag == "form":
            before = each
        elif each.closest("form") is None and each.closest("fieldset[disabled]") is None:
            owner = each.attrs.get("form")
            if owner == name if owner else before is form and _is_in_table_of(each, form):
                form.append(each)
    buttons = [each for each in form.select(_BUTTONS) if "disabled" not in each.attrs]
    return buttons[0] if buttons else None


def _is_in_table_of(control: Element, form: Element) -> bool:
    is_ended = getattr(form.parent, "tag", "") in _IN_TABLES
    return is_ended and control.closest("table") is form.closest("table")


def _pairs_of(buttons: Iterable[Element]) -> list[tuple[str, str]]:
    return [
        (str(each.attrs["name"]), str(each.attrs.get("value") or ""))
        for each in buttons
        if each.attrs.get("name") and "disabled" not in each.attrs
    ]


def _texts(name: str, value: str | Sequence[str] | None) -> list[str]:
    texts: list[Any] = [*value] if isinstance(value, list | tuple) else [value]
    if value is None:
        return []
    if any(not isinstance(each, str) for each in texts):
        raise ValueError(f"the value of the field {name} must be a str, a list of str, or None")
    return texts


def _named(form: Element) -> str:
    attributes = form.attrs
    found = attributes.get("id") or attributes.get("name")
    return f"#{found}" if attributes.get("id") else str(found or attributes.get("action") or "form")


def _is_in(value: str, data: Any) -> bool:
    """Return whether a text is part of a value of JSON."""
    if isinstance(data, str):
        return value in data
    if isinstance(data, dict):
        return any(_is_in(value, each) for pair in data.items() for each in pair)
    return isinstance(data, list) and any(_is_in(value, each) for each in data)


def _escaped(name: str) -> str:
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
