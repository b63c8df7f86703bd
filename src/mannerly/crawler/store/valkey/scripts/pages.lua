-- Invariant: of --max-urls no page is granted twice in a round; a recrawl begins with none.
-- KEYS: meta. A negative number gives pages back.
local A = cmsgpack.unpack(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'id', 'pages', 'round')
if known[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local taken, pages = tonumber(known[2]) or 0, A.pages
if A.round > (tonumber(known[3]) or 0) then
  taken = 0
  redis.call('HSET', KEYS[1], 'round', A.round)
end
if pages > 0 and A.limit >= 0 and taken + pages > A.limit then pages = math.max(0, A.limit - taken) end
redis.call('HSET', KEYS[1], 'pages', math.max(0, taken + pages))
return pages
