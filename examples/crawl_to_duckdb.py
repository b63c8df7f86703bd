"""Load a crawl into DuckDB, without a notebook: pages with their text, and every link.

pip install 'mannerly[parquet]' duckdb
python examples/crawl_to_duckdb.py                       a small site on this machine
python examples/crawl_to_duckdb.py https://example.org/  two hundred pages of a real one
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import duckdb

import mannerly
from mannerly.crawler.web.choices import Content
from mannerly.demo import DemoWeb, plain_sites
from mannerly.exports import export

QUERIES = {
    "Pages by status": "SELECT status, count(*) AS pages FROM pages GROUP BY status",
    "Most linked pages": """
        SELECT target, count(DISTINCT source) AS sources FROM links
        WHERE kind = 'a' GROUP BY target ORDER BY sources DESC, target LIMIT 5
    """,
    "Longest texts": """
        SELECT url, title, len(string_split(content, ' ')) AS words FROM pages
        WHERE content IS NOT NULL ORDER BY words DESC, url LIMIT 5
    """,
    "Pages that nothing links to": """
        SELECT url FROM pages ANTI JOIN links ON links.target = pages.url ORDER BY url LIMIT 5
    """,
}


def main() -> None:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if sys.argv[1:]:
            options = {"max_urls": 200}
            url = sys.argv[1]
        else:
            web = stack.enter_context(DemoWeb(plain_sites(1, pages=12)))
            options = {"max_rate": 50, "delay": 0.02}
            (url,) = web.seeds()
        with mannerly.Crawl(
            url, data_dir=place / "crawl", keep_bodies=True, links=True, **options
        ) as crawl:
            crawl.run()
        export(place / "crawl", str(place / "pages.parquet"), content=Content.MARKDOWN)
        export(place / "crawl", f"links:{place / 'links.parquet'}")

        database = duckdb.connect()  # or a file's name, to keep the tables
        for table in ("pages", "links"):
            database.read_parquet(str(place / f"{table}.parquet")).create(table)
        for title, query in QUERIES.items():
            print(f"\n{title}")
            database.sql(query).show()


if __name__ == "__main__":
    main()
