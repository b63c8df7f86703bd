-- Invariant: a letter leaves the outbox only when its receiver's cursor has passed it.
-- `handed` has the stream (SHARD:CLAIM-TOKEN), the last letter that was posted, and how many links of
-- it are new there; `passed` the stream, the letters that have left, and the last one that can leave;
-- `ended` the stream of an earlier claim that was read to its end, the letters that have left, the
-- last one there is, and how many links were new.
-- Returns cursors that are to be kept, names and values.
local function note_letters()
  local cursors, gone, ended = {}, {}, {}
  local function leave(stream, first, last)
    for number = first, last do gone[#gone + 1] = stream .. ':' .. number end
  end
  for i = 1, #A.handed, 3 do
    cursors[#cursors + 1] = A.handed[i] .. ':posted'
    cursors[#cursors + 1] = A.handed[i + 1]
    C.outgoing = math.max(0, C.outgoing - A.handed[i + 2])
  end
  for i = 1, #A.passed, 3 do
    leave(A.passed[i], A.passed[i + 1] + 1, A.passed[i + 2])
    cursors[#cursors + 1] = A.passed[i] .. ':passed'
    cursors[#cursors + 1] = A.passed[i + 2]
  end
  for i = 1, #A.ended, 4 do
    leave(A.ended[i], A.ended[i + 1] + 1, A.ended[i + 2])
    C.outgoing = math.max(0, C.outgoing - A.ended[i + 3])
    for _, which in ipairs({':last', ':posted', ':passed'}) do ended[#ended + 1] = A.ended[i] .. which end
  end
  remove_fields(P .. 'o', gone)
  remove_fields(P .. 'oc', ended)
  return cursors
end
