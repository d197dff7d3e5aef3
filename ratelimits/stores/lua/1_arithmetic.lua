-- Exact arithmetic in doubles.
--
-- Everything stays a whole number below 2^53, where doubles are exact; a product that could
-- exceed that goes through muldiv.

local FINEST = 35184372088832
local SKEW = 10000000
local DAY = 86400000000

local function divmod(x, y)
  local r = fmod(x, y)
  if r < 0 then r = r + y end
  return (x - r) / y, r
end

-- floor(x * y / m) and the remainder. m and y below 2^45, the quotient below 2^53.
local function muldiv(x, y, m)
  if x * y < EXACT then return divmod(x * y, m) end
  local whole, xr = divmod(x, m)
  local digits, rest = {}, y
  while rest > 0 do
    local digit
    rest, digit = divmod(rest, 128)
    digits[#digits + 1] = digit
  end
  local q, r = 0, 0
  for i = #digits, 1, -1 do
    local dq
    dq, r = divmod(r * 128 + xr * digits[i], m)
    q = q * 128 + dq
  end
  return whole * y + q, r
end

local function gcd(x, y)
  while y > 0 do x, y = y, fmod(x, y) end
  return x
end

local function settled_time(stored, now)
  if stored > now and stored - now <= SKEW then return stored end
  return now
end
