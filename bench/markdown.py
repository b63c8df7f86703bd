"""Judge the Markdown of pages beside trafilatura, markdownify and html2text.

    python -m bench markdown [--only unseen] [--worst]     needs the packages of the bench group

The corpus (`tests/content_corpus/`) has two halves. `known` was there while `crawler/page/` was
written. `unseen` was written without knowledge of it, and is only looked at to judge. Each page is
HTML in the manner of a kind of site, with its frame, and Markdown: what a person would keep of it.

words     precision, recall and F1 of all words, mean of the pages
facts     the share of the facts of the person's Markdown that are there: headings with their level,
          inline code, emphasis, items with their depth, rows, boxes, fences with their language,
          links with their target, and that nothing is left over of HTML (`_markdown_facts`)
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.page.content import content_of
from mannerly.crawler.page.html import page_text
from mannerly.crawler.web.choices import Content

from ._figures import write
from ._markdown_facts import KINDS, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._markdown_facts import Fact, Facts

CORPUS = Path(__file__).parent.parent / "tests" / "content_corpus"
HALVES = ("known", "unseen")
# The address of a page, to which its links are relative.
URLS = {
    "known": "https://site.example/section/page.html",
    "unseen": "https://site.example/docs/{name}.html",
}


class Page(NamedTuple):
    """A page of the corpus."""

    name: str
    url: str
    body: bytes
    wanted: str  # the Markdown of a person

    @property
    def html(self) -> str:
        """The page as text."""
        return page_text(self.body, "text/html")


class Score(NamedTuple):
    """The figures of one page: shares, and the facts by kind as (kept, all)."""

    precision: float
    recall: float
    f1: float
    kept: Counter[str]
    wanted: Counter[str]
    missing: Counter[Fact]


def pages(half: str) -> Iterator[Page]:
    """Yield every page of a half."""
    for file in sorted((CORPUS / half).glob("*.html")):
        url = URLS[half].format(name=file.stem)
        yield Page(file.stem, url, file.read_bytes(), file.with_suffix(".md").read_text("utf-8"))


def ours(page: Page) -> str:
    return content_of(page.body, "text/html", page.url, Content.MARKDOWN) or ""


def _trafilatura(page: Page) -> str:
    from trafilatura import extract

    text = extract(
        page.html,
        url=page.url,
        output_format="markdown",
        include_links=True,
        include_formatting=True,
        include_tables=True,
        include_comments=False,
    )
    return text or ""


def _markdownify(page: Page) -> str:
    from markdownify import markdownify

    return str(markdownify(page.html, heading_style="ATX", strip=["script", "style"]))


def _html2text(page: Page) -> str:
    from html2text import HTML2Text

    return HTML2Text(baseurl=page.url, bodywidth=0).handle(page.html)


RIVALS: dict[str, Callable[[Page], str]] = {
    "mannerly": ours,
    "trafilatura": _trafilatura,
    "markdownify": _markdownify,
    "html2text": _html2text,
}


def score(text: str, wanted: str) -> Score:
    """Return how much of what a person would keep is in a text, and how much else."""
    return _compared(facts_of(text), facts_of(wanted))


def _compared(got: Facts, wanted: Facts) -> Score:
    common = (got.words & wanted.words).total()
    precision = common / (got.words.total() or 1)
    recall = common / (wanted.words.total() or 1)
    f1 = 2 * precision * recall / (precision + recall) if common else 0.0
    kept = _by_kind(got.facts & wanted.facts)
    missing = wanted.facts - got.facts
    return Score(precision, recall, f1, kept, _by_kind(wanted.facts), missing)


def _by_kind(facts: Counter[Fact]) -> Counter[str]:
    found: Counter[str] = Counter()
    for fact, count in facts.items():
        found[fact[0]] += count
    return found


def judged(half: str, write_text: Callable[[Page], str]) -> dict[str, Score]:
    """Return the scores of a half by page."""
    return {page.name: score(write_text(page), page.wanted) for page in pages(half)}


def share(scores: Sequence[Score], kind: str | None = None) -> float:
    """Return the share of the facts that are kept, of one kind or of all."""
    kinds = KINDS if kind is None else (kind,)
    kept = sum(each.kept[name] for each in scores for name in kinds)
    return kept / (sum(each.wanted[name] for each in scores for name in kinds) or 1)


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Judge all, print one table for each half, leave the figures in `.cache/bench`."""
    parser = ArgumentParser(prog="python -m bench markdown")
    parser.add_argument("--only", choices=HALVES)
    parser.add_argument("--worst", action="store_true", help="print what ours lacks")
    given = parser.parse_args(list(options))
    figures: dict[str, dict[str, float]] = {}
    for half in (given.only,) if given.only else HALVES:
        count = len(list((CORPUS / half).glob("*.html")))
        print(f"\n{half}: {count} pages")
        head = ("precision", "recall", "F1", "facts", *KINDS)
        print(f"{'':12}" + "".join(f"{name:>10}" for name in head))
        for name, write_text in RIVALS.items():
            try:
                scores = judged(half, write_text)
            except ImportError as error:
                print(f"{name:12}not installed: {error.name}", file=sys.stderr)
                continue
            row = _row(list(scores.values()))
            figures[f"{half}: {name}"] = row
            print(f"{name:12}" + "".join(f"{row[key]:>10.3f}" for key in head), flush=True)
            if given.worst and name == "mannerly":
                _print_worst(scores)
    write("markdown", figures)
    return figures


def _row(scores: list[Score]) -> dict[str, float]:
    return {
        "precision": mean(each.precision for each in scores),
        "recall": mean(each.recall for each in scores),
        "F1": mean(each.f1 for each in scores),
        "facts": share(scores),
        **{kind: share(scores, kind) for kind in KINDS},
    }


def _print_worst(scores: dict[str, Score]) -> None:
    for name, each in sorted(scores.items(), key=lambda item: item[1].f1):
        print(f"  {name}: precision {each.precision:.2f}, recall {each.recall:.2f}")
        for fact in each.missing:
            print(f"    lacks {fact}")
