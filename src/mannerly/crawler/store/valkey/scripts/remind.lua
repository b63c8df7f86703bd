-- Invariant: a host's record is replaced only if it is as it was read. `changes` has three values
-- each: host, old record ('': none) and new record.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', S, 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
for i = 1, #A.changes, 3 do
  if (redis.call('HGET', P .. 'h', A.changes[i]) or '') == A.changes[i + 1] then
    redis.call('HSET', P .. 'h', A.changes[i], A.changes[i + 2])
  end
end
return 'OK'
