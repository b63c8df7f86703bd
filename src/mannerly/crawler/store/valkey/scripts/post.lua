-- Invariant: letters of one stream arrive without a gap. A letter behind a gap is refused, because
-- the server has lost those before it: the answer tells the sender where to begin again.
-- Anybody may post: the sender's token cannot be checked, because in a cluster its shard may be on
-- another server. So letters of different claims of the sender are different streams, and none can be
-- taken for another: one of an owner that has lost its shard brings links, and does no harm.
-- `letters` has for each of `streams` (SENDER:CLAIM-TOKEN) the number, links and packed links of its
-- letters, `passed` the last letter that has left the outbox, because it was read here: the sender
-- does not have it any more. The answer is the number of unread links, and for each stream how far
-- its letters have arrived and were read.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', S, 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local cursors = redis.call('HMGET', P .. 'ic', unpack(A.streams))
local answer, arrived, changed = {0}, {}, {}
local links = 0
for i, stream in ipairs(A.streams) do
  local posted, read = string.match(cursors[i] or '0 0', '^(%d+) (%d+)$')
  posted, read = math.max(posted, A.passed[i]), math.max(read, A.passed[i])
  local before, letters = posted, A.letters[i]
  for k = 1, #letters, 3 do
    if letters[k] == posted + 1 then
      posted = posted + 1
      links = links + letters[k + 1]
      arrived[#arrived + 1] = stream .. ' ' .. posted .. ' ' .. letters[k + 1] .. ' ' .. letters[k + 2]
    end
  end
  if posted > before then
    changed[#changed + 1], changed[#changed + 2] = stream, posted .. ' ' .. read
  end
  answer[2 * i], answer[2 * i + 1] = posted, read
end
for first = 1, #arrived, 2000 do
  redis.call('RPUSH', P .. 'i', unpack(arrived, first, math.min(first + 1999, #arrived)))
end
if links > 0 then
  redis.call('HSET', P .. 'ic', unpack(changed))
  redis.call('HSET', S, 'rests', '0')
end
answer[1] = redis.call('HINCRBY', S, 'unread', links)
return answer
