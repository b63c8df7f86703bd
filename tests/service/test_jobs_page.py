"""The page of a service in a real browser: the list of its jobs, and the form for a new one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.report.browser import browser_ends, require_browser, tab
from tests.service.running import ServiceProcess

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

pytestmark = pytest.mark.processes


__all__ = ["browser_ends"]  # a fixture of this module, too


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    require_browser()
    with ServiceProcess(tmp_path_factory.mktemp("service")) as running:
        yield running


@contextmanager
def opened(service: ServiceProcess, *, width: int = 1280, scheme: str = "light") -> Iterator[Page]:
    """Open the page, with the form for a new job; nothing may be wrong with it."""
    with tab(width=width, scheme=scheme) as seen:
        seen.page.goto(service.address)
        seen.page.focus("#new-job-open")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_selector("#new-job")
        yield seen.page
        assert seen.errors == []


def test_job_is_created_with_the_keyboard_alone(service: ServiceProcess) -> None:
    """The form opens at its seeds; Enter in a field sends it, and the job is in the list."""
    with DemoWeb(plain_sites(1, pages=5)) as web, opened(service) as page:
        page.keyboard.type(web.url("plain-0"))
        page.keyboard.press("Tab")
        page.keyboard.type("By hand")
        for _ in range(2):
            page.keyboard.press("Tab")
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        page.wait_for_selector("#jobs >> text=By hand")

        focused = page.evaluate("document.activeElement.id")
        (job,) = service.call("GET", "/api/jobs")[1]["jobs"]

    assert focused == "new-job-open"
    assert (job["name"], job["kind"], job["options"]) == ("By hand", "crawl", {"max_urls": 3})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seeds", "http://10.0.0.1/", "private address"),
        ("seeds", "", "at least one URL"),
        ("schedule", "every day", "not a cron expression"),
        ("options-max_urls", "many", "not a number"),
        ("options-max_urls", "-5", "max_urls"),
        ("options-max_rate", "0", "max_rate"),
    ],
)
def test_wrong_value_is_named_beside_its_field(
    service: ServiceProcess, field: str, value: str, words: str
) -> None:
    """Whoever found it, page or service; the field has the focus, and nothing is created."""
    before = len(service.call("GET", "/api/jobs")[1]["jobs"])
    with opened(service) as page:
        page.fill("#new-seeds", "https://a.invalid/")
        page.fill(f"#new-{field}", value)
        page.click("#new-job button[type=submit]")
        page.wait_for_selector(f"#new-{field}-wrong:not(:empty)")

        said = page.inner_text(f"#new-{field}-wrong")
        focused = page.evaluate("document.activeElement.id")
        others = page.locator(".new-job .wrong:not(:empty)").count()
        described = page.get_attribute(f"#new-{field}", "aria-describedby") or ""

    assert words in said
    assert (focused, others) == (f"new-{field}", 1)
    assert f"new-{field}-wrong" in described
    assert len(service.call("GET", "/api/jobs")[1]["jobs"]) == before


def test_form_is_kept_while_the_list_is_drawn_anew(service: ServiceProcess) -> None:
    """What was typed stays; Escape closes the form, and its button has the focus."""
    with opened(service) as page:
        page.fill("#new-name", "half")
        service.create("https://a.invalid/", name="drawn anew", options={"give_up_after": 1})
        page.wait_for_selector("#jobs >> text=drawn anew")
        typed = page.input_value("#new-name")
        page.keyboard.press("Escape")

        assert typed == "half"
        assert not page.is_visible("#new-job")
        assert page.evaluate("document.activeElement.id") == "new-job-open"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_form_fits_a_small_screen_and_is_accessible(service: ServiceProcess, scheme: str) -> None:
    """At 400 px nothing is cut off; axe finds no fault in either scheme."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(service, width=400, scheme=scheme) as page:
        wide = page.evaluate("document.documentElement.scrollWidth")
        faults = Axe().run(page).response["violations"]

    assert wide <= 400
    assert [fault["id"] for fault in faults] == []
