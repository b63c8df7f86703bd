-- Invariant: a shard belongs to one crawl. What an earlier crawl of the same name has left is told.
local S = KEYS[1]
local A = cmsgpack.unpack(ARGV[1])
local id = redis.call('HGET', S, 'id')
if id == A.id then return 1 end
if id then return 0 end -- wipe it first
redis.call('HSET', S, 'id', A.id, 'run', run_id(), 'hold', 0, 'batch', 0, 'clock', 0)
return 1
