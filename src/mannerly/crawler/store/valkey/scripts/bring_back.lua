-- Invariant: a URL that comes back leaves the set that it was in and joins the queue or the waiting
-- room in one write, with its number; one that is not in that set any more stays where it is.
-- The owner has read them (`back`, of `BackUrl`) from the sets and from its files; `lost`: from the
-- first block of `m`, which goes.
if is_repeated then return answered() end
begin()
local placed, waiting = {}, 0
local room = A.limit - (C.queued - C.waiting)
for i = 1, #A.back, BACK_SIZE do
  local set, seq, host = A.back[i + BACK_SOURCE], A.back[i + BACK_SEQ], A.back[i + BACK_HOST]
  local priority, entry = A.back[i + BACK_PRIORITY], A.back[i + BACK_ENTRY]
  local kind = A.back[i + BACK_KIND]
  local is_there = true
  if set == 'f' or set == 'g' then
    is_there = redis.call('ZREM', P .. set, seq) == 1
    redis.call('HDEL', P .. set .. 'e', seq)
    if is_there and set == 'g' then C.given_up = C.given_up - 1 end
    if is_there and set == 'f' then
      if kind == 'f' then C.failed = C.failed - 1 end
      if kind == 'm' then C.lists = C.lists - 1 end
      if kind == 'n' then C.requisites = C.requisites - 1 end
    end
  elseif set == 'k' then
    C.skipped = C.skipped - 1
  else -- it has a record, and keeps it
    -- Of a recrawl (`rb`): each once, whoever owns the shard, as nobody may have all records.
    is_there = not (A.recrawl and redis.call('SETBIT', P .. 'rb', seq, 1) == 1)
      and redis.call('HSETNX', P .. 'a', seq, kind) == 1
    if is_there then C.rechecks = C.rechecks + 1 end
  end
  if is_there then
    C.queued = C.queued + 1
    if C.waiting == 0 and room > 0 then
      room = room - 1
      redis.call('ZADD', P .. 'q:' .. host, priority * 134217728 + seq, entry)
      host_of(host).count = host_of(host).count + 1
      placed[#placed + 1] = (i - 1) / BACK_SIZE
    else
      redis.call('ZADD', P .. 'wz', seq, host .. '\0' .. priority .. '\0' .. entry)
      C.waiting = C.waiting + 1
      waiting = waiting + 1
    end
  end
end
flush_hosts()
for i = 1, #A.lg, 2 do
  local known = redis.call('HGET', P .. 'lg', A.lg[i])
  local number = known and string.match(known, '^%d+') or redis.call('HLEN', P .. 'lg')
  redis.call('HSET', P .. 'lg', A.lg[i], number .. ' ' .. A.lg[i + 1])
end
if A.lost then
  redis.call('LPOP', P .. 'm')
  if redis.call('EXISTS', P .. 'm') == 0 then
    redis.call('DEL', P .. 'mb')
  else
    for i = 1, #A.back, BACK_SIZE do
      redis.call('SETBIT', P .. 'mb', A.back[i + BACK_SEQ], 0)
    end
  end
end
redis.call('HINCRBY', S, 'recalls', 1) -- a command that looks for lost records looks again
if A.order == '' then
  redis.call('LPOP', P .. 'y')
  C.retries = C.retries - 1
else
  redis.call('LSET', P .. 'y', 0, A.order)
end
return done({placed = placed, waiting = waiting})
