-- Invariant: only the owner whose token the shard has changes it, and each of its writes once.
--
-- The writes of a claim are numbered. The next number is applied. The last number again is a
-- repetition, because an answer was lost: it gets the same answer, and nothing is applied. Any
-- other number means that the server has forgotten writes (a restart that lost its last second):
-- the owner's view of the shard is wrong, so it has to let go and claim again.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])

local COUNTERS = {'queued', 'waiting', 'fetched', 'failed', 'lists', 'skipped', 'given_up',
  'outgoing', 'retries', 'rechecks', 'round', 'applied', 'seq', 'known', 'buckets'}
local TOLD = 13 -- of them, in the answer
local held = redis.call('HMGET', S, 'id', 'token', 'batch', 'unread', 'parsing', unpack(COUNTERS))
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
if held[2] ~= A.token then
  return redis.error_reply('LOST the shard has another owner')
end
local is_repeated = A.n == tonumber(held[3])
if A.n and not is_repeated and A.n ~= tonumber(held[3]) + 1 then
  return redis.error_reply('LOST the server has forgotten some of what was written')
end

local C = {}
if A.n and not is_repeated then
  -- The first write comes before anything else: without memory it fails, and nothing is changed.
  redis.call('HSET', S, 'at', now_ms(), 'rests', '0')
  for i, name in ipairs(COUNTERS) do C[name] = tonumber(held[i + 5]) or 0 end
end

-- The answer to a write that is repeated.
local function answered() return redis.call('HGET', S, 'answer') end

-- A command costs more than its values do: many fields are read or written with one.
local PIECE = 2000 -- values of one command

local function set_fields(key, fields)
  for first = 1, #fields, PIECE do
    redis.call('HSET', key, unpack(fields, first, math.min(first + PIECE - 1, #fields)))
  end
end

local function remove_fields(key, names)
  for first = 1, #names, PIECE do
    redis.call('HDEL', key, unpack(names, first, math.min(first + PIECE - 1, #names)))
  end
end

-- Call `take` with each name and its value; false: there is none.
local function get_fields(key, names, take)
  for first = 1, #names, PIECE do
    local last = math.min(first + PIECE - 1, #names)
    local values = redis.call('HMGET', key, unpack(names, first, last))
    for i = first, last do take(names[i], values[i - first + 1]) end
  end
end

-- Keep the counters, the number of this write and its answer; return the answer.
local function done(answer)
  local counts = {}
  local kept = {}
  for i, name in ipairs(COUNTERS) do
    if i <= TOLD then counts[i] = C[name] end
    kept[#kept + 1] = name
    kept[#kept + 1] = C[name]
  end
  counts[#counts + 1] = redis.call('HLEN', P .. 'n')
  answer.counts = counts
  answer.unread = answer.unread or tonumber(held[4]) or 0
  answer.reminders = redis.call('HLEN', P .. 'rm')
  local packed = cmsgpack.pack(answer)
  redis.call('HSET', S, 'batch', A.n, 'answer', packed, unpack(kept))
  return packed
end
