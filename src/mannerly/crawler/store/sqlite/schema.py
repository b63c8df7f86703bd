"""The tables of a crawl's files, and the reasons for their keys.

Every URL gets a number on arrival, `seq`, that is never used again, and has one row in exactly one
of `queue`, `waiting`, `pages`, `skipped` and `given_up`. Links to other shards have none: they are
rows of `outbox`, many links a row.

What a commit costs is the number of pages that it makes dirty, not the number of rows: a row that
lands anywhere in a large tree costs ten times as much as one at the end. Hence

    queue       by (host, priority, seq): rows come and go at the two ends of a host's run, and a
                window is one short range
    pages       by position: always at the end. A position is never used again, so that a reader
                who goes on from one meets no URL twice, even if the URL was fetched again
    elements    by number: the links and other elements of a commit's pages, compressed with those
                of the rows before, back to the one with the number `begins` (0: alone). A page's
                row has its number; numbers that no row has belong to pages that have changed since
    listed      by URL: what sitemaps say, which is asked for when a page is read
    given_up    by (host, seq): a host is given up as a whole and brought back as a whole
    arrivals    by seq: always at the end; the URLs that `seen` does not have yet
    seen        by URL, the exact answer to "new or known?". New URLs land anywhere in it, so they
                are carried over from `arrivals` many at a time and in order. URL text rather than
                a hash is the key, because the URLs of a site are neighbours then

    kept        by seq, as `items`: most crawls have neither, so `pages` has no columns for them
    payloads    by seq, for as long as the URL is known. `seen` has the identity of a request that
                is not its URL alone; of a URL with a label it has the number of that request

and `totals` is one row with what would otherwise have to be counted.

`application_id` tells whose file it is and `user_version` which of these schemas it has. This
module holds text only: no connection, no file. The columns that records have in common with the
tables are named once, at the end, and statements are made of them.
"""

from __future__ import annotations

from mannerly.crawler.kinds import SENT_ONCE, Form, numbers
from mannerly.crawler.model import NOT_READ, REFUSALS, PageRecord
from mannerly.crawler.payload import REQUISITE
from mannerly.database.sqlite import FileKind


def of_kinds(kinds: tuple[int, ...]) -> str:
    """Return the condition that a row is of one of these kinds."""
    first, *others = kinds
    return f"kind IN ({', '.join(map(str, (first, *others)))})" if others else f"kind = {first}"


PAGES_ONLY, LISTS_ONLY, CHECKS_ONLY, REQUISITES_ONLY = (
    of_kinds(numbers(form)) for form in (Form.PAGE, Form.LISTING, Form.CHECK, Form.REQUISITE)
)
# The text by which a URL is known that a page has led to, of a row of this table
# (`payload.identity_of`).
IDENTITY = f"iif({REQUISITES_ONLY}, {{0}}.url || '{REQUISITE.identity('')}', {{0}}.url)"
# What a recrawl asks for again, after the lists.
REPEATABLE = of_kinds(
    tuple(
        each
        for form in (Form.PAGE, Form.REQUISITE)
        for each in numbers(form)
        if each not in SENT_ONCE
    )
)

# The condition of the index of failed pages: a query that repeats it reads the index.
MAY_HAVE_FAILED = "(status IS NULL OR status >= 400 OR error IS NOT NULL)"
# `model.is_failed` as a condition on a row of `pages`.
FAILED = f"""
    (status IS NULL OR status >= 500 OR status IN ({", ".join(map(str, sorted(REFUSALS)))})
     OR coalesce(error IN ({", ".join(f"'{error}'" for error in sorted(NOT_READ))}), 0)
     OR (status >= 400 AND parent IS NULL AND {PAGES_ONLY}))
"""

