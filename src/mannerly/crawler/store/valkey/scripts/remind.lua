-- Invariant: a host's record is replaced only if it is as it was read. `changes` has three values
-- each: host, old record ('': none) and new record. Anybody may remind: the new record has no shorter
-- wait than the old one. An owner has the old record in memory: it is left a note (`rm`).
-- Returns 1 for each change that was made, and 0 for each other.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local answer = {}
for i = 1, #A.changes, 3 do
  local host, new = A.changes[i], A.changes[i + 2]
  local is_as_read = (redis.call('HGET', P .. 'h', host) or '') == A.changes[i + 1]
  if is_as_read then
    redis.call('HSET', P .. 'h', host, new)
    if held[2] and held[2] ~= '' then redis.call('HSET', P .. 'rm', host, new) end
  end
  answer[#answer + 1] = is_as_read and 1 or 0
end
return answer
