-- Counts entries in the table of a minute (KEYS[1]) and in that of its hour (KEYS[2]).
-- See usage_entries.py, which does the same: of_minute() and of_hour().
-- ARGV: seconds for which each is kept; lines of a caller, and of everybody; then fields and
-- entries in turns.
local NUMBERS, OTHERS = 6, '\226\128\166\31'

local function unpacked(value)
    local lines, order = {}, {}
    for label, text in string.gmatch(value or '', '([^\30\n]*)\30([^\n]*)\n') do
        local numbers = {}
        for number in string.gmatch(text .. ',', '([^,]*),') do
            numbers[#numbers + 1] = tonumber(number) or 0
        end
        for place = #numbers + 1, NUMBERS do
            numbers[place] = 0
        end
        lines[label] = numbers
        order[#order + 1] = label
    end
    return lines, order
end

local function packed(lines, order)
    local texts = {}
    for place, label in ipairs(order) do
        local numbers, last = lines[label], NUMBERS
        while last > 0 and numbers[last] == 0 do
            last = last - 1
        end
        local shown = {}
        for number = 1, last do
            shown[number] = numbers[number] == 0 and '' or string.format('%.0f', numbers[number])
        end
        texts[place] = label .. '\30' .. table.concat(shown, ',') .. '\n'
    end
    return table.concat(texts)
end

local function line(lines, order, label)
    if not lines[label] then
        lines[label] = {0, 0, 0, 0, 0, 0}
        order[#order + 1] = label
    end
    return lines[label]
end

local function add(lines, order, more, labels, most)
    for _, label in ipairs(labels) do
        local known = lines[label] or label == '' or #order < most
        local found = line(lines, order, known and label or OTHERS)
        for place, number in ipairs(more[label]) do
            found[place] = found[place] + number
        end
    end
end

local function raise_peaks(lines, order, minute, labels)
    local units, limits = {}, {}
    for _, label in ipairs(labels) do
        if label ~= '' then
            local limit = string.match(label, '^[^\31]*')
            if not units[limit] then
                limits[#limits + 1] = limit
            end
            units[limit] = (units[limit] or 0) + minute[label][1] + minute[label][4]
        end
    end
    for _, limit in ipairs(limits) do
        local peak = line(lines, order, '\29' .. limit)
        peak[1] = math.max(peak[1], units[limit])
    end
end

for place = 5, #ARGV, 2 do
    local field = ARGV[place]
    local most = tonumber(field == 'all' and ARGV[4] or ARGV[3])
    local more, labels = unpacked(ARGV[place + 1])
    local minute, of_minute = unpacked(redis.call('HGET', KEYS[1], field) or '')
    local hour, of_hour = unpacked(redis.call('HGET', KEYS[2], field) or '')
    add(minute, of_minute, more, labels, most)
    add(hour, of_hour, more, labels, 2 * most)
    raise_peaks(hour, of_hour, minute, of_minute)
    redis.call('HSET', KEYS[1], field, packed(minute, of_minute))
    redis.call('HSET', KEYS[2], field, packed(hour, of_hour))
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return {redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2])}
