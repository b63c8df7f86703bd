-- Invariant: notes need no lease, and are of this crawl only.
-- `what` is parsing (of the owner with this token) or done.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
if A.what == 'done' then
  redis.call('SADD', P .. 'd', A.seq)
elseif held[2] == A.token then
  redis.call('HSET', S, 'parsing', A.seq)
end
return 'OK'
