"""The library: read the pages of a crawl in a loop, leave it, and go on later.

python examples/crawl_a_site.py                       a small site on this machine
python examples/crawl_a_site.py https://example.org/  twenty pages of a real one
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import mannerly
from mannerly.demo import DemoWeb, plain_sites


def titles(url: str, data_dir: Path, most: int) -> int:
    """Print the titles of some pages; running it again goes on with the next ones."""
    pages = 0
    for page in mannerly.crawl(url, data_dir=data_dir, max_urls=20, max_rate=20, delay=0.05):
        print(f"{page.status or page.error}  {page.depth}  {page.title}  ({len(page.links)} links)")
        page.done()  # this page is not needed again, even if it is the last one
        pages += 1
        if pages == most:
            break
    return pages


def main() -> None:
    """Five pages, then the others."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "crawl"
        if len(sys.argv) > 1:
            url = sys.argv[1]
        else:
            url = stack.enter_context(DemoWeb(plain_sites(1, pages=12))).seeds()[0]
        print(f"first run: {titles(url, directory, 5)} pages")
        print(f"second run: {titles(url, directory, 100)} pages")
        with mannerly.open(directory) as crawl:
            print(f"recorded: {sum(1 for _ in crawl.pages())} pages")


main()
