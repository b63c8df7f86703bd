-- Invariant: several fields change together or not at all, and only if they are as they were read.
-- KEYS: budgets, leases, holders, wishes. `changes` has four values each: the number of the key, the
-- field, its old and its new value; '' stands for none.
local A = cmsgpack.unpack(ARGV[1])
for i = 1, #A.changes, 4 do
  local known = redis.call('HGET', KEYS[A.changes[i]], A.changes[i + 1]) or ''
  if known ~= A.changes[i + 2] then return 0 end
end
for i = 1, #A.changes, 4 do
  local key, field, new = KEYS[A.changes[i]], A.changes[i + 1], A.changes[i + 3]
  if new == '' then redis.call('HDEL', key, field) end
end
for i = 1, #A.changes, 4 do
  local key, field, new = KEYS[A.changes[i]], A.changes[i + 1], A.changes[i + 3]
  if new ~= '' then redis.call('HSET', key, field, new) end
end
return 1
