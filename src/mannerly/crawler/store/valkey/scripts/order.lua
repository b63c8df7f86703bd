-- Invariant: the number of an order is its place in the list.
-- KEYS: meta, orders
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', KEYS[1], 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
return redis.call('RPUSH', KEYS[2], A.order)
