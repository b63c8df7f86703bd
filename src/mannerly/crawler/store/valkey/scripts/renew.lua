-- Invariant: a lease is prolonged only for the owner whose token is there. It goes through when the
-- memory is full: the first write is one that frees memory, and the others may follow it.
-- An owner whose last write (`n`) is not here has lost the shard: the server has forgotten writes,
-- so what the owner knows is wrong (`owner.lua`). It fetches nothing more that could not be kept.
-- A lease that may have ended (`is_over`, by the owner's clock) is not prolonged for one lease after a
-- restart (answer 2): the server may have forgotten that another member has claimed the shard, while
-- that one sends. When it is prolonged, the shard's clock goes on from where it stood, because the
-- other one may have counted less.
-- Answers whether the lease is the owner's (1), the time, reminders of hosts, the run of the server,
-- and the shard's clock.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token', 'run', 'batch', 'hold', 'clock')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local now = now_ms()
redis.call('HDEL', S, 'nothing')
local run, is_held_back = note_run(S, held[3], held[5], A.runs)
local clock = tonumber(held[6]) or 0
if held[2] ~= A.token then return {0, now, 0, run, clock} end
if A.n and tonumber(held[4]) < A.n then return {0, now, 0, run, clock} end
local reminders = redis.call('HLEN', P .. 'rm')
if A.is_over and is_held_back then return {2, now, reminders, run, clock} end
if not A.is_over then clock = math.max(clock, A.clock) end
redis.call('HSET', S, 'beat', A.beat, 'beat_at', now, 'clock', clock)
return {1, now, reminders, run, clock}
