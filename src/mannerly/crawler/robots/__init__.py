"""robots.txt: what an answer means, the cache of rules, and who asks for them."""
