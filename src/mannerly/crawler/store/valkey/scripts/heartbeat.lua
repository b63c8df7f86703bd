-- Invariant: a heartbeat has the stamp of its member, and the server's time for readers.
-- KEYS: meta, heartbeats. An empty heartbeat takes the worker's away. `dead` has names and values of those that
-- were not renewed for long: those that are still the same go.
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', KEYS[1], 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
redis.call('HDEL', KEYS[2], '')
for i = 1, #A.dead, 2 do
  if redis.call('HGET', KEYS[2], A.dead[i]) == A.dead[i + 1] then
    redis.call('HDEL', KEYS[2], A.dead[i])
  end
end
if A.heartbeat == '' then
  redis.call('HDEL', KEYS[2], A.worker)
else
  redis.call('HSET', KEYS[2], A.worker, now_ms() .. ' ' .. A.stamp .. ' ' .. A.heartbeat)
end
return now_ms()