SHARD = FileKind(
    "shard",
    0x6D6E7368,  # "mnsh"
    11,
    f"""
    CREATE TABLE owner (
        shard INTEGER NOT NULL, shards INTEGER NOT NULL, is_open INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE totals (
        next_seq INTEGER NOT NULL DEFAULT 1,
        next_position INTEGER NOT NULL DEFAULT 1,
        ready INTEGER NOT NULL DEFAULT 0,
        waiting INTEGER NOT NULL DEFAULT 0,
        fetched INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        lists INTEGER NOT NULL DEFAULT 0,
        skipped INTEGER NOT NULL DEFAULT 0,
        given_up INTEGER NOT NULL DEFAULT 0,
        outgoing INTEGER NOT NULL DEFAULT 0,
        hosts INTEGER NOT NULL DEFAULT 0,
        applied INTEGER NOT NULL DEFAULT 0,
        next_elements INTEGER NOT NULL DEFAULT 1,
        round INTEGER NOT NULL DEFAULT 0,
        rechecks INTEGER NOT NULL DEFAULT 0,
        requisites INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO totals DEFAULT VALUES;
    CREATE TABLE seen (
        url TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, host INTEGER NOT NULL,
        priority INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE arrivals (
        seq INTEGER PRIMARY KEY, url TEXT NOT NULL, host INTEGER NOT NULL,
        priority INTEGER NOT NULL
    );
    CREATE TABLE queue (
        host INTEGER NOT NULL, priority INTEGER NOT NULL, seq INTEGER NOT NULL,
        url TEXT NOT NULL, depth INTEGER NOT NULL, parent TEXT, hops INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        PRIMARY KEY (host, priority, seq)
    ) WITHOUT ROWID;
    CREATE TABLE waiting (
        seq INTEGER PRIMARY KEY, host INTEGER NOT NULL, priority INTEGER NOT NULL,
        url TEXT NOT NULL, depth INTEGER NOT NULL, parent TEXT, hops INTEGER NOT NULL,
        kind INTEGER NOT NULL
    );
    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, count INTEGER NOT NULL, links BLOB NOT NULL
    );
    CREATE TABLE skipped (
        seq INTEGER PRIMARY KEY, url TEXT NOT NULL, reason TEXT NOT NULL,
        depth INTEGER NOT NULL, parent TEXT, hops INTEGER NOT NULL DEFAULT 0,
        kind INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE given_up (
        host INTEGER NOT NULL, seq INTEGER NOT NULL, priority INTEGER NOT NULL,
        url TEXT NOT NULL, depth INTEGER NOT NULL, parent TEXT, hops INTEGER NOT NULL,
        kind INTEGER NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (host, seq)
    ) WITHOUT ROWID;
    CREATE TABLE pages (
        position INTEGER PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, host INTEGER NOT NULL,
        kind INTEGER NOT NULL, url TEXT NOT NULL, status INTEGER, depth INTEGER NOT NULL,
        parent TEXT, title TEXT,
        content_type TEXT, bytes INTEGER NOT NULL, latency_ms REAL NOT NULL,
        fetched_at REAL NOT NULL, attempts INTEGER NOT NULL, links INTEGER NOT NULL,
        canonical TEXT, redirect_to TEXT, error TEXT, digest TEXT, cache_status TEXT, age INTEGER,
        total_ms REAL NOT NULL DEFAULT 0, noindex INTEGER NOT NULL DEFAULT 0,
        hops INTEGER NOT NULL DEFAULT 0,
        description TEXT, h1 TEXT, lang TEXT, etag TEXT, last_modified TEXT, text_digest TEXT,
        change TEXT, previous_status INTEGER, previous_digest TEXT, previous_fetched_at REAL,
        round INTEGER NOT NULL DEFAULT 0, elements INTEGER NOT NULL DEFAULT 0,
        rendered INTEGER NOT NULL DEFAULT 0, requests INTEGER, render_s REAL, render_error TEXT,
        render_refused INTEGER
    );
    CREATE TABLE elements (
        first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL,
        begins INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE listed (
        url TEXT PRIMARY KEY NOT NULL, lastmod TEXT, lastmod_before TEXT, round INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX failed_pages ON pages (host, position) WHERE {MAY_HAVE_FAILED};
    CREATE TABLE retries (
        number INTEGER PRIMARY KEY, failed INTEGER NOT NULL, given_up INTEGER NOT NULL,
        first_host INTEGER NOT NULL, last_host INTEGER NOT NULL, last_position INTEGER NOT NULL,
        at_host INTEGER NOT NULL, at_row INTEGER NOT NULL, skipped TEXT,
        round INTEGER NOT NULL DEFAULT 0, missing INTEGER NOT NULL DEFAULT 0,
        seeds INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE hosts (
        id INTEGER PRIMARY KEY, host TEXT NOT NULL UNIQUE, ready INTEGER NOT NULL DEFAULT 0,
        given_up INTEGER NOT NULL DEFAULT 0,
        adaptive_delay_seconds REAL NOT NULL DEFAULT 0,
        adaptive_delay_floor_seconds REAL NOT NULL DEFAULT 0,
        crawl_delay_seconds REAL NOT NULL DEFAULT 0,
        allowance REAL NOT NULL DEFAULT 0,
        block_seconds REAL NOT NULL DEFAULT 0,
        concurrency INTEGER NOT NULL DEFAULT 0,
        is_proven INTEGER NOT NULL DEFAULT 0,
        blocked_until REAL NOT NULL DEFAULT 0,
        next_at REAL NOT NULL DEFAULT 0,
        updated_at REAL NOT NULL DEFAULT 0,
        fetched INTEGER NOT NULL DEFAULT 0,
        refused INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        retired TEXT,
        failing_since REAL NOT NULL DEFAULT 0,
        failures_in_a_row INTEGER NOT NULL DEFAULT 0,
        breaker_failures INTEGER NOT NULL DEFAULT 0,
        breaker_opens INTEGER NOT NULL DEFAULT 0,
        breaker_until REAL NOT NULL DEFAULT 0,
        boot TEXT NOT NULL DEFAULT '',
        updated_mono REAL NOT NULL DEFAULT 0,
        smallest_gap_seconds REAL NOT NULL DEFAULT 0,
        required_gap_seconds REAL NOT NULL DEFAULT 0,
        early INTEGER NOT NULL DEFAULT 0,
        lastmod_right INTEGER NOT NULL DEFAULT 0,
        lastmod_wrong INTEGER NOT NULL DEFAULT 0,
        smallest_gap_at REAL NOT NULL DEFAULT 0,
        requests INTEGER NOT NULL DEFAULT 0,
        retry_afters INTEGER NOT NULL DEFAULT 0,
        retry_afters_broken INTEGER NOT NULL DEFAULT 0,
        doing BLOB NOT NULL DEFAULT x''
    );
    CREATE TABLE traffic (
        interval INTEGER PRIMARY KEY, requests INTEGER NOT NULL, refused INTEGER NOT NULL
    );
    CREATE TABLE robots (
        origin TEXT PRIMARY KEY NOT NULL, status INTEGER, body BLOB, fetched_at REAL NOT NULL,
        expires_at REAL NOT NULL, failing_since REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE suspects (seq INTEGER PRIMARY KEY, deaths INTEGER NOT NULL);
    CREATE TABLE segments (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, length INTEGER NOT NULL
    );
    CREATE TABLE kept (
        seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, start INTEGER NOT NULL,
        length INTEGER NOT NULL
    );
    CREATE TABLE items (
        seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, items BLOB NOT NULL, error TEXT
    );
    CREATE TABLE payloads (
        seq INTEGER PRIMARY KEY, takes_place INTEGER NOT NULL, payload BLOB NOT NULL
    );
    CREATE TABLE sessions (name TEXT PRIMARY KEY NOT NULL, cookies TEXT NOT NULL) WITHOUT ROWID;
    """,
)

