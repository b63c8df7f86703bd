-- Invariant: only the owner of a shard forgets a robots.txt.
redis.call('HDEL', P .. 'r', A.origin)
return 'OK'
