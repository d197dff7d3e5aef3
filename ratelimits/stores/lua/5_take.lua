-- One operation over all limits of a call: all of them, or none.
--
-- KEYS: the version keys, then the callers' keys, then the keys of sliding logs.
-- ARGV: operation (0 take, 1 peek, 2 charge, 3 refund), the time in microseconds ('' = this
--       server's), how many version keys, the limits, the costs, then the caller's versions.
-- A limit: algorithm, 1 if it refuses, index in KEYS of its caller's key and of its log's (0 if it
--       is none), ident; quota, burst, window in microseconds (0 = calendar month), and the
--       reduced rate a/b in units per microsecond.
-- Answer: {1, versions...} if the caller's limits are stale, else {0, time, allowed} and for
--       each limit four numbers of its state and whether the cost fitted.

local LIMIT = '>BBBBc5ddddd'
local LIMIT_SIZE = 49
local ENTRY = '>c5BI5I6I6I7'
local ENTRY_SIZE = 30
local FORMAT = string.char(1)
-- Made when a limit needs them, since a script makes its functions anew at each call.
local MAKERS = {token_bucket, fixed_window, sliding_log, sliding_counter}
local made = {}

local function read_limits(packed, costs)
  local limits = {}
  for i = 1, #packed / LIMIT_SIZE do
    local code, firm, key, log, ident, quota, burst, window, a, b =
      struct.unpack(LIMIT, packed, (i - 1) * LIMIT_SIZE + 1)
    local l = {code = code, firm = firm == 1, key = KEYS[key], ident = ident, quota = quota,
               burst = burst, window = window, a = a, b = b}
    l.log = log > 0 and KEYS[log]
    l.cost = struct.unpack('>d', costs, (i - 1) * 8 + 1)
    if not made[code] then made[code] = MAKERS[code]() end
    l.does = made[code]
    l.room = l.does.room
    limits[i] = l
  end
  return limits
end

-- The entries of a caller's key by their ident, and the idents in order.
local function read_entries(key)
  local entries = {order = {}}
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' or string.sub(value, 1, 1) ~= FORMAT then return entries end
  for at = 2, #value - ENTRY_SIZE + 1, ENTRY_SIZE do
    local ident, code, used, part, unit, time = struct.unpack(ENTRY, value, at)
    entries[ident] = {code = code, used = used, part = part, unit = unit, time = time}
    entries.order[#entries.order + 1] = ident
  end
  return entries
end

local function write_entries(key, entries, now, pad)
  local texts, needed, others = {FORMAT}, 0, false
  for i, ident in ipairs(entries.order) do
    local s = entries[ident]
    texts[i + 1] = struct.pack(ENTRY, ident, s.code, s.used, s.part, s.unit, s.time)
    if s.expires then needed = max(needed, s.expires - now) else others = true end
  end
  local ttl = ceil(needed / 1000) + pad
  if others then ttl = max(ttl, redis.call('PTTL', key)) end
  redis.call('SET', key, table.concat(texts), 'PX', string.format('%.0f', ttl))
end

local operation = tonumber(ARGV[1])
local versions = tonumber(ARGV[3])
if versions > 0 then
  local answer, stale = {1}, false
  for i = 1, versions do
    local current = redis.call('GET', KEYS[i])
    answer[i + 1] = current or ARGV[5 + i]
    if current and current ~= ARGV[5 + i] then stale = true end
  end
  if stale then return answer end
end

local now, pad = tonumber(ARGV[2]), 1000
if now then
  -- Time stands still for the caller, not for this server: no key may expire under it.
  pad = 601000
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local limits = read_limits(ARGV[4], ARGV[5])
local keys, refused = {}, false
for i, l in ipairs(limits) do
  keys[l.key] = keys[l.key] or read_entries(l.key)
  local s = keys[l.key][l.ident]
  if s and s.code ~= l.code then s = nil end
  l.state = l.does.settle(l, s, now)
  l.fits = l.cost <= l.room(l, l.state, now)
  if l.firm and not l.fits and operation < 2 then refused = true end
end

if operation ~= 1 then
  for _, l in ipairs(limits) do
    local s = l.state
    local entries = keys[l.key]
    if not entries[l.ident] then entries.order[#entries.order + 1] = l.ident end
    if l.log then
      l.does.write(l, s, now, not refused and operation, l.cost, pad)
    elseif not refused then
      if operation == 3 then l.does.refund(l, s, l.cost) else l.does.add(l, s, l.cost, now) end
    end
    entries[l.ident], s.code, s.expires = s, l.code, l.does.expires(l, s)
  end
  for key, entries in pairs(keys) do write_entries(key, entries, now, pad) end
end

local answer = {0, now, refused and 0 or 1}
for _, l in ipairs(limits) do
  local s = l.state
  if l.log then
    s.part = l.does.release(l, s, l.cost)
    s.unit = l.does.release(l, s, min(l.quota, l.room(l, s) + 1))
  end
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = s.used, s.part, s.unit
  answer[n + 4], answer[n + 5] = s.time, l.fits and 1 or 0
end
return answer
