-- Invariant: the state goes last, so that a wipe that was cut short can be repeated.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local function remove(keys)
  for first = 1, #keys, 1000 do
    redis.call('UNLINK', unpack(keys, first, math.min(first + 999, #keys)))
  end
end
local keys = {}
local hosts = redis.call('HGETALL', P .. 'n')
for i = 1, #hosts, 2 do
  keys[#keys + 1] = P .. 'q:' .. hosts[i]
  for priority in string.gmatch(hosts[i + 1], ' (%d+)') do
    keys[#keys + 1] = P .. 'l:' .. priority .. ':' .. hosts[i]
  end
end
local buckets = tonumber(redis.call('HGET', S, 'buckets')) or 16
for bucket = 0, buckets do keys[#keys + 1] = P .. 'k:' .. bucket end
for _, name in ipairs({'n', 'w', 'wz', 'f', 'fe', 'g', 'ge', 'a', 'h', 'r', 'c', 'v', 'i',
  'lg', 'sg', 'y', 'x', 'd', 'u', 'ut', 'm', 'mb', 'rm', 'rb', 'p', 'st'}) do keys[#keys + 1] = P .. name end
remove(keys)
redis.call('UNLINK', S)
return 'OK'
