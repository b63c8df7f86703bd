-- Invariant: a host's queue is its lists, one for each priority, each in the order of arrival, and a
-- sorted set of URLs that came back with their old number. `n` has how many there are in all, and the
-- priorities whose list is not empty: `COUNT PRIORITY PRIORITY …`. A list takes 3 bytes more than
-- its entries, a sorted set 60.
--
-- An entry of a list begins with its number: four characters of seven bits, the highest first.
local function number_text(seq)
  return string.char(math.floor(seq / 2097152) % 128, math.floor(seq / 16384) % 128,
    math.floor(seq / 128) % 128, seq % 128)
end

local function list_key(name, priority)
  return P .. 'l:' .. string.format('%.0f', priority) .. ':' .. name
end

-- Changes of `n` are made at the end: `flush_hosts`. A host that is asked for is known from then on.
local touched = {}
local function know_host(name, value)
  local host = {count = 0, priorities = {}, value = value}
  if value then
    local is_first = true
    for number in string.gmatch(value, '%d+') do
      if is_first then
        host.count, is_first = tonumber(number), false
      else
        host.priorities[tonumber(number)] = true
      end
    end
  end
  touched[name] = host
end

local function host_of(name)
  if not touched[name] then know_host(name, redis.call('HGET', P .. 'n', name)) end
  return touched[name]
end

local function know_hosts(names)
  get_fields(P .. 'n', names, know_host)
end

local function flush_hosts()
  local changed = {}
  for name, host in pairs(touched) do
    local priorities = {}
    for priority in pairs(host.priorities) do priorities[#priorities + 1] = priority end
    table.sort(priorities)
    for i, priority in ipairs(priorities) do priorities[i] = string.format('%.0f', priority) end
    table.insert(priorities, 1, string.format('%.0f', host.count))
    local value = table.concat(priorities, ' ')
    if value ~= host.value then
      changed[#changed + 1] = name
      changed[#changed + 1] = value
    end
  end
  set_fields(P .. 'n', changed)
end

local function append(name, priority, entries)
  local host = host_of(name)
  local key = list_key(name, priority)
  push(key, entries)
  host.count = host.count + #entries
  host.priorities[priority] = true
end

-- Remove an entry; return whether it was there. Most are near the beginning of their list. One that
-- is written in another way than it was is looked for by its number.
local function remove(name, priority, seq, entry)
  local host = host_of(name)
  local key = list_key(name, priority)
  local found = 0
  if host.priorities[priority] then
    found = redis.call('LREM', key, 1, entry)
    if found == 0 then
      local number = string.sub(entry, 1, 4)
      for start = 0, redis.call('LLEN', key) - 1, 1000 do
        for _, other in ipairs(redis.call('LRANGE', key, start, start + 999)) do
          if string.sub(other, 1, 4) == number then
            found = redis.call('LREM', key, 1, other)
          end
        end
        if found > 0 then break end
      end
    end
    if found > 0 and redis.call('EXISTS', key) == 0 then host.priorities[priority] = nil end
  end
  if found == 0 then
    local place = priority * 134217728 + seq
    found = redis.call('ZREMRANGEBYSCORE', P .. 'q:' .. name, place, place)
  end
  host.count = host.count - found
  return found > 0
end

-- Remove many entries (`LeavingUrl`). Returns a table of those that were there, by the place of their
-- first value. Those at the beginning of their list go with one command.
local function remove_all(values, hosts)
  local is_gone, lists, by_name = {}, {}, {}
  for i = 1, #values, LEAVING_SIZE do
    local name = values[i + LEAVING_HOST] .. ' ' .. values[i + LEAVING_PRIORITY]
    local list = by_name[name]
    if not list then
      list = {}
      by_name[name] = list
      lists[#lists + 1] = list
    end
    list[#list + 1] = i
  end
  for _, list in ipairs(lists) do
    local first = list[1]
    local name, priority = hosts[values[first + LEAVING_HOST]], values[first + LEAVING_PRIORITY]
    local host = host_of(name)
    if #list > 1 and host.priorities[priority] then
      local key, place, count = list_key(name, priority), {}, 0
      for _, i in ipairs(list) do -- of one that is offered twice, the first counts
        place[values[i + LEAVING_ENTRY]] = place[values[i + LEAVING_ENTRY]] or i
      end
      for _, entry in ipairs(redis.call('LRANGE', key, 0, #list - 1)) do
        if not place[entry] then break end
        is_gone[place[entry]] = true
        count = count + 1
      end
      if count > 0 then
        redis.call('LTRIM', key, count, -1)
        host.count = host.count - count
        if redis.call('EXISTS', key) == 0 then host.priorities[priority] = nil end
      end
    end
    for _, i in ipairs(list) do
      if not is_gone[i] and remove(name, priority, values[i + LEAVING_SEQ], values[i + LEAVING_ENTRY]) then
        is_gone[i] = true
      end
    end
  end
  return is_gone
end
