-- Invariant: a letter is taken out of the inbox in the write that queues its links and moves the
-- cursor of its sender past it, so it is neither lost nor taken twice.
-- The owner has read the first `count` letters; `cursors` has the names of their senders' cursors,
-- and `numbers` where they move to.
if is_repeated then return held[4] end
know_hosts(A.hosts)
local new, queued = arrive(A.found, A.hosts, A.limit)
flush_hosts()
local cursors, i = {}, 0
get_fields(P .. 'ic', A.cursors, function(name, known)
  i = i + 1
  if A.numbers[i] > (tonumber(known) or 0) then
    cursors[#cursors + 1] = name
    cursors[#cursors + 1] = A.numbers[i]
  end
end)
set_fields(P .. 'ic', cursors)
redis.call('LTRIM', P .. 'i', A.count, -1)
redis.call('HINCRBY', S, 'unread', -A.links)
return done({new = new, queued = queued, first = C.seq - #new + 1})
