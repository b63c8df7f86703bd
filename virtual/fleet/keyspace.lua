-- The commands of a server that the store uses, on Lua tables, beside the scripts that call them.
--
-- Values: a string; a hash {kind, key, n, of, names, changes}; a set likewise; a list {kind, key, items};
-- a sorted set {kind, key, n, of, order, changes}. Order and names are made when they are needed,
-- `changes` counts how often fields were changed. A key that becomes empty is gone.
-- Every change is noted in a journal, so that the last moments can be taken back (`rewind`,
-- `fail_over`). What a real server returns in no order (HGETALL, SMEMBERS) is sorted here: a seed repeats a run.
--
-- A command gets its words as one table, the key first.
collectgarbage('setpause', 400) -- nearly everything is kept: look through it less often
local values = {}
local HASH, SET, LIST, SORTED = 'hash', 'set', 'list', 'sorted'
local floor, sort, concat, format = math.floor, table.sort, table.concat, string.format
local char, byte, sub = string.char, string.byte, string.sub
local unpack, type, next, tonumber = unpack, type, next, tonumber

-- The journal: four places for each change, which say how to take it back. It is a flat list, not one
-- of functions, because making a function keeps LuaJIT from compiling what makes it.
-- There is one for each of the last SPANS times between two saves; a MARK ends each exchange.
local KEY, FIELD, GROWN, ITEMS, REMOVED, MARK, NOTHING = 1, 2, 3, 4, 5, 6, {}
local SPANS, span_now = 12, 1
local journals, lengths = {}, {}
for at = 1, SPANS do journals[at], lengths[at] = {}, 0 end
local journal, noted = journals[1], 0

local function note(what, where, name, before)
  if before == nil then before = NOTHING end
  journal[noted + 1], journal[noted + 2] = what, where
  journal[noted + 3], journal[noted + 4] = name, before
  noted = noted + 4
end

local function take_back(what, where, name, before)
  if before == NOTHING then before = nil end
  if what == KEY then
    values[where] = before
  elseif what == FIELD then
    local of = where.of
    where.n = where.n + (before == nil and 0 or 1) - (of[name] == nil and 0 or 1)
    of[name], where.order, where.names = before, nil, nil
    where.changes = where.changes + 1
  elseif what == GROWN then
    for i = #where.items, name + 1, -1 do where.items[i] = nil end
  elseif what == REMOVED then
    table.insert(where.items, name, before)
  elseif what == ITEMS then
    where.items = before
  end
end

local function forget_journals()
  for at = 1, SPANS do lengths[at] = 0 end
  noted = 0
end

local WHOLE_TEXTS = {} -- of small numbers: counters, and numbers of entries and letters
for n = 0, 9999 do WHOLE_TEXTS[n] = format('%.0f', n) end

local function text_of(value)
  if type(value) ~= 'number' then return value end
  return WHOLE_TEXTS[value] or value == floor(value) and format('%.0f', value) or format('%.17g', value)
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
  value = kind == LIST and {kind = LIST, key = key, items = {}}
    or {kind = kind, key = key, n = 0, of = {}, changes = 0}
  values[key] = value
  note(KEY, key, true, nil)
  return value
end

local function replace(key, value)
  note(KEY, key, true, values[key])
  values[key] = value
end

local function put(value, name, new)
  local of, before = value.of, value.of[name]
  if before == new then return false end
  note(FIELD, value, name, before)
  of[name] = new
  if before == nil then value.n, value.names = value.n + 1, nil end
  if new == nil then value.n, value.names = value.n - 1, nil end
  value.order, value.changes = nil, value.changes + 1
  return before == nil
end

-- Remove the names in `words`, from a place on.
local function take_out(key, kind, words, first)
  local value = read(key, kind)
  if not value then return 0 end
  local gone = 0
  for i = first, #words do
    if value.of[words[i]] ~= nil then
      put(value, words[i], nil)
      gone = gone + 1
    end
  end
  if value.n == 0 then replace(key, nil) end
  return gone
end

