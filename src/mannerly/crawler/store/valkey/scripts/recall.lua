-- Invariant: a URL whose record is lost is left to the owner of the shard once, however many commands
-- look for it: none was left or brought back since this one has looked (`recalls`). What was left is
-- counted in the same write, so that it can be given back to --max-urls (`refund.lua`).
-- Returns 1, or 0: look again.
local S = KEYS[1]
local P = string.sub(S, 1, -2)
local A = cmsgpack.unpack(ARGV[1])
local known = redis.call('HMGET', S, 'id', 'recalls')
if known[1] ~= A.id then
  return redis.error_reply('GONE the crawl is not here any more')
end
if (tonumber(known[2]) or 0) ~= A.recalls then return 0 end
redis.call('HINCRBY', S, 'recalls', 1)
redis.call('HINCRBY', S, 'recalled', A.pages)
for _, block in ipairs(A.blocks) do redis.call('RPUSH', P .. 'm', block) end
for _, seq in ipairs(A.seqs) do redis.call('SETBIT', P .. 'mb', seq, 1) end
return 1
