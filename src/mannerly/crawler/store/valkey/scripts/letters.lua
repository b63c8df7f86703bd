-- Invariant: a letter leaves the outbox only when its receiver's cursor has passed it.
-- `handed` has the shard, the last letter that was posted there, and how many links are new there;
-- `passed` the shard, the letters that have left, and the last one that can leave.
-- Returns cursors that are to be kept, names and values.
local function note_letters()
  local cursors, gone = {}, {}
  for i = 1, #A.handed, 3 do
    cursors[#cursors + 1] = A.handed[i] .. ':posted'
    cursors[#cursors + 1] = A.handed[i + 1]
    C.outgoing = math.max(0, C.outgoing - A.handed[i + 2])
  end
  for i = 1, #A.passed, 3 do
    for number = A.passed[i + 1] + 1, A.passed[i + 2] do
      gone[#gone + 1] = A.passed[i] .. ':' .. number
    end
    cursors[#cursors + 1] = A.passed[i] .. ':passed'
    cursors[#cursors + 1] = A.passed[i + 2]
  end
  for first = 1, #gone, PIECE do
    redis.call('HDEL', P .. 'o', unpack(gone, first, math.min(first + PIECE - 1, #gone)))
  end
  return cursors
end
