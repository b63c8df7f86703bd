-- Invariant: a letter leaves the outbox only when its receiver's cursor has passed it.
-- `handed` has the shard, the last letter that was posted there, and how many links are new there;
-- `passed` the shard, the letters that have left, and the last one that can leave.
local function note_letters()
  for i = 1, #A.handed, 3 do
    redis.call('HSET', P .. 'oc', A.handed[i] .. ':posted', A.handed[i + 1])
    C.outgoing = math.max(0, C.outgoing - A.handed[i + 2])
  end
  for i = 1, #A.passed, 3 do
    local gone = {}
    for number = A.passed[i + 1] + 1, A.passed[i + 2] do
      gone[#gone + 1] = A.passed[i] .. ':' .. number
      if #gone == 1000 then
        redis.call('HDEL', P .. 'o', unpack(gone))
        gone = {}
      end
    end
    if #gone > 0 then redis.call('HDEL', P .. 'o', unpack(gone)) end
    redis.call('HSET', P .. 'oc', A.passed[i] .. ':passed', A.passed[i + 2])
  end
end
