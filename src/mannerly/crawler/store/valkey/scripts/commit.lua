-- Invariant: a batch is applied whole. A page counts only if its URL is still queued, so nothing is
-- recorded twice; what it brought, whichever shards that belongs to, and the lengths of the files with
-- its record come with it.
if is_repeated then return answered() end
if lacks_numbers(C, A.found) then return redis.error_reply(NO_NUMBERS) end
local receivers, failure = receivers_of(A.links)
if failure then return failure end
begin()

local hosts = A.hosts
local is_checked_again = C.rechecks > 0
local has_notes = redis.call('EXISTS', P .. 'x', P .. 'd', P .. 'st') > 0
local parsing = tonumber(held[5]) or 0
know_hosts(hosts)

local function take(seq)
  C.queued = C.queued - 1
  if seq == parsing then redis.call('HSET', S, 'parsing', '0') end
  if has_notes then
    redis.call('HDEL', P .. 'x', seq)
    redis.call('SREM', P .. 'd', seq)
    redis.call('SREM', P .. 'st', seq)
  end
end

-- The kind of record that a queued URL has already: p page, f failed page, l list, m failed list,
-- c checked link, d failed one (which are not counted), q requisite, n failed one.
local function earlier(seq)
  if not is_checked_again then return nil end
  local kind = redis.call('HGET', P .. 'a', seq)
  if not kind then return nil end
  redis.call('HDEL', P .. 'a', seq)
  C.rechecks = C.rechecks - 1
  return kind
end

-- A capital is one whose record is lost with a disk (`fetched`).
local COUNTED = {p = 'fetched', f = 'failed', l = 'lists', m = 'lists', c = 'checks', d = 'checks',
  q = 'requisites', n = 'requisites', P = 'fetched', L = 'lists', C = 'checks', Q = 'requisites'}
local IS_FAILED = {f = true, m = true, d = true, n = true}
local NOT_FAILED = {f = 'p', m = 'l', d = 'c', n = 'q'}
local IS_LOST = {P = true, L = true, C = true, Q = true}
C.checks = 0

-- Pages (`LeavingUrl`); failed ones are in `entries`, too. Of the others the entry is kept.
local counted = 0
local urls = {}
local is_gone = remove_all(A.pages, hosts)
for i = 1, #A.pages, LEAVING_SIZE do
  if is_gone[i] then
    local seq = A.pages[i + LEAVING_SEQ]
    take(seq)
    counted = counted + 1
    local kind = A.pages[i + LEAVING_HOW]
    local before = earlier(seq)
    if before then
      if IS_FAILED[before] then
        -- Earlier releases counted what has a status as fetched.
        if redis.call('ZREM', P .. 'f', seq) == 0 then before = NOT_FAILED[before] end
        redis.call('HDEL', P .. 'fe', seq)
      end
      C[COUNTED[before]] = C[COUNTED[before]] - 1
    end
    C[COUNTED[kind]] = C[COUNTED[kind]] + 1
    if IS_FAILED[kind] then
      redis.call('ZADD', P .. 'f', redis.call('HINCRBY', S, 'stamp', 1), seq)
      redis.call('HSET', P .. 'fe', seq, C.round .. ' ' .. A.entries[tostring(i)])
    elseif A.keeps and (not before or IS_FAILED[before]) then
      urls[#urls + 1] = hosts[A.pages[i + LEAVING_HOST]] .. '\0' .. A.pages[i + LEAVING_PRIORITY]
        .. '\0' .. A.pages[i + LEAVING_ENTRY]
    end
  end
end

-- Dropped ones likewise.
is_gone = remove_all(A.dropped, hosts)
for i = 1, #A.dropped, LEAVING_SIZE do
  if is_gone[i] then
    local seq = A.dropped[i + LEAVING_SEQ]
    take(seq)
    local before = earlier(seq)
    if IS_LOST[before] then C[COUNTED[before]] = C[COUNTED[before]] - 1 end
    if not before or IS_LOST[before] then
      local given_up = A.dropped[i + LEAVING_HOW]
      if given_up ~= '' then
        C.given_up = C.given_up + 1
        redis.call('ZADD', P .. 'g', redis.call('HINCRBY', S, 'stamp', 1), seq)
        redis.call('HSET', P .. 'ge', seq, given_up)
      else
        C.skipped = C.skipped + 1
      end
    end
  end
end

-- The first `packed` entries become a block.
local unpacked = 0
if A.keeps then
  if A.packed > 0 then
    redis.call('RPUSH', P .. 'u', A.block)
    redis.call('LTRIM', P .. 'ut', A.packed, -1)
  end
  for first = 1, #urls, PIECE do
    unpacked = redis.call('RPUSH', P .. 'ut', unpack(urls, first, math.min(first + PIECE - 1, #urls)))
  end
end

local new, queued, repeated = arrive(A.found, hosts, A.limit, A.carried)
set_fields(P .. 'h', A.records)
for i = 1, #A.heard, 2 do -- reminders that are in these records now: host, record
  if redis.call('HGET', P .. 'rm', A.heard[i]) == A.heard[i + 1] then
    redis.call('HDEL', P .. 'rm', A.heard[i])
  end
end
for i = 1, #A.records, 2 do host_of(A.records[i]) end
flush_hosts()
local carried_again, lagging = add_links(receivers, A.limit)

set_fields(P .. 'r', A.robots)
for _, origin in ipairs(A.forgotten) do redis.call('HDEL', P .. 'r', origin) end
for i = 1, #A.sessions, 2 do -- name and cookies; none: it is forgotten
  redis.call('HDEL', P .. 'c', A.sessions[i])
  if A.sessions[i + 1] ~= '' then redis.call('HSET', P .. 'c', A.sessions[i], A.sessions[i + 1]) end
end
for i = 1, #A.votes, 3 do
  redis.call('HINCRBY', P .. 'v', A.votes[i] .. ' right', A.votes[i + 1])
  redis.call('HINCRBY', P .. 'v', A.votes[i] .. ' wrong', A.votes[i + 2])
end

-- Files: name and value; they are numbered in the order of their beginning.
for _, key in ipairs({'lg', 'sg'}) do
  local files = A[key]
  for i = 1, #files, 2 do
    local known = redis.call('HGET', P .. key, files[i])
    local number = known and string.match(known, '^%d+') or redis.call('HLEN', P .. key)
    redis.call('HSET', P .. key, files[i], number .. ' ' .. files[i + 1])
  end
end

if A.round > C.round then -- URLs up to this number were known before
  C.round = A.round
  redis.call('HSET', S, 'before', C.seq)
  redis.call('DEL', P .. 'rb')
end
for _, order in ipairs(A.retries) do
  redis.call('RPUSH', P .. 'y',
    (redis.call('HGET', S, 'stamp') or 0) .. ' 0 ' .. order) -- up to which stamp, from which on
  C.retries = C.retries + 1
end
if A.applied > C.applied then C.applied = A.applied end

return done({new = new, queued = queued, first = C.seq - #new + 1, counted = counted,
  unpacked = unpacked, repeated = repeated + carried_again, lagging = lagging})
