"""A crawl in a directory of SQLite files."""
