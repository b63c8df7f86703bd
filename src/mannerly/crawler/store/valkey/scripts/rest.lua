-- Invariant: a shard rests only if nothing is queued, nothing is on its way to it or from it, and
-- every order was acted on. Whatever is written to it afterwards ends the rest; the epoch counts
-- how often it began, so that two looks can tell whether it lasted.
local s = redis.call('HMGET', S, 'queued', 'unread', 'outgoing', 'retries', 'rests', 'orders', 'epoch')
for i = 1, 4 do
  if (tonumber(s[i]) or 0) > 0 then return 0 end
end
if redis.call('EXISTS', P .. 'o') == 1 then return 0 end
if s[5] ~= '1' or tonumber(s[6]) ~= A.orders then
  redis.call('HSET', S, 'rests', '1', 'orders', A.orders, 'epoch', (tonumber(s[7]) or 0) + 1)
end
return 1
