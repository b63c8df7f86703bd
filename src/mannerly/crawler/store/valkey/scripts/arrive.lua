-- Invariant: a URL is known from the moment it arrives, and is queued or waits exactly once.
--
-- Fingerprints are in sets of integers, which take 8 bytes a URL while they are small
-- (set-max-intset-entries, 512): so there are as many buckets as there have to be. They grow one at
-- a time (linear hashing): when the average passes LOAD, one bucket is split in two.
local LOAD = 230
local FIRST = 16
local SPLITS = 16 -- in one call; a split takes about 0.1 ms

local function bucket_of(address, buckets)
  local size = FIRST
  while size < buckets do size = size * 2 end
  local at = address % size
  if at >= buckets then at = address % (size / 2) end
  return at
end

local function split(buckets)
  local size = FIRST
  while size <= buckets do size = size * 2 end
  local from = buckets - size / 2
  local moved = {}
  for _, print in ipairs(redis.call('SMEMBERS', P .. 'k:' .. from)) do
    -- The last twelve digits of a number decide its last twelve bits.
    local digits = string.sub(string.gsub(print, '-', ''), -12)
    local address = (tonumber(digits) % 4096) * 16 + from % 16
    if address % size == buckets then moved[#moved + 1] = print end
  end
  if #moved > 0 then
    redis.call('SREM', P .. 'k:' .. from, unpack(moved))
    redis.call('SADD', P .. 'k:' .. buckets, unpack(moved))
  end
end

-- A number has 27 bits (`packing`): one more would be that of another URL. It is checked before anything
-- is changed, as if all candidates were new.
local MOST_URLS = 134217727
local function lacks_numbers(counts, found)
  return counts.seq + #found / FOUND_SIZE > MOST_URLS
end
local NO_NUMBERS = 'NUMBERS a shard has as many URLs as it can have (134,217,727): begin a new crawl '
  .. 'with more shards (--shards), or with fewer URLs in its scope'

-- `found` has candidates (`FoundUrl`); `carried` what those with a payload carry, by their place, and
-- whether it has a label: such a request is new although its URL is known, and known by the fingerprint
-- with a minus sign. Returns the places of new ones, how many were queued, and how many with a payload
-- were known that are told. Queued ones are added to `told`, if there is that list.
local function arrive(found, hosts, limit, carried, told)
  local count, buckets = C.known, math.max(FIRST, C.buckets)
  local new, room = {}, limit - (C.queued - C.waiting)
  if C.waiting > 0 then room = 0 end
  local queues, is_met, waiting = {}, {}, {}
  local queued, repeated = 0, 0
  local payloads = {}
  local prefix = P .. 'k:'
  for i = 1, #found, FOUND_SIZE do
    local name, priority = hosts[found[i + FOUND_HOST]], found[i + FOUND_PRIORITY]
    local bucket = prefix .. bucket_of(found[i + FOUND_ADDRESS], buckets)
    local print, carries = found[i + FOUND_PRINT], carried[i]
    local is_new
    if carries and carries[2] then
      is_new = redis.call('SADD', bucket, '-' .. print) == 1
      if is_new then count = count + redis.call('SADD', bucket, print) end
    else
      is_new = redis.call('SADD', bucket, print) == 1
    end
    if carries and carries[3] and not is_new then repeated = repeated + 1 end
    if is_new then
      count = count + 1
      C.seq = C.seq + 1
      if carries then
        payloads[#payloads + 1] = C.seq
        payloads[#payloads + 1] = carries[1]
      end
      new[#new + 1] = (i - 1) / FOUND_SIZE
      if queued < room then
        queued = queued + 1
        local queue = queues[name]
        if not queue then
          queue = {}
          queues[name] = queue
        end
        local entries = queue[priority]
        if not entries then
          entries = {}
          queue[priority] = entries
        end
        local number = number_text(C.seq)
        entries[#entries + 1] = number .. found[i + FOUND_ENTRY]
        if told then
          told[#told + 1] = number .. name .. '\0' .. priority .. '\0' .. found[i + FOUND_ENTRY]
        end
      else
        waiting[#waiting + 1] = number_text(C.seq) .. name .. '\0' .. priority .. '\0'
          .. found[i + FOUND_ENTRY]
        is_met[name] = true
      end
    end
  end
  for name, queue in pairs(queues) do
    for priority, entries in pairs(queue) do append(name, priority, entries) end
  end
  for name in pairs(is_met) do host_of(name) end
  push(P .. 'w', waiting)
  set_fields(P .. 'p', payloads)
  C.waiting = C.waiting + #waiting
  C.queued = C.queued + #new
  for _ = 1, SPLITS do
    if count <= LOAD * buckets then break end
    split(buckets)
    buckets = buckets + 1
  end
  C.known, C.buckets = count, buckets
  return new, queued, repeated
end
