-- 1: token bucket. used + part/unit units are in use at time.
local function token_bucket()
  local bucket = {}

  local function in_units(s, b)
    if s.part == 0 then
      s.unit = b
    elseif s.unit ~= b then
      local common = s.unit / gcd(s.unit, b) * b
      if common <= FINEST then
        s.part, s.unit = s.part * (common / s.unit), common
      else
        local q, r = muldiv(s.part, b, s.unit)
        local carry
        carry, s.part = divmod(r > 0 and q + 1 or q, b)
        s.used, s.unit = s.used + carry, b
      end
    end
  end

  local function drain(s, l, elapsed)
    if elapsed * l.a / l.b > (s.used + 1) * (1 + 1e-9) + 1 then
      s.used, s.part = 0, 0
      return
    end
    local q, r = muldiv(elapsed, l.a, l.b)
    s.used, s.part = s.used - q, s.part - r * (s.unit / l.b)
    if s.part < 0 then s.used, s.part = s.used - 1, s.part + s.unit end
    if s.used < 0 then s.used, s.part = 0, 0 end
  end

  function bucket.settle(l, s, now)
    if not s then return {used = 0, part = 0, unit = l.b, time = now} end
    in_units(s, l.b)
    if s.time < now then drain(s, l, now - s.time) end
    s.time = settled_time(s.time, now)
    if s.used + (s.part > 0 and 1 or 0) > l.burst then s.used, s.part = l.burst, 0 end
    if s.part == 0 then s.unit = l.b end
    return s
  end

  function bucket.room(l, s)
    return l.burst - s.used - (s.part > 0 and 1 or 0)
  end

  function bucket.add(l, s, cost)
    if cost > bucket.room(l, s) then
      s.used, s.part = l.burst, 0
    else
      s.used = s.used + cost
    end
  end

  function bucket.refund(l, s, cost)
    if cost > s.used then
      s.used, s.part = 0, 0
    else
      s.used = s.used - cost
    end
  end

  function bucket.expires(l, s)
    if l.quota == 0 then return s.time end
    return s.time + ceil((s.used + s.part / s.unit) * l.b / l.a)
  end

  return bucket
end
