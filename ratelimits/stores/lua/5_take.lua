-- Made when a limit needs them, since a script makes its functions anew at each call.
local MAKERS = {token_bucket, fixed_window, sliding_log, sliding_counter}
local made = {}

local function read_limits(packed, costs)
  local limits = {}
  for i = 1, #packed / LIMIT_SIZE do
    local code, firm, key, log, ident, quota, burst, window, a, b =
      struct.unpack(LIMIT, packed, (i - 1) * LIMIT_SIZE + 1)
    local l = {code = code, firm = firm == 1, key = key, ident = ident, quota = quota,
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

-- The entries of a caller's key, by its index, by their ident, and the idents in order.
local function read_entries(key)
  local entries = {order = {}}
  local value = values[key]
  if not value then return entries end
  for at = 1, #value - ENTRY_SIZE + 1, ENTRY_SIZE do
    local mark, ident, used, part, unit, time = struct.unpack(ENTRY, value, at)
    local code, high = divmod(mark - VERSION, ALGORITHM)
    -- Of another version, which nobody here can read.
    if code < 0 then return {order = {}} end
    time = time + high * HIGH
    entries[ident] = {code = code + 1, used = used, part = part, unit = unit, time = time}
    entries.order[#entries.order + 1] = ident
  end
  return entries
end

local function write_entries(key, entries, now, pad)
  local texts, needed, others = {}, 0, false
  for i, ident in ipairs(entries.order) do
    local s = entries[ident]
    local high, low = divmod(s.time, HIGH)
    local mark = VERSION + (s.code - 1) * ALGORITHM + high
    texts[i] = struct.pack(ENTRY, mark, ident, s.used, s.part, s.unit, low)
    if s.expires then needed = max(needed, s.expires - now) else others = true end
  end
  local ttl = ceil(needed / 1000) + pad
  if others then ttl = max(ttl, redis.call('PTTL', KEYS[key])) end
  redis.call('SET', KEYS[key], table.concat(texts), 'PX', string.format('%.0f', ttl))
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
