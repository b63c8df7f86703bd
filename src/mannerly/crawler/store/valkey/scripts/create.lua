-- Invariant: a name has one crawl: of two that are created at once, one is refused.
-- KEYS: manifest, meta, orders, heartbeats, arrivals
local A = cmsgpack.unpack(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.error_reply('EXISTS') end
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
redis.call('SET', KEYS[1], A.manifest)
redis.call('HSET', KEYS[2], 'id', A.id)
return 'OK'
