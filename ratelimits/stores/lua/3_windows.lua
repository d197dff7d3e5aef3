-- Calendar months. Days are counted in years that begin in March, in eras of 400 years.
local function calendar()
  local function first_day(year, month)
    local shifted = month > 2 and year or year - 1
    local era, yoe = divmod(shifted, 400)
    local doy = floor((153 * (month > 2 and month - 3 or month + 9) + 2) / 5)
    return era * 146097 + yoe * 365 + floor(yoe / 4) - floor(yoe / 100) + doy - 719468
  end

  local function month_of(now)
    local era, doe = divmod(floor(now / DAY) + 719468, 146097)
    local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
    local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
    local month = floor((5 * doy + 2) / 153)
    local year = yoe + era * 400
    if month < 10 then return year, month + 3 end
    return year + 1, month - 9
  end

  return first_day, month_of
end

local function window_start(now, window)
  if window == 0 then
    local first_day, month_of = calendar()
    return first_day(month_of(now)) * DAY
  end
  local offset = fmod(window, 7 * DAY) == 0 and 4 * DAY or 0
  local _, into = divmod(now - offset, window)
  return now - into
end

local function window_end(start, window)
  if window > 0 then return start + window end
  local first_day, month_of = calendar()
  local year, month = month_of(start)
  if month == 12 then return first_day(year + 1, 1) * DAY end
  return first_day(year, month + 1) * DAY
end

-- 2: fixed window. used units of the window that began at time; unit is its length.
local function fixed_window()
  local fixed = {}

  function fixed.settle(l, s, now)
    local start = window_start(now, l.window)
    if not s or s.unit ~= l.window or s.time < start then
      return {used = 0, part = 0, unit = l.window, time = start}
    end
    s.time = settled_time(s.time, start)
    return s
  end

  function fixed.room(l, s)
    return max(0, l.quota - s.used)
  end

  function fixed.add(l, s, cost, now)
    s.used = s.used + min(cost, l.room(l, s, now))
  end

  function fixed.refund(l, s, cost)
    s.used = max(0, s.used - cost)
  end

  function fixed.expires(l, s)
    return s.used > 0 and window_end(s.time, l.window) or s.time
  end

  return fixed
end

-- 4: sliding counter. As the fixed window, and part units of the window before.
local function sliding_counter()
  local fixed = fixed_window()
  local counter = {add = fixed.add, refund = fixed.refund}

  function counter.settle(l, s, now)
    local start = window_start(now, l.window)
    if not s or s.unit ~= l.window or s.time < start - l.window then
      return {used = 0, part = 0, unit = l.window, time = start}
    end
    if s.time == start - l.window then
      return {used = 0, part = s.used, unit = l.window, time = start}
    end
    s.time = settled_time(s.time, start)
    return s
  end

  function counter.room(l, s, now)
    local q, r = muldiv(s.time + s.unit - max(now, s.time), s.part, s.unit)
    return max(0, l.quota - s.used - q - (r > 0 and 1 or 0))
  end

  function counter.expires(l, s)
    if s.used > 0 then return s.time + 2 * l.window end
    return s.part > 0 and s.time + l.window or s.time
  end

  return counter
end
