-- Invariant: pages that are fetched again are given back to --max-urls once. `recalled` is how many
-- were ever left to a shard (`recall.lua`), so that a repetition gives nothing back.
-- KEYS: meta
local A = cmsgpack.unpack(ARGV[1])
local field = 'back:' .. A.shard
local known = redis.call('HMGET', KEYS[1], 'id', 'pages', field)
if known[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local back = A.recalled - (tonumber(known[3]) or 0)
if back <= 0 then return 0 end
local taken = math.max(0, (tonumber(known[2]) or 0) - back)
redis.call('HSET', KEYS[1], 'pages', taken, field, A.recalled)
return back
