-- Invariant: a lease is prolonged only for the owner whose token is there. It goes through when the
-- memory is full: the first write is one that frees memory, and the others may follow it.
-- An owner whose last write (`n`) is not here has lost the shard: the server has forgotten writes,
-- so what the owner knows is wrong (`owner.lua`). It fetches nothing more that could not be kept.
local S = KEYS[1]
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token', 'run', 'batch')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local now = now_ms()
redis.call('HDEL', S, 'nothing')
local run = run_id()
if held[3] ~= run then
  redis.call('HSET', S, 'run', run, 'hold', now + A.ttl)
end
if held[2] ~= A.token then return {0, now, 0} end
if A.n and tonumber(held[4]) < A.n then return {0, now, 0} end
redis.call('HSET', S, 'until', now + A.ttl)
return {1, now, tonumber(redis.call('HGET', S, 'unread')) or 0}
