-- Invariant: a lease is prolonged only for the owner whose token is there. It goes through when the
-- memory is full: the first write is one that frees memory, and the others may follow it.
-- An owner whose last write (`n`) is not here has lost the shard: the server has forgotten writes,
-- so what the owner knows is wrong (`owner.lua`). It fetches nothing more that could not be kept.
-- A lease that has ended is not prolonged for one lease after a restart (answer 2): the server may
-- have forgotten that another member has claimed the shard, while that one sends.
-- Answers whether the lease is the owner's (1), the time, unread links, reminders of hosts, and for how
-- many milliseconds it is not prolonged.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token', 'run', 'batch', 'until', 'hold')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local now = now_ms()
redis.call('HDEL', S, 'nothing')
local run = run_id()
local hold = tonumber(held[6])
if held[3] ~= run then
  hold = now + A.ttl
  redis.call('HSET', S, 'run', run, 'hold', hold)
end
if held[2] ~= A.token then return {0, now, 0, 0, 0} end
if A.n and tonumber(held[4]) < A.n then return {0, now, 0, 0, 0} end
local unread = tonumber(redis.call('HGET', S, 'unread')) or 0
local reminders = redis.call('HLEN', P .. 'rm')
if hold > now and tonumber(held[5]) <= now then return {2, now, unread, reminders, hold - now} end
redis.call('HSET', S, 'until', now + A.ttl)
return {1, now, unread, reminders, 0}
