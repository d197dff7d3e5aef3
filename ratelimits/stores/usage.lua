-- Counts entries in the table of a minute (KEYS[1]) and in that of its hour (KEYS[2]).
-- See usage_entries.py, which does the same: of_minute() and of_hour().
-- ARGV: seconds for which each is kept; lines of a caller, and of everybody; then fields and
-- entries in turns.
local OTHERS = '\226\128\166\t'

local function unpacked(value)
    local is_json, lines = pcall(cjson.decode, value or '{}')
    return is_json and type(lines) == 'table' and lines or {}
end

local function size(lines)
    local count = 0
    for _ in pairs(lines) do
        count = count + 1
    end
    return count
end

local function add(lines, more, most)
    local count = size(lines)
    for label, numbers in pairs(more) do
        if not lines[label] then
            if label ~= '' and count >= most then
                label = OTHERS
            end
            if not lines[label] then
                lines[label], count = {}, count + 1
            end
        end
        local found = lines[label]
        for place, number in ipairs(numbers) do
            found[place] = (found[place] or 0) + number
        end
    end
end

local function raise_peaks(hour, minute)
    local units = {}
    for label, numbers in pairs(minute) do
        local limit = string.match(label, '^([^\t]*)\t')
        if limit then
            units[limit] = (units[limit] or 0) + numbers[1] + (numbers[4] or 0)
        end
    end
    for limit, count in pairs(units) do
        local peak = hour['\n' .. limit]
        hour['\n' .. limit] = {math.max(peak and peak[1] or 0, count)}
    end
end

for place = 5, #ARGV, 2 do
    local field, more = ARGV[place], cjson.decode(ARGV[place + 1])
    local most = tonumber(field == 'all' and ARGV[4] or ARGV[3])
    local minute = unpacked(redis.call('HGET', KEYS[1], field) or nil)
    local hour = unpacked(redis.call('HGET', KEYS[2], field) or nil)
    add(minute, more, most)
    add(hour, more, 2 * most)
    raise_peaks(hour, minute)
    redis.call('HSET', KEYS[1], field, cjson.encode(minute))
    redis.call('HSET', KEYS[2], field, cjson.encode(hour))
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return {redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])}
