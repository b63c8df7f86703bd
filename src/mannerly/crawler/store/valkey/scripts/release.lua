-- Invariant: only its owner lets go of a shard. Whoever comes next need not wait. The shard's clock is
-- left as it is now.
redis.call('HDEL', S, 'token', 'member', 'answer')
redis.call('UNLINK', P .. 'i')
redis.call('HSET', S, 'beat', A.beat, 'beat_at', now_ms(), 'clock', A.clock)
return 'OK'
