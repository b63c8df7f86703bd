-- Invariant: one run at a time holds a crawl that is not shared; it keeps the hold like a lease.
-- KEYS: meta, heartbeats
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', KEYS[1], 'id', 'holder', 'holds_until')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local now = now_ms()
redis.call('HDEL', KEYS[1], 'nothing')
-- A hold that seems to last longer than its time was given by a clock that was set since.
local left = (tonumber(held[3]) or 0) - now
if held[2] and held[2] ~= A.token and left > 0 and left <= A.most then return 0 end
if A.ttl == 0 then
  redis.call('HDEL', KEYS[1], 'holder', 'holds_until')
else
  redis.call('HSET', KEYS[1], 'holder', A.token, 'holds_until', now + A.ttl)
end
return 1
