-- Invariant: the state goes last, so that a wipe that was cut short can be repeated.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local function remove(keys)
  for first = 1, #keys, 1000 do
    redis.call('UNLINK', unpack(keys, first, math.min(first + 999, #keys)))
  end
end
local keys = {}
for _, host in ipairs(redis.call('HKEYS', P .. 'n')) do keys[#keys + 1] = P .. 'q:' .. host end
local buckets = tonumber(redis.call('HGET', S, 'buckets')) or 16
for bucket = 0, buckets do keys[#keys + 1] = P .. 'k:' .. bucket end
for _, name in ipairs({'n', 'w', 'f', 'fe', 'g', 'ge', 'a', 'h', 'r', 'v', 't', 'o', 'oc', 'i', 'ic',
  'lg', 'sg', 'y', 'x', 'd'}) do keys[#keys + 1] = P .. name end
remove(keys)
redis.call('UNLINK', S)
return 'OK'