-- Return the names in a hash or set, in order. The list is kept: it is not to be changed.
local function names(value)
  if not value then return NOTHING end
  local all = value.names
  if not all then
    all = {}
    for name in pairs(value.of) do all[#all + 1] = name end
    sort(all)
    value.names = all
  end
  return all
end

local function copied(list)
  local copy = {}
  for i = 1, #list do copy[i] = list[i] end
  return copy
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

local function place_of(word, words, first)
  for i = first, #words do
    if string.upper(words[i]) == word then return i end
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
  note(ITEMS, value, true, value.items)
  value.items = items
end

local COMMANDS = {}

function COMMANDS.EXISTS(w)
  local found = 0
  for i = 1, #w do
    if values[w[i]] then found = found + 1 end
  end
  return found
end

function COMMANDS.DEL(w)
  local found = 0
  for i = 1, #w do
    if values[w[i]] then
      replace(w[i], nil)
      found = found + 1
    end
  end
  return found
end
COMMANDS.UNLINK = COMMANDS.DEL

function COMMANDS.GET(w)
  local value = read(w[1], 'string')
  return value and value.text or false
end

function COMMANDS.SET(w)
  replace(w[1], {kind = 'string', text = w[2]})
  return 'OK'
end

function COMMANDS.HGET(w) return field(w[1], HASH, w[2]) end

function COMMANDS.HMGET(w)
  local value, found = read(w[1], HASH), {}
  local of = value and value.of or NOTHING
  for i = 2, #w do found[i - 1] = of[w[i]] or false end
  return found
end

function COMMANDS.HGETALL(w)
  local value, found = read(w[1], HASH), {}
  for _, name in ipairs(names(value)) do
    found[#found + 1] = name
    found[#found + 1] = value.of[name]
  end
  return found
end

function COMMANDS.HKEYS(w) return copied(names(read(w[1], HASH))) end
function COMMANDS.HLEN(w) return size(w[1], HASH) end
function COMMANDS.HEXISTS(w) return field(w[1], HASH, w[2]) and 1 or 0 end

function COMMANDS.HSET(w)
  local value, new = change(w[1], HASH), 0
  for i = 2, #w, 2 do
    if put(value, w[i], w[i + 1]) then new = new + 1 end
  end
  return new
end

function COMMANDS.HSETNX(w)
  if field(w[1], HASH, w[2]) then return 0 end
  put(change(w[1], HASH), w[2], w[3])
  return 1
end

function COMMANDS.HINCRBY(w)
  local sum = tonumber(field(w[1], HASH, w[2]) or 0) + tonumber(w[3])
  put(change(w[1], HASH), w[2], text_of(sum))
  return sum
end

function COMMANDS.HDEL(w) return take_out(w[1], HASH, w, 2) end
function COMMANDS.HSCAN(w) return {'0', COMMANDS.HGETALL(w)} end

function COMMANDS.SADD(w)
  local value, new = change(w[1], SET), 0
  for i = 2, #w do
    if put(value, w[i], true) then new = new + 1 end
  end
  return new
end

function COMMANDS.SREM(w) return take_out(w[1], SET, w, 2) end
function COMMANDS.SMEMBERS(w) return copied(names(read(w[1], SET))) end
function COMMANDS.SISMEMBER(w) return field(w[1], SET, w[2]) and 1 or 0 end
function COMMANDS.SCARD(w) return size(w[1], SET) end

function COMMANDS.RPUSH(w)
  local value = change(w[1], LIST)
  local items, before = value.items, #value.items
  note(GROWN, value, before, nil)
  for i = 2, #w do items[before + i - 1] = w[i] end
  return #items
end

function COMMANDS.LLEN(w)
  local value = read(w[1], LIST)
  return value and #value.items or 0
end

function COMMANDS.LRANGE(w)
  local value, found = read(w[1], LIST), {}
  if not value then return found end
  local first, last = span(w[2], w[3], #value.items)
  for i = first, last do found[#found + 1] = value.items[i] end
  return found
end

function COMMANDS.LPOP(w)
  local value = read(w[1], LIST)
  if not value then return false end
  local first = value.items[1]
  COMMANDS.LTRIM({w[1], '1', '-1'})
  return first
end

function COMMANDS.LINDEX(w)
  local value = read(w[1], LIST)
  if not value then return false end
  local place = tonumber(w[2])
  return value.items[place < 0 and #value.items + place + 1 or place + 1] or false
end

function COMMANDS.LSET(w)
  local value, items = read(w[1], LIST), {}
  for i, item in ipairs(value.items) do items[i] = item end
  local place = tonumber(w[2])
  items[place < 0 and #items + place + 1 or place + 1] = w[3]
  set_items(w[1], value, items)
  return 'OK'
end

function COMMANDS.LREM(w)
  local value, gone = read(w[1], LIST), 0
  if not value then return 0 end
  local items, count, text = value.items, tonumber(w[2]), w[3]
  local i = 1
  while i <= #items and (count == 0 or gone < count) do
    if items[i] == text then
      note(REMOVED, value, i, text)
      table.remove(items, i)
      gone = gone + 1
    else
      i = i + 1
    end
  end
  if #items == 0 then replace(w[1], nil) end
  return gone
end

function COMMANDS.LTRIM(w)
  local value = read(w[1], LIST)
  if value then set_items(w[1], value, COMMANDS.LRANGE(w)) end
  return 'OK'
end

function COMMANDS.ZADD(w)
  local value, new = change(w[1], SORTED), 0
  for i = 2, #w, 2 do
    if put(value, w[i + 1], tonumber(w[i])) then new = new + 1 end
  end
  return new
end

function COMMANDS.ZREM(w) return take_out(w[1], SORTED, w, 2) end
function COMMANDS.ZCARD(w) return size(w[1], SORTED) end

function COMMANDS.ZSCORE(w)
  local score = field(w[1], SORTED, w[2])
  return score and text_of(score)
end

function COMMANDS.ZRANGE(w)
  local value = read(w[1], SORTED)
  local first, last = span(w[2], w[3], value and value.n or 0)
  return with_scores(value, first, last, place_of('WITHSCORES', w, 4))
end

function COMMANDS.ZRANGEBYSCORE(w)
  local value = read(w[1], SORTED)
  local first, last = between(value, w[2], w[3])
  local limit = place_of('LIMIT', w, 4)
  if limit then
    first = first + tonumber(w[limit + 1])
    last = math.min(last, first + tonumber(w[limit + 2]) - 1)
  end
  return with_scores(value, first, last, place_of('WITHSCORES', w, 4))
end

function COMMANDS.ZREMRANGEBYSCORE(w)
  local value = read(w[1], SORTED)
  return take_out(w[1], SORTED, with_scores(value, between(value, w[2], w[3])), 1)
end

function COMMANDS.ZREMRANGEBYRANK(w)
  local value = read(w[1], SORTED)
  local first, last = span(w[2], w[3], value and value.n or 0)
  return take_out(w[1], SORTED, with_scores(value, first, last), 1)
end

function COMMANDS.ZSCAN(w) return {'0', COMMANDS.ZRANGE({w[1], '0', '-1', 'WITHSCORES'})} end

local run_id, now_s = '', 0
function COMMANDS.TIME()
  local whole_s = floor(now_s)
  return {format('%.0f', whole_s), format('%.0f', floor((now_s - whole_s) * 1e6))}
end
function COMMANDS.INFO() return 'run_id:' .. run_id .. '\r\n' end
function COMMANDS.PING() return 'PONG' end

-- What a read-only replica refuses.
local IS_WRITE, is_replica = {}, false
for name in string.gmatch('DEL UNLINK SET HSET HSETNX HINCRBY HDEL SADD SREM RPUSH LPOP LSET LREM LTRIM '
    .. 'ZADD ZREM ZREMRANGEBYSCORE ZREMRANGEBYRANK', '%u+') do IS_WRITE[name] = true end

local function run(name, words)
  local command = COMMANDS[name] or COMMANDS[string.upper(name)]
  if not command then error('the modelled server has no command ' .. name, 0) end
  if is_replica and IS_WRITE[string.upper(name)] then
    error("READONLY You can't write against a read only replica.", 0)
  end
  return command(words)
end

-- ------------------------------------------------------------------ msgpack

-- The beginnings of short values, which most are.
local SMALL, FIXED_TEXT, TEXT_OF_256, BYTES_OF_256, FIXED_LIST, FIXED_MAP = {}, {}, {}, {}, {}, {}
for n = 0, 255 do
  TEXT_OF_256[n], BYTES_OF_256[n] = char(0xd9, n), char(0xc4, n)
  if n < 128 then SMALL[n] = char(n) end
  if n < 32 then FIXED_TEXT[n] = char(0xa0 + n) end
  if n < 16 then FIXED_LIST[n], FIXED_MAP[n] = char(0x90 + n), char(0x80 + n) end
end

-- Two bytes of a length, or four.
local function long(n, two, four)
  if n < 65536 then return char(two, floor(n / 256), n % 256) end
  return char(four, floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256, n % 256)
end

local function number_bytes(n)
  if SMALL[n] then return SMALL[n] end
  if n ~= floor(n) then error('only whole numbers are packed', 0) end
  if n < 0 and n >= -32 then return char(256 + n) end
  if n >= -2147483648 and n < 2147483648 then
    if n < 0 then n = n + 4294967296 end
    return char(0xd2, floor(n / 16777216), floor(n / 65536) % 256, floor(n / 256) % 256, n % 256)
  end
  local digits = {}
  if n < 0 then n = n + 256 ^ 8 end
  for i = 8, 1, -1 do
    digits[i] = n % 256
    n = floor(n / 256)
  end
  return char(0xd3, unpack(digits))
end

local function text_bytes(n)
  return FIXED_TEXT[n] or TEXT_OF_256[n] or long(n, 0xda, 0xdb)
end

-- Texts are texts in a script's own msgpack, and bytes in an answer.
local function pack_into(out, value, is_answer)
  local kind = type(value)
  if kind == 'string' then
    local n = #value
    out[#out + 1] = is_answer and (BYTES_OF_256[n] or long(n, 0xc5, 0xc6)) or text_bytes(n)
    out[#out + 1] = value
  elseif kind == 'number' then
    if is_answer then value = value < 0 and math.ceil(value) or floor(value) end
    out[#out + 1] = number_bytes(value)
  elseif kind == 'table' then
    local count = #value
    local is_list
    if count > 0 then is_list = next(value, count) == nil else is_list = next(value) == nil end
    if is_list then
      out[#out + 1] = FIXED_LIST[count] or long(count, 0xdc, 0xdd)
      for i = 1, count do pack_into(out, value[i], is_answer) end
    else
      count = 0
      for _ in pairs(value) do count = count + 1 end
      out[#out + 1] = FIXED_MAP[count] or long(count, 0xde, 0xdf)
      for name, each in pairs(value) do
        pack_into(out, name, false)
        pack_into(out, each, is_answer)
      end
    end
  elseif kind == 'boolean' and not is_answer then
    out[#out + 1] = value and '\195' or '\194'
  else
    out[#out + 1] = value and '\1' or '\192' -- as an answer to a client
  end
end

local function pack(value, is_answer)
  local out = {}
  pack_into(out, value, is_answer or false)
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
    for i = 1, #words do
      if type(words[i]) == 'number' then words[i] = text_of(words[i]) end
    end
    return run(name, words)
  end,
  error_reply = function(text) return {err = text} end,
}
cmsgpack = {pack = function(value) return pack(value) end, unpack = function(data) return (unpack_at(data, 1)) end}

local scripts = {}

-- Long exchanges of plain commands, which all members repeat, as they were unpacked; a script that
-- tells the time may come first. Returns whether an exchange is kept, too.
local LONG, MOST = 1000, 100
local seen, seen_count = {}, 0

local function commands_of(packed)
  local known = seen[packed]
  if known then return known, true end
  local commands = unpack_at(packed, 1)
  local is_kept = #packed >= LONG and commands[#commands][1] ~= 'EVALSHA'
  if is_kept then
    if seen_count >= MOST then seen, seen_count = {}, 0 end
    seen[packed], seen_count = commands, seen_count + 1
  end
  return commands, is_kept
end

-- Run a command, the first of whose words is its name.
local function answer(command)
  if command[1] == 'EVALSHA' then
    local script, count = scripts[command[2]], command[3]
    if not script then return {err = 'NOSCRIPT No matching script.'} end
    local keys, arguments = {}, {}
    for i = 1, count do keys[i] = command[i + 3] end
    for i = count + 4, #command do arguments[i - count - 3] = command[i] end
    return script(keys, arguments)
  end
  local words = {}
  for i = 2, #command do words[i - 1] = text_of(command[i]) end
  return run(command[1], words)
end

-- All members ask for all heartbeats, and for the same fields of all shards. The answers are kept as they
-- were packed, until the value changes: with a hash, or with a command that is kept itself.
local function kept_answer(command, is_kept)
  local name, value = command[1], values[command[2]]
  if not value or value.kind ~= HASH then return nil end
  if name == 'HGETALL' then
    if value.packed_at ~= value.changes then
      value.packed, value.packed_at = pack(answer(command), true), value.changes
    end
    return value.packed
  end
  if not is_kept or name ~= 'HMGET' then return nil end
  if command.value ~= value or command.packed_at ~= value.changes then
    command.packed, command.packed_at = pack(answer(command), true), value.changes
    command.value = value
  end
  return command.packed
end

local function packed_answer(command)
  local is_well, found = pcall(answer, command)
  if is_well then return pack(found, true) end
  if type(found) == 'string' and (sub(found, 1, 9) == 'WRONGTYPE' or sub(found, 1, 8) == 'READONLY') then
    return pack({err = found}, true)
  end
  error(found, 0)
end

return {
  -- Run several commands at one instant, at which the server's clock shows something else; return
  -- their answers.
  exchange = function(packed, at_s, shown_s)
    now_s = shown_s
    local commands, is_kept = commands_of(packed)
    local count, before = #commands, noted
    local out = {FIXED_LIST[count] or long(count, 0xdc, 0xdd)}
    for i = 1, count do
      out[i + 1] = kept_answer(commands[i], is_kept) or packed_answer(commands[i])
    end
    if noted > before then note(MARK, at_s, true, true) end
    return concat(out)
  end,
  load = function(digest, text)
    scripts[digest] = assert(loadstring('return function(KEYS, ARGV) ' .. text .. '\nend'))()
  end,
  forget_scripts = function() scripts = {} end,
  tell = function(run_name) run_id = run_name end,
  -- Prolong leases, and renew heartbeats, as the renewals of members did at an instant (`calm`). That is
  -- long enough ago to be on disk, so it is not noted in the journal.
  prolong = function(packed)
    local A = unpack_at(packed, 1)
    local now = text_of(A.now)
    for i = 1, #A.shards, 3 do
      local key, beat, clock = A.shards[i], A.shards[i + 1], A.shards[i + 2]
      local value = read(key, HASH)
      local state = value.of
      if not state.token then error(key .. ' has no owner, and is renewed by a calm one', 0) end
      if tonumber(state.clock) < clock then
        state.beat, state.beat_at, state.clock = beat, now, text_of(clock)
        value.changes = value.changes + 1
      end
    end
    local heartbeats = read(A.heartbeats, HASH)
    for i = 1, #A.members, 2 do
      local name, stamp = A.members[i], A.members[i + 1]
      local _, before, text = string.match(heartbeats and heartbeats.of[name] or '', '^(%d+) (%S+) (.*)$')
      if before and tonumber(string.match(before, '%d+$')) < tonumber(string.match(stamp, '%d+$')) then
        heartbeats.of[name], heartbeats.changes = now .. ' ' .. stamp .. ' ' .. text, heartbeats.changes + 1
      end
    end
  end,
  be_replica = function(is_one) is_replica = is_one end,
  keep = function()
    if noted == 0 then return end
    lengths[span_now] = noted
    span_now = span_now % SPANS + 1
    journal, noted = journals[span_now], 0
  end,
  rewind = function()
    for i = noted - 3, 1, -4 do take_back(journal[i], journal[i + 1], journal[i + 2], journal[i + 3]) end
    noted = 0
  end,
  -- How many keys begin with one of these texts.
  count = function(packed)
    local beginnings, found = unpack_at(packed, 1), 0
    for key in next, values do
      for _, beginning in ipairs(beginnings) do
        if sub(key, 1, #beginning) == beginning then found = found + 1 end
      end
    end
    return found
  end,
  -- Be a replica from now on: it has what was written until an instant.
  fail_over = function(until_s)
    local at_s = math.huge
    lengths[span_now] = noted
    for back = 0, SPANS - 1 do
      local span = (span_now - 1 - back) % SPANS + 1
      local list = journals[span]
      for i = lengths[span] - 3, 1, -4 do
        local what, where = list[i], list[i + 1]
        if what == MARK then
          at_s = where
        elseif at_s > until_s then
          take_back(what, where, list[i + 2], list[i + 3])
        end
      end
    end
    forget_journals()
  end,
  replicate = forget_journals, -- disks and replicas have everything so far
}
