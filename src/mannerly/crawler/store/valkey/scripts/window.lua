-- Invariant: entries come in the order of (priority, number), past the cursor; nothing is changed.
-- Entries of lists come as they are; those of the sorted set with their number in front. Those of the
-- lists with a number above `known` are left out: their owner was not told of them yet. `text`:
-- only those that contain it; then at most `scan` entries are looked at, and the cursor of the last
-- one is the first value of the answer.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local found, looked, last = {}, 0, ''

local function number_of(entry)
  local a, b, c, d = string.byte(entry, 1, 4)
  return ((a * 128 + b) * 128 + c) * 128 + d
end

local function is_wanted(entry)
  return A.text == '' or string.find(entry, A.text, 1, true)
end

local function take(priority, seq, entry)
  looked = looked + 1
  last = string.format('%.0f %.0f', priority, seq)
  if is_wanted(entry) then
    found[#found + 1] = string.format('%.0f %.0f ', priority, seq) .. entry
  end
end

local function is_enough()
  return #found >= A.limit or looked >= A.scan
end

local back = {}
local from = '-inf'
if A.priority >= 0 then from = '(' .. string.format('%.0f', A.priority * 134217728 + A.seq) end
local returned = redis.call('ZRANGEBYSCORE', P .. 'q:' .. A.host, from, '+inf', 'WITHSCORES',
  'LIMIT', 0, math.min(A.limit, A.scan))
for i = 1, #returned, 2 do
  local place = tonumber(returned[i + 1])
  back[#back + 1] = {math.floor(place / 134217728), place % 134217728, returned[i]}
end

local at = 1
local function take_back(priority, seq)
  while at <= #back and not is_enough() do
    local other = back[at]
    if other[1] > priority or (other[1] == priority and other[2] > seq) then return end
    take(other[1], other[2], other[3])
    at = at + 1
  end
end

local value = redis.call('HGET', P .. 'n', A.host) or '0'
for text in string.gmatch(value, ' (%d+)') do
  local priority = tonumber(text)
  if priority >= A.priority and not is_enough() then
    local key = P .. 'l:' .. text .. ':' .. A.host
    local start = 0
    repeat
      local entries = redis.call('LRANGE', key, start, start + 499)
      start = start + #entries
      for _, entry in ipairs(entries) do
        local seq = number_of(entry)
        if seq > A.known then
          start = math.huge
          break
        end
        if priority > A.priority or seq > A.seq then
          take_back(priority, seq)
          if is_enough() then break end
          take(priority, seq, string.sub(entry, 5))
        end
      end
    until #entries < 500 or start == math.huge or is_enough()
  end
end
take_back(math.huge, 0)
table.insert(found, 1, last)
return found