INBOX = FileKind(
    "inbox",
    0x6D6E6962,  # "mnib"
    3,
    """
    CREATE TABLE link_batches (
        id INTEGER PRIMARY KEY, count INTEGER NOT NULL, links BLOB NOT NULL
    );
    """,
)

CONTROL = FileKind(
    "control",
    0x6D6E6374,  # "mnct"
    1,
    """
    CREATE TABLE orders (number INTEGER PRIMARY KEY, record TEXT NOT NULL);
    CREATE TABLE workers (
        id TEXT PRIMARY KEY NOT NULL, machine TEXT NOT NULL, pid INTEGER NOT NULL,
        shards TEXT NOT NULL, fetched INTEGER NOT NULL, seen_at REAL NOT NULL, waits_for TEXT
    ) WITHOUT ROWID;
    """,
)

TOTALS = (
    *("next_seq", "next_position", "ready", "waiting", "fetched", "failed", "lists", "skipped"),
    *("given_up", "outgoing", "hosts", "applied", "next_elements", "round", "rechecks"),
    "requisites",
)
HOST = (
    *("adaptive_delay_seconds", "adaptive_delay_floor_seconds", "crawl_delay_seconds"),
    *("allowance", "block_seconds", "concurrency", "is_proven", "blocked_until", "next_at"),
    *("updated_at", "fetched", "refused", "failed", "retired", "failing_since"),
    *("failures_in_a_row", "breaker_failures", "breaker_opens", "breaker_until", "boot"),
    *("updated_mono", "smallest_gap_seconds", "required_gap_seconds", "early"),
    *("smallest_gap_at", "requests", "retry_afters", "retry_afters_broken"),
    "doing",
)  # the fields of HostRecord after its name
ENTRY = ("seq", "url", "host", "depth", "priority", "parent", "hops", "kind")
RETRY = (
    *("failed", "given_up", "first_host", "last_host", "last_position", "at_host", "at_row"),
    *("skipped", "round", "missing", "seeds"),
)
OF_LISTS = ("in_sitemap", "lastmod")  # fields of a record that the table `listed` has
PAGE = tuple(name for name in PageRecord._fields if name not in ("host", *OF_LISTS))


def insert(table: str, *columns: str, verb: str = "INSERT") -> str:
    """Return the statement that adds a row with these columns."""
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({_marks(columns)})"


def update(table: str, *columns: str, where: str = "", more: str = "") -> str:
    """Return the statement that sets these columns, of all rows or of those with `where` = ?.

    `more` is set after them.
    """
    condition = f" WHERE {where} = ?" if where else ""
    values = f"({', '.join(columns)}) = ({_marks(columns)})" + (more and f", {more}")
    return f"UPDATE {table} SET {values}{condition}"  # noqa: S608


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))
