"""The options of a crawl: `declared`, collected in `table`; `values` checks what was given."""
