-- Invariant: URLs leave the waiting room in the order of arrival, and the queue stays within its
-- limit. The owner has read the first `count` of them and checked that there is room.
if is_repeated then return held[4] end
local entries = redis.call('ZRANGE', P .. 'w', 0, A.count - 1, 'WITHSCORES')
for i = 1, #entries, 2 do
  local host, priority, entry = string.match(entries[i], '^([^%z]*)%z(%d+)%z(.*)$')
  redis.call('ZADD', P .. 'q:' .. host, priority * 134217728 + tonumber(entries[i + 1]), entry)
  redis.call('HINCRBY', P .. 'n', host, 1)
end
redis.call('ZREMRANGEBYRANK', P .. 'w', 0, A.count - 1)
C.waiting = C.waiting - #entries / 2
return done({})
