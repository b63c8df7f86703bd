-- Invariant: letters of one sender arrive without a gap. A letter behind a gap is refused, because
-- the server has lost those before it: the answer tells the sender where to begin again.
-- Anybody may post: the receiver's token is not needed, its crawl's id is.
-- `letters` has for each of `senders` the number, links and packed links of its letters. The answer
-- is the number of unread links, and for each sender how far its letters have arrived and were read.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', S, 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local names = {}
for i, sender in ipairs(A.senders) do
  names[2 * i - 1], names[2 * i] = sender .. ':posted', sender .. ':read'
end
local cursors = redis.call('HMGET', P .. 'ic', unpack(names))
local answer, arrived, changed = {0}, {}, {}
local links = 0
for i, sender in ipairs(A.senders) do
  local before, letters = tonumber(cursors[2 * i - 1]) or 0, A.letters[i]
  local posted = before
  for k = 1, #letters, 3 do
    if letters[k] == posted + 1 then
      posted = posted + 1
      links = links + letters[k + 1]
      arrived[#arrived + 1] = sender .. ' ' .. posted .. ' ' .. letters[k + 1] .. ' ' .. letters[k + 2]
    end
  end
  if posted > before then
    changed[#changed + 1], changed[#changed + 2] = names[2 * i - 1], posted
  end
  answer[2 * i], answer[2 * i + 1] = posted, tonumber(cursors[2 * i]) or 0
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
