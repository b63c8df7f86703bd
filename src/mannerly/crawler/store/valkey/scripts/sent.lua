-- Invariant: a request that is sent once is in `st` before its first byte leaves, until it has a result or
-- was refused.
redis.call(A.is_refused and 'SREM' or 'SADD', P .. 'st', A.seq)
return 'OK'
