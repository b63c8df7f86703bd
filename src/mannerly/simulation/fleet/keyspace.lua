-- The commands of a server that the store uses, on Lua tables, beside the scripts that call them.
--
-- Values: a string; a hash {kind, n, of}; a set {kind, n, of}; a list {kind, items}; a sorted set
-- {kind, n, of, order}, whose order is made when it is needed. A key that becomes empty is gone.
-- Every change is noted in a journal, so that the last moments can be taken back (`rewind`). What a
-- real server returns in no order (HGETALL, SMEMBERS) is sorted here: a seed repeats a run.
local values, journal = {}, {}
local HASH, SET, LIST, SORTED = 'hash', 'set', 'list', 'sorted'
local floor, sort, concat, format = math.floor, table.sort, table.concat, string.format
local char, byte, sub = string.char, string.byte, string.sub

local function kept(undo) journal[#journal + 1] = undo end

local function text_of(value)
  if type(value) ~= 'number' then return value end
  return value == floor(value) and format('%.0f', value) or format('%.17g', value)
end

local function read(key, kind)
  local value = values[key]
  if value and value.kind ~= kind then
    error('WRONGTYPE Operation against a key holding the wrong kind of value', 0)
  end
  return value
end

-- Return a value to change; one that is made is taken back as a whole.
local function change(key, kind)
  local value = read(key, kind)
  if value then return value end
  value = kind == LIST and {kind = LIST, items = {}} or {kind = kind, n = 0, of = {}}
  values[key] = value
  kept(function() values[key] = nil end)
  return value
end

local function replace(key, value)
  local before = values[key]
  values[key] = value
  kept(function() values[key] = before end)
end

local function put(value, name, new)
  local of, before = value.of, value.of[name]
  if before == new then return before == nil end
  of[name] = new
  local change_of_size = (before == nil and 1 or 0) - (new == nil and 1 or 0)
  value.n = value.n + change_of_size
  value.order = nil
  kept(function()
    of[name], value.n, value.order = before, value.n - change_of_size, nil
  end)
  return before == nil
end

local function take_out(key, kind, ...)
  local value = read(key, kind)
  if not value then return 0 end
  local gone = 0
  for i = 1, select('#', ...) do
    local name = select(i, ...)
    if value.of[name] ~= nil then
      put(value, name, nil)
      gone = gone + 1
    end
  end
  if value.n == 0 then replace(key, nil) end
  return gone
end

local function names(value)
  local all = {}
  if value then
    for name in pairs(value.of) do all[#all + 1] = name end
  end
  sort(all)
  return all
end

local function size(key, kind)
  local value = read(key, kind)
  return value and value.n or 0
end

local function field(key, kind, name)
  local value = read(key, kind)
  local found = value and value.of[name]
  if found == nil then return false end
  return found
end

-- Places of a range, from 1 on.
local function span(first, last, length)
  first, last = tonumber(first), tonumber(last)
  if first < 0 then first = math.max(0, first + length) end
  if last < 0 then last = last + length end
  return first + 1, math.min(last + 1, length)
end

local function ordered(value)
  if not value then return {} end
  if not value.order then
    local of, order = value.of, {}
    for name in pairs(of) do order[#order + 1] = name end
    sort(order, function(a, b)
      if of[a] ~= of[b] then return of[a] < of[b] end
      return a < b
    end)
    value.order = order
  end
  return value.order
end

local function with_scores(value, first, last, is_asked)
  local found, order = {}, ordered(value)
  for i = first, last do
    found[#found + 1] = order[i]
    if is_asked then found[#found + 1] = text_of(value.of[order[i]]) end
  end
  return found
end

local function has_word(word, ...)
  for i = 1, select('#', ...) do
    if string.upper(select(i, ...)) == word then return i end
  end
end

local function bound(text)
  if sub(text, 1, 1) == '(' then return tonumber(sub(text, 2)), true end
  return tonumber(text), false
end

local function between(value, low, high)
  local least, is_above = bound(low)
  local most, is_below = bound(high)
  local order, first = ordered(value), 1
  while order[first] and (value.of[order[first]] < least
      or is_above and value.of[order[first]] == least) do first = first + 1 end
  local last = first - 1
  while order[last + 1] and (value.of[order[last + 1]] < most
      or not is_below and value.of[order[last + 1]] == most) do last = last + 1 end
  return first, last
end

-- Set the items of a list; an empty one is gone.
local function set_items(key, value, items)
  if #items == 0 then return replace(key, nil) end
  local before = value.items
  value.items = items
  kept(function() value.items = before end)
end

local COMMANDS = {}

function COMMANDS.EXISTS(...)
  local found = 0
  for i = 1, select('#', ...) do
    if values[select(i, ...)] then found = found + 1 end
  end
  return found
end

function COMMANDS.DEL(...)
  local found = 0
  for i = 1, select('#', ...) do
    local key = select(i, ...)
    if values[key] then
      replace(key, nil)
      found = found + 1
    end
  end
  return found
end
COMMANDS.UNLINK = COMMANDS.DEL

function COMMANDS.GET(key)
  local value = read(key, 'string')
  return value and value.text or false
end

function COMMANDS.SET(key, text)
  replace(key, {kind = 'string', text = text})
  return 'OK'
end

function COMMANDS.HGET(key, name) return field(key, HASH, name) end

function COMMANDS.HMGET(key, ...)
  local value, found = read(key, HASH), {}
  for i = 1, select('#', ...) do
    found[i] = value and value.of[select(i, ...)] or false
  end
  return found
end

function COMMANDS.HGETALL(key)
  local value, found = read(key, HASH), {}
  for _, name in ipairs(names(value)) do
    found[#found + 1] = name
    found[#found + 1] = value.of[name]
  end
  return found
end

function COMMANDS.HKEYS(key) return names(read(key, HASH)) end
function COMMANDS.HLEN(key) return size(key, HASH) end
function COMMANDS.HEXISTS(key, name) return field(key, HASH, name) and 1 or 0 end

function COMMANDS.HSET(key, ...)
  local value, new = change(key, HASH), 0
  for i = 1, select('#', ...), 2 do
    local name, text = select(i, ...)
    if put(value, name, text) then new = new + 1 end
  end
  return new
end

function COMMANDS.HSETNX(key, name, text)
  if field(key, HASH, name) then return 0 end
  put(change(key, HASH), name, text)
  return 1
end

function COMMANDS.HINCRBY(key, name, by)
  local sum = tonumber(field(key, HASH, name) or 0) + tonumber(by)
  put(change(key, HASH), name, text_of(sum))
  return sum
end

function COMMANDS.HDEL(key, ...) return take_out(key, HASH, ...) end
function COMMANDS.HSCAN(key) return {'0', COMMANDS.HGETALL(key)} end

function COMMANDS.SADD(key, ...)
  local value, new = change(key, SET), 0
  for i = 1, select('#', ...) do
    if put(value, select(i, ...), true) then new = new + 1 end
  end
  return new
end

function COMMANDS.SREM(key, ...) return take_out(key, SET, ...) end
function COMMANDS.SMEMBERS(key) return names(read(key, SET)) end
function COMMANDS.SISMEMBER(key, name) return field(key, SET, name) and 1 or 0 end
function COMMANDS.SCARD(key) return size(key, SET) end

function COMMANDS.RPUSH(key, ...)
  local value = change(key, LIST)
  local items, before = value.items, #value.items
  for i = 1, select('#', ...) do items[before + i] = select(i, ...) end
  kept(function()
    for i = #items, before + 1, -1 do items[i] = nil end
  end)
  return #items
end

function COMMANDS.LLEN(key)
  local value = read(key, LIST)
  return value and #value.items or 0
end

function COMMANDS.LRANGE(key, first, last)
  local value, found = read(key, LIST), {}
  if not value then return found end
  first, last = span(first, last, #value.items)
  for i = first, last do found[#found + 1] = value.items[i] end
  return found
end

function COMMANDS.LPOP(key)
  local value = read(key, LIST)
  if not value then return false end
  local first = value.items[1]
  COMMANDS.LTRIM(key, '1', '-1')
  return first
end

function COMMANDS.LINDEX(key, place)
  local value = read(key, LIST)
  if not value then return false end
  place = tonumber(place)
  return value.items[place < 0 and #value.items + place + 1 or place + 1] or false
end

function COMMANDS.LSET(key, place, text)
  local value, items = read(key, LIST), {}
  for i, item in ipairs(value.items) do items[i] = item end
  place = tonumber(place)
  items[place < 0 and #items + place + 1 or place + 1] = text
  set_items(key, value, items)
  return 'OK'
end

function COMMANDS.LREM(key, count, text)
  local value, items, gone = read(key, LIST), {}, 0
  if not value then return 0 end
  count = tonumber(count)
  for _, item in ipairs(value.items) do
    if item == text and (count == 0 or gone < count) then
      gone = gone + 1
    else
      items[#items + 1] = item
    end
  end
  if gone > 0 then set_items(key, value, items) end
  return gone
end

function COMMANDS.LTRIM(key, first, last)
  local value = read(key, LIST)
  if value then set_items(key, value, COMMANDS.LRANGE(key, first, last)) end
  return 'OK'
end

function COMMANDS.ZADD(key, ...)
  local value, new = change(key, SORTED), 0
  for i = 1, select('#', ...), 2 do
    local score, name = select(i, ...)
    if put(value, name, tonumber(score)) then new = new + 1 end
  end
  return new
end

function COMMANDS.ZREM(key, ...) return take_out(key, SORTED, ...) end
function COMMANDS.ZCARD(key) return size(key, SORTED) end

function COMMANDS.ZSCORE(key, name)
  local score = field(key, SORTED, name)
  return score and text_of(score)
end

function COMMANDS.ZRANGE(key, first, last, ...)
  local value = read(key, SORTED)
  first, last = span(first, last, value and value.n or 0)
  return with_scores(value, first, last, has_word('WITHSCORES', ...))
end

function COMMANDS.ZRANGEBYSCORE(key, low, high, ...)
  local value = read(key, SORTED)
  local first, last = between(value, low, high)
  local limit = has_word('LIMIT', ...)
  if limit then
    first = first + tonumber((select(limit + 1, ...)))
    last = math.min(last, first + tonumber((select(limit + 2, ...))) - 1)
  end
  return with_scores(value, first, last, has_word('WITHSCORES', ...))
end

function COMMANDS.ZREMRANGEBYSCORE(key, low, high)
  local value = read(key, SORTED)
  return take_out(key, SORTED, unpack(with_scores(value, between(value, low, high))))
end

function COMMANDS.ZREMRANGEBYRANK(key, first, last)
  local value = read(key, SORTED)
  first, last = span(first, last, value and value.n or 0)
  return take_out(key, SORTED, unpack(with_scores(value, first, last)))
end

function COMMANDS.ZSCAN(key) return {'0', COMMANDS.ZRANGE(key, '0', '-1', 'WITHSCORES')} end

local run_id, seconds, microseconds = '', '0', '0'
function COMMANDS.TIME() return {seconds, microseconds} end
function COMMANDS.INFO() return 'run_id:' .. run_id .. '\r\n' end
function COMMANDS.PING() return 'PONG' end

local function run(name, ...)
  local command = COMMANDS[name] or COMMANDS[string.upper(name)]
  if not command then error('the modelled server has no command ' .. name, 0) end
  return command(...)
end

-- ------------------------------------------------------------------ msgpack

local function length(n, short, most, ...)
  local codes = {...}
  if short and n < most then return char(short + n) end
  if n < 256 and codes[1] then return char(codes[1], n) end
  if n < 65536 then return char(codes[2], floor(n / 256), n % 256) end
  return char(codes[3], floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256,
    n % 256)
end

local function big(code, n, bytes)
  local digits = {}
  if n < 0 then n = n + 256 ^ bytes end
  for i = bytes, 1, -1 do
    digits[i] = char(n % 256)
    n = floor(n / 256)
  end
  return char(code) .. concat(digits)
end

local function number_bytes(n)
  if n ~= floor(n) then error('only whole numbers are packed', 0) end
  if n >= 0 and n < 128 then return char(n) end
  if n < 0 and n >= -32 then return char(256 + n) end
  if n >= -2147483648 and n < 2147483648 then return big(0xd2, n, 4) end
  return big(0xd3, n, 8)
end

-- `strings` are the codes of texts in a script's own msgpack, and those of bytes in an answer.
local TEXTS, BYTES = {0xa0, 32, 0xd9, 0xda, 0xdb}, {nil, 0, 0xc4, 0xc5, 0xc6}

local function pack_into(out, value, strings)
  local kind = type(value)
  if kind == 'string' then
    out[#out + 1] = length(#value, strings[1], strings[2], strings[3], strings[4], strings[5])
    out[#out + 1] = value
  elseif kind == 'number' then
    out[#out + 1] = number_bytes(strings == BYTES and (value < 0 and math.ceil(value) or floor(value))
      or value)
  elseif kind == 'table' then
    local count = 0
    for _ in pairs(value) do count = count + 1 end
    if count == #value then
      out[#out + 1] = length(count, 0x90, 16, nil, 0xdc, 0xdd)
      for i = 1, count do pack_into(out, value[i], strings) end
    else
      out[#out + 1] = length(count, 0x80, 16, nil, 0xde, 0xdf)
      for name, each in pairs(value) do
        pack_into(out, name, TEXTS)
        pack_into(out, each, strings)
      end
    end
  elseif kind == 'boolean' and strings == TEXTS then
    out[#out + 1] = value and '\195' or '\194'
  else
    out[#out + 1] = value and '\1' or '\192' -- as an answer to a client
  end
end

local function pack(value, strings)
  local out = {}
  pack_into(out, value, strings or TEXTS)
  return concat(out)
end

local function whole(data, at, bytes)
  local n = 0
  for i = at, at + bytes - 1 do n = n * 256 + byte(data, i) end
  return n
end

local unpack_at

local function list_at(data, at, count)
  local found = {}
  for i = 1, count do found[i], at = unpack_at(data, at) end
  return found, at
end

local function map_at(data, at, count)
  local found, name, value = {}, nil, nil
  for _ = 1, count do
    name, at = unpack_at(data, at)
    value, at = unpack_at(data, at)
    found[name] = value
  end
  return found, at
end

local function double_at(data, at)
  local high, low = whole(data, at, 4), whole(data, at + 4, 4)
  local sign = high >= 2147483648 and -1 or 1
  local exponent = floor(high / 1048576) % 2048
  local part = (high % 1048576) * 4294967296 + low
  if exponent == 0 then return sign * math.ldexp(part, -1074) end
  return sign * math.ldexp(part + 4503599627370496, exponent - 1075)
end

local SIZES = {[0xd9] = 1, [0xda] = 2, [0xdb] = 4, [0xc4] = 1, [0xc5] = 2, [0xc6] = 4}
local WHOLE = {[0xcc] = 1, [0xcd] = 2, [0xce] = 4, [0xcf] = 8}
local SIGNED = {[0xd0] = 1, [0xd1] = 2, [0xd2] = 4, [0xd3] = 8}

function unpack_at(data, at)
  local code = byte(data, at)
  at = at + 1
  if code < 0x80 then return code, at end
  if code < 0x90 then return map_at(data, at, code - 0x80) end
  if code < 0xa0 then return list_at(data, at, code - 0x90) end
  if code < 0xc0 then return sub(data, at, at + code - 0xa1), at + code - 0xa0 end
  if code >= 0xe0 then return code - 256, at end
  if SIZES[code] then
    local count = whole(data, at, SIZES[code])
    at = at + SIZES[code]
    return sub(data, at, at + count - 1), at + count
  end
  if WHOLE[code] then return whole(data, at, WHOLE[code]), at + WHOLE[code] end
  if SIGNED[code] then
    local n, bytes = whole(data, at, SIGNED[code]), SIGNED[code]
    if n >= 256 ^ bytes / 2 then n = n - 256 ^ bytes end
    return n, at + bytes
  end
  if code == 0xc0 then return nil, at end
  if code == 0xc2 or code == 0xc3 then return code == 0xc3, at end
  if code == 0xcb then return double_at(data, at), at + 8 end
  if code == 0xdc then return list_at(data, at + 2, whole(data, at, 2)) end
  if code == 0xdd then return list_at(data, at + 4, whole(data, at, 4)) end
  if code == 0xde then return map_at(data, at + 2, whole(data, at, 2)) end
  if code == 0xdf then return map_at(data, at + 4, whole(data, at, 4)) end
  error('unknown msgpack code ' .. code, 0)
end

-- ------------------------------------------------------------------ what scripts and links call

redis = {
  call = function(name, ...)
    local words = {...}
    for i = 1, #words do words[i] = text_of(words[i]) end
    return run(name, unpack(words))
  end,
  error_reply = function(text) return {err = text} end,
}
cmsgpack = {pack = pack, unpack = function(data) return (unpack_at(data, 1)) end}

local scripts = {}
return {
  run = function(name, ...) return pack(run(name, ...), BYTES) end,
  load = function(digest, text)
    scripts[digest] = assert(loadstring('return function(KEYS, ARGV) ' .. text .. '\nend'))()
  end,
  forget_scripts = function() scripts = {} end,
  call = function(digest, count, ...)
    local script = scripts[digest]
    if not script then return nil end
    local keys, arguments = {}, {}
    for i = 1, select('#', ...) do
      if i <= count then keys[i] = select(i, ...) else arguments[i - count] = select(i, ...) end
    end
    return pack(script(keys, arguments), BYTES)
  end,
  tell = function(run_name, whole_s, rest_us)
    run_id, seconds, microseconds = run_name, whole_s, rest_us
  end,
  -- Prolong leases, and renew cards, as the renewals of members do (`calm`).
  prolong = function(packed)
    local A = unpack_at(packed, 1)
    local ends, now = text_of(A.now + A.ttl), text_of(A.now)
    for _, key in ipairs(A.shards) do put(change(key, HASH), 'until', ends) end
    local cards = change(A.cards, HASH)
    for _, name in ipairs(A.members) do
      local card = cards.of[name]
      if card then put(cards, name, now .. sub(card, string.find(card, ' ', 1, true), -1)) end
    end
  end,
  keep = function() journal = {} end,
  rewind = function()
    for i = #journal, 1, -1 do journal[i]() end
    journal = {}
  end,
  clear = function() values, journal = {}, {} end,
}
