-- Invariant: only the owner whose token the shard has changes it, and each of its writes once. Others
-- add links (`links.lua`), and the owner learns of each of them once.
--
-- The writes of a claim are numbered. The next number is applied. The last number again is a
-- repetition, because an answer was lost: it gets the same answer, and nothing is applied. Any
-- other number means that the server has forgotten writes (a restart that lost its last second):
-- the owner's view of the shard is wrong, so it has to let go and claim again.
--
-- URLs that others have queued are in the list `i` until their owner was told: with the answer to a
-- write, all of them, and they leave the list with the next write. So what an owner knows of its
-- shard came with the answer to a numbered write, and a server that forgets it forgets that write.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local BASE, SHARD = string.match(S, '^(.*:)(%d+):s$')
local ARRIVALS = BASE .. 'arrivals'
local A = cmsgpack.unpack(ARGV[1])

local COUNTERS = {'queued', 'waiting', 'fetched', 'failed', 'lists', 'skipped', 'given_up',
  'requisites', 'retries', 'rechecks', 'round', 'applied', 'seq', 'known', 'buckets'}
local TOLD = 13 -- of them, in the answer
local held = redis.call('HMGET', S, 'id', 'token', 'batch', 'told', 'parsing', unpack(COUNTERS))
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
  for i, name in ipairs(COUNTERS) do C[name] = tonumber(held[i + 5]) or 0 end
end

-- The first write comes before anything else: without memory it fails, and nothing is changed.
local function begin()
  redis.call('HSET', S, 'at', now_ms(), 'rests', '0')
  local told = tonumber(held[4]) or 0
  if told > 0 then redis.call('LTRIM', P .. 'i', told, -1) end
end

-- The answer to a write that is repeated.
local function answered()
  local told = tonumber(held[4]) or 0
  local arrived = told > 0 and redis.call('LRANGE', P .. 'i', 0, told - 1) or {}
  table.insert(arrived, 1, redis.call('HGET', S, 'answer'))
  return arrived
end

-- A command costs more than its values do: many fields are read or written with one.
local PIECE = 2000 -- values of one command

local function set_fields(key, fields)
  for first = 1, #fields, PIECE do
    redis.call('HSET', key, unpack(fields, first, math.min(first + PIECE - 1, #fields)))
  end
end

local function push(key, values)
  for first = 1, #values, PIECE do
    redis.call('RPUSH', key, unpack(values, first, math.min(first + PIECE - 1, #values)))
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

-- Keep the counters, the number of this write and its answer; return the answer, and the URLs that
-- others have queued since the last write.
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
  answer.arrivals = tonumber(redis.call('HGET', ARRIVALS, SHARD)) or 0
  answer.reminders = redis.call('HLEN', P .. 'rm')
  local packed = cmsgpack.pack(answer)
  local arrived = redis.call('LRANGE', P .. 'i', 0, -1)
  redis.call('HSET', S, 'batch', A.n, 'answer', packed, 'told', #arrived, unpack(kept))
  table.insert(arrived, 1, packed)
  return arrived
end
