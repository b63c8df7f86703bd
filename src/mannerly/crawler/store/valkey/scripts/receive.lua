-- Invariant: a letter is taken out of the inbox in the write that queues its links and moves the
-- cursor of its sender past it, so it is neither lost nor taken twice.
-- The owner has read the first `count` letters; `cursors` has the sender and number of each.
if is_repeated then return held[4] end
local new, queued = arrive(A.found, A.hosts, A.limit)
flush_hosts()
for i = 1, #A.cursors, 2 do
  local known = tonumber(redis.call('HGET', P .. 'ic', A.cursors[i] .. ':read')) or 0
  if A.cursors[i + 1] > known then
    redis.call('HSET', P .. 'ic', A.cursors[i] .. ':read', A.cursors[i + 1])
  end
end
redis.call('LTRIM', P .. 'i', A.count, -1)
redis.call('HINCRBY', S, 'unread', -A.links)
return done({new = new, queued = queued, first = C.seq - #new + 1})
