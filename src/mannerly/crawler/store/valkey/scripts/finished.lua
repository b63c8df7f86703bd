-- Invariant: nothing is changed. A crawl is finished if all its shards rest at one instant, and no order
-- was given since. A shard that rests has nothing queued, nothing is on its way to it, and a URL stays
-- queued until the write that brings what it links to.
-- KEYS: meta, orders. `seen` orders are known to the caller; `last` is the last one that shards act on.
-- Returns a shard that does not rest, or -1. The shard `first` is asked before others.
local A = cmsgpack.unpack(ARGV[1])
local BASE = string.match(KEYS[1], '^(.*:)meta$')
if redis.call('HGET', KEYS[1], 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
if redis.call('LLEN', KEYS[2]) ~= A.seen then return A.first end
for i = 0, A.shards - 1 do
  local shard = (A.first + i) % A.shards
  local known = redis.call('HMGET', BASE .. string.format('%.0f', shard) .. ':s', 'id', 'rests', 'orders')
  if known[1] ~= A.id then
    return redis.error_reply('GONE the crawl is not here any more')
  end
  if known[2] ~= '1' or tonumber(known[3]) < A.last then return shard end
end
return -1
