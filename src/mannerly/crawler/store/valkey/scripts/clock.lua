-- The time of the server in milliseconds: the only clock that leases are measured by.
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- The run of the server: another one after a restart and after a failover.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
end
