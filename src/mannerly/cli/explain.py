"""`mannerly explain`: print the state of one URL in a crawl, and the reason."""

from __future__ import annotations

from typing import Annotated

from mannerly.crawler.options.option import declaration

from .command_line import Argument
from .stored import Location, opened
from .terminal import failing_clearly, print_json, safe_term, show


def explain(
    location: Location,
    url: Annotated[str, Argument("URL", "The URL to explain.")],
    *,
    json: Annotated[bool, declaration("Print JSON.")] = False,
) -> None:
    """Show the state of one URL in a crawl, and the reason."""
    from mannerly.crawler.inspection.reasons import skip_words

    with failing_clearly(), opened(location) as crawl:
        facts = crawl.explain(url)
    if json:
        print_json(facts._asdict())
        return
    where, _, reason = facts.scope.partition(": ")
    scope = f"{where}: {skip_words(reason)}" if reason else where
    show(safe_term(facts.url))
    for name, text in (
        ("state", f"{facts.state}: {facts.because}"),
        ("found by", " ← ".join(facts.found_by)),
        ("scope", scope),
        ("robots.txt", facts.robots),
    ):
        if text:
            show(f"  {name:<12}{safe_term(text, limit=2000)}")
