-- Invariant: after a restart of the server no host is granted for one lease: a grant of its last
-- second may be forgotten, while its holder still sends. KEYS: runs. Returns the time, in
-- milliseconds, and how much is left of that wait.
local A = cmsgpack.unpack(ARGV[1])
local now, run = now_ms(), run_id()
local known = redis.call('HMGET', KEYS[1], 'run', 'hold')
if known[1] ~= run then
  known[2] = known[1] and now + A.ttl or 0
  redis.call('HDEL', KEYS[1], 'nothing')
  redis.call('HSET', KEYS[1], 'run', run, 'hold', known[2])
end
return {now, math.max(0, tonumber(known[2]) - now)}
