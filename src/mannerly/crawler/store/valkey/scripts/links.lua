-- Invariant: what a page links to is queued in the shards that it belongs to by the write that takes
-- the page out of its queue. So nothing is on its way between shards, and none of it can be lost.
--
-- Their owners are not asked. `arrivals` counts the URLs that a shard got from others, so that its
-- owner learns that there are some. A shard that nobody owns has nobody to tell.
local MOST_ARRIVALS = 4096 -- of which an owner was not told; others wait in the waiting room, and
-- the answer says that this owner lags behind, so that those who add to its queue slow down

-- Read what `add_links` needs, before anything is changed. `links` has for each shard its number, the
-- names of hosts, the candidates (`FoundUrl`) and what they carry. Returns the shards, or nil and an
-- error.
local function receivers_of(links)
  local receivers = {}
  for i = 1, #links, 4 do
    local prefix = BASE .. links[i] .. ':'
    local known = redis.call('HMGET', prefix .. 's', 'id', 'token', 'queued', 'waiting', 'seq',
      'known', 'buckets')
    if known[1] ~= A.id then
      return nil, redis.error_reply('GONE the crawl is not here any more')
    end
    local counts = {}
    for at, name in ipairs({'queued', 'waiting', 'seq', 'known', 'buckets'}) do
      counts[name] = tonumber(known[at + 2]) or 0
    end
    if lacks_numbers(counts, links[i + 2]) then return nil, redis.error_reply(NO_NUMBERS) end
    receivers[#receivers + 1] = {shard = links[i], prefix = prefix, counts = counts,
      hosts = links[i + 1], found = links[i + 2], carried = links[i + 3], has_owner = known[2] and known[2] ~= ''}
  end
  return receivers
end

-- Returns how many requests with a payload were known, and how many owners lag behind.
local function add_links(receivers, limit)
  local known, lagging = 0, 0
  local own_prefix, own_counts, own_touched = P, C, touched
  for _, to in ipairs(receivers) do
    P, C, touched = to.prefix, to.counts, {}
    know_hosts(to.hosts)
    local told, room = nil, limit
    if to.has_owner then
      told = {}
      room = C.queued - C.waiting + MOST_ARRIVALS - redis.call('LLEN', P .. 'i')
    end
    local new, queued, repeated = arrive(to.found, to.hosts, math.min(limit, room), to.carried, told)
    known = known + repeated
    if room < limit and queued < #new then lagging = lagging + 1 end
    flush_hosts()
    if #new > 0 then
      push(P .. 'i', told or {})
      redis.call('HSET', P .. 's', 'queued', C.queued, 'waiting', C.waiting, 'seq', C.seq,
        'known', C.known, 'buckets', C.buckets, 'rests', '0')
      redis.call('HINCRBY', ARRIVALS, to.shard, #new)
    end
  end
  P, C, touched = own_prefix, own_counts, own_touched
  return known, lagging
end
