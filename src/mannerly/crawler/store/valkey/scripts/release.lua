-- Invariant: only its owner lets go of a shard. Whoever comes next need not wait.
redis.call('HDEL', S, 'token', 'member', 'until', 'answer')
return 'OK'
