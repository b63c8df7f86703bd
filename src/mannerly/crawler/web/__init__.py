"""Text in, text out: URLs, scope, sitemaps, character sets. No queue, no clock."""
