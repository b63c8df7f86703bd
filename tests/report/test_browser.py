"""The report in a real browser: it works, it stays calm, and nothing that was crawled can run."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import make_crawl, page
from tests.report.browser import Seen, browser_ends, opened
from tests.report.hostile import TEXTS

from mannerly.crawler.stored import open_crawl
from mannerly.report import find, write_html
from mannerly.report.table import write_csv_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.report.conftest import Crawled

pytestmark = pytest.mark.processes

__all__ = ["browser_ends"]  # a fixture of this module, too

SITE = "https://a.example"
FORMULA = re.compile(r"\A\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with 1,200 missing pages, of which 1,000 are in the file."""
    place = tmp_path_factory.mktemp("many")
    pages = [page(f"{SITE}/")]
    pages += [
        page(
            f"{SITE}/gone/{n:04}", status=404 if n % 2 else 410, parent=f"{SITE}/p{n % 7}", depth=1
        )
        for n in range(1200)
    ]
    return written(place, pages)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every text that can come from a site is hostile."""
    place = tmp_path_factory.mktemp("hostile")
    pages = [page(f"{SITE}/", title=TEXTS[0])]
    for number, text in enumerate(TEXTS):
        url = f"{SITE}/{number}?{text}"
        pages += [
            page(url, status=404, parent=f"{SITE}/{text}", title=text, content_type=text),
            page(f"{url}&ok", title=text, canonical=f"{SITE}/{text}", content_type="text/html"),
            page(f"{url}&again", title=text, digest=f"{number}", h1=text, description=text),
            page(f"{url}&js", redirect_to=f"javascript:alert({number})", status=302),
            page(f"{url}&size", title=text, content_type=text, bytes=3_000_000, latency_ms=2e3),
        ]
    return written(place, pages)


def written(place: Path, pages: list[object]) -> Path:
    location = make_crawl(place / "crawl", pages)  # type: ignore[arg-type]
    with open_crawl(location) as crawl:
        findings = find(crawl)
        write_csv_files(findings, place / "csv")
        write_html(findings, place / "report.html", place / "csv")
    return place / "report.html"


def column(seen: Seen, section: str, number: int) -> list[str]:
    cells = seen.page.locator(f"#{section} tbody tr:not(.sub) > td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_a_header_sorts_and_sorts_back(many: Path) -> None:
    """Numbers begin with the largest, texts with the first; the header says which way."""
    with opened(many) as seen:
        header = seen.page.locator("#broken th").first
        header.get_by_role("button").click()
        first = column(seen, "broken", 1)[0]
        way = header.get_attribute("aria-sort")
        header.get_by_role("button").click()
        last = column(seen, "broken", 1)[0]

    assert (first, way) == ("/gone/0000", "ascending")
    assert last > "/gone/0990"


def test_search_finds_rows_that_are_not_shown_yet(many: Path) -> None:
    """And says so if there are none; nothing else is filtered."""
    with opened(many) as seen:
        seen.page.get_by_label("Search: Broken links").fill("GONE/0777")
        found = column(seen, "broken", 1)
        seen.page.get_by_label("Search: Broken links").fill("nothing like that")
        foot = seen.page.locator("#broken .foot").inner_text()
        sections = column(seen, "sections", 1)

    assert found == ["/gone/0777"]
    assert foot == "Nothing here matches the search."
    assert sections


def test_a_long_table_is_cut_and_says_so(many: Path) -> None:
    """Six rows at first, 1,000 on demand, and the CSV file has every one."""
    with opened(many) as seen:
        before = len(column(seen, "broken", 1))
        foot = seen.page.locator("#broken .foot").inner_text()
        seen.page.get_by_role("button", name="Show all 1,000").click()
        after = len(column(seen, "broken", 1))

    with (many.parent / "csv" / "broken.csv").open(newline="", encoding="utf-8") as file:
        rows = sum(1 for _ in csv.DictReader(file))
    assert (before, after, rows) == (6, 1000, 1200)
    assert "6 of 1,200 targets; the table ends after 1,000 rows, broken.csv has every row" in foot


def test_sources_unfold(many: Path) -> None:
    """By a button that a keyboard reaches and a screen reader can name."""
    with opened(many) as seen:
        fold = seen.page.locator("#broken .fold").nth(1)
        closed = fold.get_attribute("aria-expanded")
        fold.focus()
        seen.page.keyboard.press("Enter")
        opened_now = seen.page.locator("#broken .fold").nth(1).get_attribute("aria-expanded")
        sources = seen.page.locator("#broken tr.sub").count()

    assert (closed, opened_now) == ("false", "true")
    assert sources == 2


def test_slash_leads_to_the_search(many: Path) -> None:
    """The key is not typed into the field."""
    with opened(many) as seen:
        seen.page.keyboard.press("/")
        focused = seen.page.evaluate("document.activeElement.getAttribute('aria-label')")
        value = seen.page.evaluate("document.activeElement.value")

    assert str(focused).startswith("Search: ")
    assert value == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_a_report_fits_any_screen(many: Path, width: int, scheme: str) -> None:
    """No sideways scroll, no request, no message on the console; one heading of the first level."""
    with opened(many, width=width, scheme=scheme) as seen:
        wide = seen.page.evaluate("document.documentElement.scrollWidth")
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        headings = seen.page.locator("h1").count()

    assert wide <= width
    assert ground == ("rgb(14, 16, 18)" if scheme == "dark" else "rgb(247, 247, 245)")
    assert headings == 1
    assert (seen.requests, seen.messages) == ([], [])


def test_paper_is_light_and_has_no_controls(many: Path) -> None:
    """Also for those who read in the dark."""
    with opened(many, scheme="dark", media="print") as seen:
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        controls = seen.page.locator("nav, .search, .button").filter(visible=True).count()

    assert ground == "rgb(255, 255, 255)"
    assert controls == 0


def test_text_meets_the_contrast_of_aa(many: Path) -> None:
    """4.5 to 1 for every text on its ground, in both themes."""
    for scheme in ("light", "dark"):
        with opened(many, scheme=scheme) as seen:
            worst = seen.page.evaluate(CONTRAST)
        assert worst[0] >= 4.5, (scheme, worst)


def test_nothing_that_was_crawled_runs(hostile: Path) -> None:
    """Titles, URLs, headers, redirects and texts of links are text; no request leaves the file."""
    with opened(hostile) as seen:
        more = seen.page.get_by_role("button", name=re.compile("^Show all"))
        while more.count():
            more.first.click()
        for label in ("Broken links", "Duplicates"):
            seen.page.get_by_label(f"Search: {label}").fill("<script")
        ran = seen.page.evaluate("window.__ran || 0")
        elements = seen.page.evaluate(
            "document.querySelectorAll('main img, main iframe, main script, main base').length"
        )
        links = seen.page.evaluate(
            "Array.from(document.querySelectorAll('main a[target]'), a => [a.protocol, a.rel])"
        )
        titles = seen.page.locator("#duplicates tbody").inner_text()

    assert (ran, elements, seen.dialogs) == (0, 0, [])
    assert (seen.requests, seen.messages) == ([], [])
    assert links
    assert {tuple(each) for each in links} == {("https:", "noopener noreferrer nofollow")}
    assert "<script>" in titles


def test_a_policy_stands_in_front_of_the_script(hostile: Path) -> None:
    """An injected script, style, image, frame or form would be refused by the browser."""
    with opened(hostile) as seen:
        seen.page.evaluate(INJECT)
        seen.page.wait_for_timeout(200)
        ran = seen.page.evaluate("window.__ran || 0")

    assert ran == 0
    assert seen.requests == []
    assert sum("Content Security Policy" in each for each in seen.messages) >= 2


def test_data_cannot_end_its_element(hostile: Path) -> None:
    """The block of JSON has no `<` at all, so neither a tag nor a comment can begin in it."""
    text = hostile.read_text("utf-8")
    block = text.partition('id="data">')[2].partition("</script>")[0]

    assert "<" not in block
    assert ">" not in block
    assert "\u2028" not in block
    assert text.count("<script") == 2


def test_no_cell_of_a_csv_file_is_a_formula(hostile: Path) -> None:
    """Whatever a title, a URL, a header or the text of a link begins with."""
    cells = []
    for path in (hostile.parent / "csv").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                cells += row

    numbers = re.compile(r"\A-?[0-9.]+\Z")
    assert [cell for cell in cells if FORMULA.match(cell) and not numbers.match(cell)] == []
    assert any(cell.startswith("'=") for cell in cells)


def test_report_of_the_faulty_site_has_its_faults(faulty: Crawled, tmp_path: Path) -> None:
    """As a reader sees them: the sentence, the proof, the sources of a broken link."""
    write_html(faulty.findings, tmp_path / "report.html")
    with opened(tmp_path / "report.html") as seen:
        heading = seen.page.locator("h1").inner_text()
        proof = seen.page.locator("#proof .said").inner_text()
        sources = seen.page.locator("#broken tr.sub").all_inner_texts()

    assert heading == "3 links are broken on 3 of 18 pages, and 1 redirect never ends"
    assert proof.startswith("All 22 requests kept each host’s gap.")
    assert any("second text" in each for each in sources)


INJECT = """() => {
    const script = document.createElement('script');
    const policy = trustedTypes.createPolicy('test', {createScript: text => text});
    script.textContent = policy.createScript('window.__ran = 1');
    document.body.appendChild(script);
    const image = new Image();
    image.src = 'https://evil.example/x.png';
    document.body.appendChild(image);
    fetch('https://evil.example/').catch(() => 0);
}"""

CONTRAST = """() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => v / 255).map(
            v => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = element => {
        for (let each = element; each; each = each.parentElement) {
            const colour = parse(getComputedStyle(each).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    let worst = [99, ''];
    for (const element of document.querySelectorAll('body *')) {
        const own = Array.from(element.childNodes).some(n => n.nodeType === 3 && n.data.trim());
        if (!own || !element.offsetParent) continue;
        if (element.closest('svg, script, style, noscript')) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < worst[0]) worst = [ratio, element.textContent.slice(0, 40)];
    }
    return worst;
}"""
