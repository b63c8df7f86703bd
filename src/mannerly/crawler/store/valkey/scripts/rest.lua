-- Invariant: a shard rests only if nothing is queued and every order was acted on. Whatever is written
-- to it afterwards ends the rest (`finished.lua`).
local s = redis.call('HMGET', S, 'queued', 'retries', 'rests', 'orders')
if (tonumber(s[1]) or 0) > 0 or (tonumber(s[2]) or 0) > 0 then return 0 end
if s[3] ~= '1' or tonumber(s[4]) ~= A.orders then
  redis.call('HSET', S, 'rests', '1', 'orders', A.orders)
end
return 1
