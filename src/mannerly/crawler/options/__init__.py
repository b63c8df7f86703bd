"""The options of a crawl: `table` has them all, `values` checks what was given."""
