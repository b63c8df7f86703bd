-- Invariant: URLs whose record is lost are left to the owner of the shard, which queues them.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', S, 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
for _, block in ipairs(A.blocks) do redis.call('RPUSH', P .. 'm', block) end
return 'OK'
