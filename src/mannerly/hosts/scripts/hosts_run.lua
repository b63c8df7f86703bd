-- Invariant: after a restart of the server no host is granted for one lease: a grant of its last
-- second may be forgotten, while its holder still sends. KEYS: runs. `runs` are those that the caller
-- has known for one lease. Returns the time, in milliseconds, the run, and whether grants are held back.
local A = cmsgpack.unpack(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'run', 'hold')
redis.call('HDEL', KEYS[1], 'nothing')
local first = known[1] and A.runs or {run_id()} -- nothing was granted before the first run
local run, is_held_back = note_run(KEYS[1], known[1], known[2], first)
return {now_ms(), run, is_held_back and 1 or 0}
