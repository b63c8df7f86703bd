-- Invariant: letters of one sender arrive without a gap. A letter behind a gap is refused, because
-- the server has lost those before it: the answer tells the sender where to begin again.
-- Anybody may post: the receiver's token is not needed, its crawl's id is.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
if redis.call('HGET', S, 'id') ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local cursors = redis.call('HMGET', P .. 'ic', A.sender .. ':posted', A.sender .. ':read')
local posted, read = tonumber(cursors[1]) or 0, tonumber(cursors[2]) or 0
local links = 0
for i = 1, #A.letters, 3 do -- number, links, packed links
  if A.letters[i] == posted + 1 then
    posted = posted + 1
    links = links + A.letters[i + 1]
    redis.call('RPUSH', P .. 'i',
      A.sender .. ' ' .. posted .. ' ' .. A.letters[i + 1] .. ' ' .. A.letters[i + 2])
  end
end
if links > 0 then
  redis.call('HSET', P .. 'ic', A.sender .. ':posted', posted)
  redis.call('HSET', S, 'rests', '0')
end
return {posted, read, redis.call('HINCRBY', S, 'unread', links)}
