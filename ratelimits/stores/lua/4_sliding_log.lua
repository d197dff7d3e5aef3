-- 3: sliding log. A list of its own: first "<units in all> <1 if out of order>", then the hits
-- as they came, each one number of its time and cost, which a list stores in 10 bytes. The
-- caller's key has an entry for it: without one, the limit was reset, or counted otherwise since.
local function sliding_log()
  local EPOCH = 1600000000000000
  local log = {room = fixed_window().room}

  local function hit_of(text)
    return tonumber(string.sub(text, 1, -5)) + EPOCH, tonumber(string.sub(text, -4)) + 1
  end

  local function text_of(time, cost)
    return string.format('%.0f%04d', time - EPOCH, cost - 1)
  end

  -- Calls what(time, cost) for each hit in order from the index, until it returns true.
  local function each_hit(key, from, what)
    while true do
      local texts = redis.call('LRANGE', key, from, from + 127)
      for _, text in ipairs(texts) do
        if what(hit_of(text)) then return end
      end
      if #texts < 128 then return end
      from = from + 128
    end
  end

  -- A clock that stepped back left hits out of order or in the future: all are gone through.
  local function settle_all(l, s, now)
    s.hits = {}
    each_hit(s.key, 1, function(time, cost)
      if time > now - l.window then
        if time > now + SKEW then time = now end
        s.hits[#s.hits + 1] = {time, cost}
        s.used = s.used + cost
      end
    end)
  end

  -- The total and whether hits are out of order; nothing if it is not our list.
  local function head_of(key)
    local head = redis.pcall('LINDEX', key, 0)
    if type(head) ~= 'string' then return end
    return string.match(head, '^(%d+) (%d)$')
  end

  function log.settle(l, entry, now)
    local s = {key = l.log, used = 0, dead = 0, part = 0, unit = 0, time = now}
    local total, disorder
    if entry then total, disorder = head_of(s.key) end
    if not total then
      s.foreign = true
      return s
    end
    local newest = hit_of(redis.call('LINDEX', s.key, -1))
    if disorder == '1' or newest > now + SKEW then
      settle_all(l, s, now)
      return s
    end
    s.newest, s.used = newest, tonumber(total)
    each_hit(s.key, 1, function(time, cost)
      if time > now - l.window then return true end
      s.dead, s.used = s.dead + 1, s.used - cost
    end)
    return s
  end

  local function save_head(s, disorder)
    redis.call('LPUSH', s.key, string.format('%.0f %d', s.used, disorder))
  end

  -- Writes what settling found: the dead go, the head is written anew by save_head.
  local function store_settled(s)
    if s.foreign then
      redis.call('DEL', s.key)
      return 0
    elseif not s.hits then
      redis.call('LTRIM', s.key, s.dead + 1, -1)
      return 0
    end
    redis.call('DEL', s.key)
    local disorder = 0
    for i, hit in ipairs(s.hits) do
      redis.call('RPUSH', s.key, text_of(hit[1], hit[2]))
      if i > 1 and hit[1] < s.hits[i - 1][1] then disorder = 1 end
      s.newest = max(s.newest or hit[1], hit[1])
    end
    return disorder
  end

  local function take_back(s, cost)
    while cost > 0 do
      local text = redis.call('RPOP', s.key)
      if not text then return end
      local time, taken = hit_of(text)
      local back = min(taken, cost)
      if taken > back then redis.call('RPUSH', s.key, text_of(time, taken - back)) end
      s.used, cost = s.used - back, cost - back
    end
  end

  function log.write(l, s, now, operation, cost, pad)
    local disorder = store_settled(s)
    if operation == 3 then
      take_back(s, cost)
    elseif operation then
      local taken = min(cost, log.room(l, s))
      if taken > 0 then
        redis.call('RPUSH', s.key, text_of(now, taken))
        s.used = s.used + taken
        if s.newest and now < s.newest then disorder = 1 end
        s.newest = max(s.newest or now, now)
      end
    end
    if s.used > 0 then
      save_head(s, disorder)
      redis.call('PEXPIRE', s.key, ceil((s.newest + l.window - now) / 1000) + pad)
    else
      redis.call('DEL', s.key)
    end
    s.written, s.disorder = true, disorder == 1
  end

  function log.expires(l, s)
    return s.used > 0 and s.newest + l.window or s.time
  end

  -- The first moment at which a cost fits, if nobody else comes; 0 if now or never.
  function log.release(l, s, cost)
    local need = s.used + cost - l.quota
    if need <= 0 or cost > l.quota then return 0 end
    local at = 0
    local function free(time, taken)
      need, at = need - taken, time + l.window
      return need <= 0
    end
    if not s.hits and not s.disorder then
      each_hit(s.key, s.written and 1 or s.dead + 1, free)
      return at
    end
    local hits = s.hits
    if s.written then
      hits = {}
      each_hit(s.key, 1, function(time, taken) hits[#hits + 1] = {time, taken} end)
    end
    table.sort(hits, function(x, y) return x[1] < y[1] end)
    for _, hit in ipairs(hits) do
      if free(hit[1], hit[2]) then break end
    end
    return at
  end

  return log
end
