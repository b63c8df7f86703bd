-- Invariant: a shard has one owner. Another one is let in when the lease is over by the clock of the
-- server; after a restart of the server not before one lease has passed, because a lease that was
-- granted in the last second before it may be forgotten, while its owner still sends. A lease that
-- seems to last longer than that was granted by the clock of another server, before a failover.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token', 'member', 'until', 'run', 'hold', 'claim')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local now = now_ms()
local run = run_id()
if held[5] ~= run then
  held[6] = now + A.ttl
  redis.call('HSET', S, 'run', run, 'hold', held[6])
  if held[4] and tonumber(held[4]) > held[6] then
    held[4] = held[6]
    redis.call('HSET', S, 'until', held[4])
  end
end
if held[2] and held[2] ~= '' and tonumber(held[4]) > now then
  return {'held', held[3], tonumber(held[4]) - now}
end
if tonumber(held[6]) > now then
  return {'restarted', '', tonumber(held[6]) - now}
end
local is_takeover = held[2] and held[2] ~= '' and 1 or 0
local claim = (tonumber(held[7]) or 0) + 1
redis.call('HSET', S, 'token', A.token, 'member', A.member, 'until', now + A.ttl, 'claim', claim,
  'batch', 0, 'answer', '')
for _, parsing in ipairs({redis.call('HGET', S, 'parsing') or '0', A.parsing}) do
  if tonumber(parsing) ~= 0 then -- an owner died while this page was parsed
    redis.call('HINCRBY', P .. 'x', parsing, 1)
  end
end
redis.call('HSET', S, 'parsing', '0')
return {'yours', claim, now, is_takeover}
