-- Invariant: a letter is taken out of the inbox in the write that queues its links and moves the
-- cursor of its stream past it, so it is neither lost nor taken twice.
-- The owner has read the first letters: `letters` has the stream and number of each; `streams` has
-- their streams, and `numbers` where the cursors move to. A stream without a cursor was ended by its
-- sender, which waits for nothing. If other letters are there, the server has forgotten some since
-- they were read: those that are there now were read by no one.
if is_repeated then return answered() end
if lacks_numbers(A.found) then return redis.error_reply(NO_NUMBERS) end
local first = redis.call('LRANGE', P .. 'i', 0, #A.letters - 1)
for i, letter in ipairs(A.letters) do
  if string.sub(first[i] or '', 1, #letter + 1) ~= letter .. ' ' then
    return redis.error_reply('LOST the server has forgotten letters that were read')
  end
end
know_hosts(A.hosts)
local new, queued = arrive(A.found, A.hosts, A.limit)
flush_hosts()
local cursors, i = {}, 0
get_fields(P .. 'ic', A.streams, function(stream, known)
  i = i + 1
  if known then
    local posted, read = string.match(known, '^(%d+) (%d+)$')
    cursors[#cursors + 1] = stream
    cursors[#cursors + 1] = posted .. ' ' .. math.max(read, A.numbers[i])
  end
end)
set_fields(P .. 'ic', cursors)
redis.call('LTRIM', P .. 'i', #A.letters, -1)
local unread = redis.call('HINCRBY', S, 'unread', -A.links)
return done({new = new, queued = queued, first = C.seq - #new + 1, unread = unread})
