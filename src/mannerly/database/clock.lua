-- The time of the server in milliseconds, for people and readers: nothing that is sent depends on it.
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- The run of the server: another one after a restart and after a failover.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
end

-- Note the run of the server in a hash. Claims are held back after a change of it, until a caller has
-- known the run for one lease: `runs` are those that it has known for so long. Returns the run, and
-- whether claims are held back.
local function note_run(key, run_before, hold, runs)
  local run, before = run_id(), hold == '1'
  local is_held_back = before or run_before ~= run
  for _, known in ipairs(runs) do
    if known == run then is_held_back = false end
  end
  if run_before ~= run or is_held_back ~= before then
    redis.call('HSET', key, 'run', run, 'hold', is_held_back and '1' or '0')
  end
  return run, is_held_back
end
