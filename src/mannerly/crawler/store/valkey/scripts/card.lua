-- Invariant: a card has the server's time, so that all onlookers agree on who is alive.
-- KEYS: meta, cards. An empty card takes the worker's away.
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', KEYS[1], 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
redis.call('HDEL', KEYS[2], '')
if A.card == '' then
  redis.call('HDEL', KEYS[2], A.worker)
else
  redis.call('HSET', KEYS[2], A.worker, now_ms() .. ' ' .. A.card)
end
return now_ms()
