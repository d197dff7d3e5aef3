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

local EXACT = 9007199254740992
local LIMIT = '>BBBBc4ddddd'
local LIMIT_SIZE = 48
-- An entry is a mark, the ident, and used, part, unit and time of the state. The mark is one byte:
-- one bit for the version of all this, two for the algorithm, and the five highest of the time.
-- A value of 28 bytes takes 16 less in the server than one of 29.
local ENTRY = '>Bc4I5I6I6I6'
local ENTRY_SIZE = 28
local VERSION, ALGORITHM, HIGH = 128, 32, 281474976710656
local fmod, floor, ceil, max, min = math.fmod, math.floor, math.ceil, math.max, math.min

local unpack_struct, pack_struct = struct.unpack, struct.pack
local find, sub = string.find, string.sub

-- A key of another type is read as none.
local values = redis.call('MGET', unpack(KEYS))
local operation = tonumber(ARGV[1])
local versions = tonumber(ARGV[3])
for i = 1, versions do
  if values[i] and values[i] ~= ARGV[5 + i] then
    local answer = {1}
    for n = 1, versions do
      answer[n + 1] = values[n] or ARGV[5 + n]
      -- What somebody else wrote, or made to stay, ends too: a day after it was news to anyone.
      if values[n] and redis.call('PTTL', KEYS[n]) == -1 then
        redis.pcall('PEXPIRE', KEYS[n], 86400000)
      end
    end
    return answer
  end
end

local now, pad = tonumber(ARGV[2]), 1000
if now then
  -- Time stands still for the caller, not for this server: no key may expire under it.
  pad = 601000
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Nearly every call is a take from token buckets that are as the last one left them, at their
-- rates. It is served here, since this script makes all its functions anew at each call. The
-- arithmetic is that of token_bucket where nothing needs to be converted; for anything else this
-- answers nothing, and the whole script goes on. `taking` is false for a take that is refused.
local take_plainly
function take_plainly(taking)
  local packed, costs = ARGV[4], ARGV[5]
  local low = fmod(now, HIGH)
  local mark = VERSION + (now - low) / HIGH
  local answer, texts, needed, others = {0, now, taking and 1 or 0}, {}, {}, {}
  local n = 4
  for i = 1, #packed / LIMIT_SIZE do
    local code, firm, key, _, ident, quota, burst, _, a, b =
      unpack_struct(LIMIT, packed, i * LIMIT_SIZE - LIMIT_SIZE + 1)
    if code ~= 1 then return end
    local used, part, value, text = 0, 0, values[key], texts[key] or ''
    if value then
      local place = find(value, ident, #text + 1, true)
      if not place or place % ENTRY_SIZE ~= 2 then return end
      local kind, unit, time
      kind, _, used, part, unit, time = unpack_struct(ENTRY, value, place - 1)
      time = time + (kind - VERSION) * HIGH
      local drained = (now - time) * a
      if kind < VERSION or kind >= VERSION + ALGORITHM or now < time or drained >= EXACT or (part > 0 and unit ~= b) then return end
      if drained > 0 then
        local rest = fmod(drained, b)
        used, part = used - (drained - rest) / b, part - rest
        if part < 0 then used, part = used - 1, part + b end
        if used < 0 then used, part = 0, 0 end
      end
      if place > #text + 2 then
        text, others[key] = text .. sub(value, #text + 1, place - 2), true
      end
    end
    local room = burst - used - (part > 0 and 1 or 0)
    if room < 0 then used, part, room = burst, 0, 0 end
    local cost = unpack_struct('>d', costs, i * 8 - 7)
    local fits = cost <= room
    if not fits and firm == 1 and taking then return take_plainly(false) end
    if taking and not fits then
      used, part = burst, 0
    elseif taking then
      used = used + cost
    end
    texts[key] = text .. pack_struct(ENTRY, mark, ident, used, part, b, low)
    local time = quota > 0 and (used + part / b) * b / a or 0
    if time > (needed[key] or -1) then needed[key] = time end
    answer[n], answer[n + 1], answer[n + 2], answer[n + 3] = used, part, b, now
    answer[n + 4] = fits and 1 or 0
    n = n + 5
  end
  for key, text in pairs(texts) do
    local ttl, value = ceil(needed[key] / 1000) + pad, values[key]
    -- Other limits of this caller are not asked, and need their time.
    if value and (others[key] or #value > #text) then
      text, ttl = text .. sub(value, #text + 1), max(ttl, redis.call('PTTL', KEYS[key]))
    end
    redis.call('SET', KEYS[key], text, 'PX', ttl)
  end
  return answer
end

if operation == 0 then
  local answer = take_plainly(true)
  if answer then return answer end
end
