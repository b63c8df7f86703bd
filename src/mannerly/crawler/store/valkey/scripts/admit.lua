-- Invariant: URLs leave the waiting room in the order of their numbers: first those that came back
-- (`wz`), which are older. The queue stays within its limit: the owner has read the first `back` and
-- `count` of them, and checked that there is room.
if is_repeated then return answered() end
begin()
local PATTERN = '^([^%z]*)%z(%d+)%z(.*)$'
local back = redis.call('ZRANGE', P .. 'wz', 0, A.back - 1, 'WITHSCORES')
for i = 1, A.back * 2, 2 do
  local name, priority, entry = string.match(back[i], PATTERN)
  redis.call('ZADD', P .. 'q:' .. name, priority * 134217728 + tonumber(back[i + 1]), entry)
  host_of(name).count = host_of(name).count + 1
end
if A.back > 0 then redis.call('ZREMRANGEBYRANK', P .. 'wz', 0, A.back - 1) end
if A.count > 0 then
  for _, waiting in ipairs(redis.call('LRANGE', P .. 'w', 0, A.count - 1)) do
    local name, priority, entry = string.match(string.sub(waiting, 5), PATTERN)
    append(name, tonumber(priority), {string.sub(waiting, 1, 4) .. entry})
  end
  redis.call('LTRIM', P .. 'w', A.count, -1)
end
flush_hosts()
C.waiting = C.waiting - A.back - A.count
return done({})
