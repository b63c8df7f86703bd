"""Pure functions of text: URLs, scope, seeds, sitemaps, character sets. No queue, no clock."""
