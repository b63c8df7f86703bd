-- Invariant: a shard has one owner. Another one is let in when the claimer knows that the lease is
-- over: it names the token and the last beat of the owner whose age it has counted (`over`). After a
-- restart of the server it must have known this run of the server for one lease (`runs`), because a
-- lease that was granted in the last second before it may be forgotten, while its owner still sends.
-- No clock of the server is asked but for `beat_at`, which is for readers.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local held = redis.call('HMGET', S, 'id', 'token', 'member', 'beat', 'run', 'hold', 'claim', 'clock',
  'seq')
if held[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
local run, is_held_back = note_run(S, held[5], held[6], A.runs)
local token, beat = held[2] or '', held[4] or ''
if token ~= '' and A.over ~= token .. ' ' .. beat then
  return {'held', held[3] or '', token, beat, run}
end
if is_held_back then return {'restarted', '', token, beat, run} end
local now = now_ms()
local claim = (tonumber(held[7]) or 0) + 1
redis.call('HSET', S, 'token', A.token, 'member', A.member, 'beat', A.beat, 'beat_at', now,
  'claim', claim, 'batch', 0, 'answer', '', 'told', 0)
redis.call('UNLINK', P .. 'i') -- the new owner reads the queue itself, up to this number
for _, parsing in ipairs({redis.call('HGET', S, 'parsing') or '0', A.parsing}) do
  if tonumber(parsing) ~= 0 then -- an owner died while this page was parsed
    redis.call('HINCRBY', P .. 'x', parsing, 1)
  end
end
redis.call('HSET', S, 'parsing', '0')
return {'yours', claim, now, token ~= '' and 1 or 0, beat, tonumber(held[8]) or 0,
  tonumber(held[9]) or 0}
