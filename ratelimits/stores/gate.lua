-- One action on the book of a credential (KEYS[1]) and of a customer's share of it (KEYS[2]), as
-- ratelimits/pacing/books.py and lines.py do it. KEYS[3] holds the version of the terms.
-- ARGV: action, time or '', known version, budget, guard, slot, has_share, refused, by, seen, how
-- many asks, shares and answers; then each ask, share (8 numbers) and answer (4).
local HOUR, KEPT, MOST, ROOM = 3600000000, 7200000000, 256, 8
local LATER, GO, TURN, STALE = 0, 1, 2, 3
local action, known, by, seen = ARGV[1], ARGV[3], ARGV[9], ARGV[10]
local budget, guard, slot = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local has_share, refused = ARGV[7] == '1', tonumber(ARGV[8])

local version = redis.call('GET', KEYS[3])
if version and version ~= known then
    return {STALE, '0', '0', '', version}
end

local now = tonumber(ARGV[2])
if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local place = 14

local function text(number)
    return string.format('%.0f', number)
end

local function number(value)
    return value and string.match(value, '^%d+$') and tonumber(value) or 0
end

local function asks_of(count)
    local asks = {}
    for index = 1, count do
        asks[index] = {
            ident = ARGV[place], is_window = ARGV[place + 1] == '1',
            units = tonumber(ARGV[place + 2]), need = tonumber(ARGV[place + 3]),
            unit = tonumber(ARGV[place + 4]), reach = tonumber(ARGV[place + 5]),
            window = tonumber(ARGV[place + 6]), quota = tonumber(ARGV[place + 7]),
        }
        place = place + 8
    end
    return asks
end

local function read(value, ask)
    local line = {full = 0, log = {}}
    local kind = value and string.sub(value, 1, 2)
    if kind == 'w ' and ask.is_window then
        for at, units in string.gmatch(value, '(%d+):(%d+)') do
            line.log[#line.log + 1] = {tonumber(at), tonumber(units)}
        end
    elseif kind == 'b ' and not ask.is_window then
        local full, unit = string.match(value, '^b (%d+) (%d+)$')
        full, unit = tonumber(full) or 0, tonumber(unit) or ask.unit
        if unit ~= ask.unit and full > now then
            full = now + math.floor((full - now) * ask.unit / unit)
        end
        line.full = full
    end
    return line
end

local function page_of(key, asks)
    local fields = {'until', 'lobby', 'by', 'count'}
    for index, ask in ipairs(asks) do
        fields[4 + index] = 'l' .. ask.ident
    end
    local values = redis.call('HMGET', key, unpack(fields))
    local page = {
        asks = asks, lines = {}, changes = {}, til = number(values[1]), lobby = number(values[2]),
        by = values[3] or '', count = values[4] or '',
    }
    for index, ask in ipairs(asks) do
        page.lines[index] = read(values[4 + index], ask)
    end
    return page
end

local function change(page, field, value)
    page.changes[#page.changes + 1] = field
    page.changes[#page.changes + 1] = value
end

local function write(page, index, line)
    local ask = page.asks[index]
    page.lines[index] = line
    local value = 'b ' .. text(line.full) .. ' ' .. text(ask.unit)
    if ask.is_window then
        local pairs_of = {'w'}
        for _, pair in ipairs(line.log) do
            pairs_of[#pairs_of + 1] = text(pair[1]) .. ':' .. text(pair[2])
        end
        value = table.concat(pairs_of, ' ')
    end
    change(page, 'l' .. ask.ident, value)
end

local function earliest_of(line, ask, til)
    if not ask.is_window then
        if line.full + guard <= now then
            return now
        end
        return math.max(now, math.max(line.full, now) + ask.need - ask.reach)
    end
    local last = line.log[#line.log] and line.log[#line.log][1] or 0
    local at, total, first = math.max(now, til, last), 0, 1
    if at < til + ask.window then
        at = math.max(at, last + ask.unit)
    end
    while line.log[first] and line.log[first][1] <= at - ask.window do
        first = first + 1
    end
    for index = first, #line.log do
        total = total + line.log[index][2]
    end
    for index = first, #line.log do
        if total + ask.units <= ask.quota then
            break
        end
        at, total = math.max(at, line.log[index][1] + ask.window), total - line.log[index][2]
    end
    return at
end

local function earliest(page)
    local at, ident = math.max(now, page.til), ''
    for index, ask in ipairs(page.asks) do
        local first = earliest_of(page.lines[index], ask, page.til)
        if first > at then
            at, ident = first, ask.ident
        end
    end
    return at, ident
end

local function booked(line, ask, at)
    if not ask.is_window then
        return {full = math.max(line.full, now, at) + ask.need}
    end
    local log = {}
    for _, pair in ipairs(line.log) do
        if pair[1] > at - ask.window then
            log[#log + 1] = pair
        end
    end
    local size, last = math.max(1, math.floor(ask.window / MOST)), log[#log]
    if #log >= MOST and math.floor(last[1] / size) == math.floor(at / size) then
        log[#log] = {at, last[2] + ask.units}
    else
        log[#log + 1] = {at, ask.units}
    end
    return {full = 0, log = log}
end

local function add(page, at)
    for index, ask in ipairs(page.asks) do
        write(page, index, booked(page.lines[index], ask, at))
    end
end

local function correct(page, index, ago, remaining, reset)
    local line, ask, left = page.lines[index], page.asks[index], now - ago
    if not ask.is_window then
        local full = left + ask.reach - remaining * ask.unit
        if full > line.full then
            write(page, index, {full = full})
        end
        return
    end
    local missing = ask.quota - remaining
    for _, pair in ipairs(line.log) do
        if pair[1] > left - ask.window then
            missing = missing - pair[2]
        end
    end
    local at = left + math.min(reset, ask.window) - ask.window
    if missing <= 0 or at <= now - ask.window then
        return
    end
    local log, is_in = {}, false
    for _, pair in ipairs(line.log) do
        if not is_in and pair[1] > at then
            log[#log + 1], is_in = {at, missing}, true
        end
        log[#log + 1] = pair
    end
    if not is_in then
        log[#log + 1] = {at, missing}
    end
    write(page, index, {full = 0, log = log})
end

local function count(page, calls, refusals)
    local hour, c, r, pc, pr = string.match(page.count, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    local this = math.floor(now / HOUR)
    hour, c, r = tonumber(hour) or 0, tonumber(c) or 0, tonumber(r) or 0
    pc, pr = tonumber(pc) or 0, tonumber(pr) or 0
    if hour ~= this then
        pc, pr = hour == this - 1 and c or 0, hour == this - 1 and r or 0
        c, r = 0, 0
    end
    local parts = {text(this), text(c + calls), text(r + refusals), text(pc), text(pr)}
    change(page, 'count', table.concat(parts, ' '))
end

local function save(key, page)
    if #page.changes == 0 then
        return
    end
    local ends = math.max(now, page.til, page.lobby)
    for index, ask in ipairs(page.asks) do
        local line = page.lines[index]
        if not ask.is_window then
            ends = math.max(ends, line.full)
        elseif #line.log > 0 then
            ends = math.max(ends, line.log[#line.log][1] + ask.window)
        end
    end
    redis.call('HSET', key, unpack(page.changes))
    redis.call('PEXPIRE', key, text(math.ceil((ends - now + KEPT) / 1000)))
end

local book = page_of(KEYS[1], asks_of(tonumber(ARGV[11])))
local share = page_of(KEYS[2], asks_of(tonumber(ARGV[12])))

local function done(verdict, at, ident, who)
    save(KEYS[1], book)
    save(KEYS[2], share)
    return {verdict, text(now), text(at), ident or '', who or ''}
end

local function later(line, at, ident)
    local lobby, most = math.max(line.lobby, at), 0
    local delay = math.max(lobby - math.floor(budget / 2), book.til, at - budget) - now
    for _, ask in ipairs(line.asks) do
        most = math.max(most, ask.need)
    end
    if lobby - at < HOUR then
        lobby = lobby + most
    end
    line.lobby = lobby
    change(line, 'lobby', text(lobby))
    return done(LATER, delay, ident, book.til > now and book.by or '')
end

local function leave(at, ident)
    if at - now > budget then
        return later(book, at, ident)
    end
    add(book, at)
    if not has_share then
        add(share, now)
    end
    count(book, slot > 0 and 0 or 1, 0)
    return done(GO, at)
end

-- So that the first call leaves at that time, and the next ones as from an empty bucket.
local function empty_at(at, is_better)
    for index, ask in ipairs(book.asks) do
        local full = at + ask.reach - ask.unit
        if not ask.is_window and is_better(full, book.lines[index].full) then
            write(book, index, {full = full})
        end
    end
end

-- A call that was booked for its slot leaves now.
local function put_off(index)
    local log, units, is_found = {}, book.asks[index].units, false
    for _, pair in ipairs(book.lines[index].log) do
        if not is_found and pair[1] == slot and pair[2] == units then
            is_found = true
        else
            log[#log + 1] = pair
        end
    end
    if is_found then
        local at = #log + 1
        while at > 1 and log[at - 1][1] > now do
            at = at - 1
        end
        table.insert(log, at, {now, units})
        write(book, index, {full = 0, log = log})
    end
end

if seen ~= '' then
    change(book, 'seen', seen)
    change(book, 'seen_at', text(now))
end

if action == 'block' then
    count(book, 0, refused)
    if now + budget > book.til then
        book.til = now + budget
        change(book, 'until', text(book.til))
        change(book, 'by', by)
        change(book, 'by_at', text(now))
        empty_at(book.til, function(new, old) return new > old end)
    end
    return done(GO, book.til)
end

if action == 'lift' then
    book.til, book.lobby = 0, 0
    change(book, 'until', '0')
    change(book, 'lobby', '0')
    empty_at(now, function(new, old) return new < old end)
    for index, ask in ipairs(book.asks) do
        local log = book.lines[index].log or {}
        while ask.is_window and #log > 0 and log[#log][1] > now do
            log[#log] = nil
            write(book, index, {full = 0, log = log})
        end
    end
    return done(GO, now)
end

for _ = 1, tonumber(ARGV[13]) do
    correct(book, tonumber(ARGV[place]) + 1, tonumber(ARGV[place + 1]),
        tonumber(ARGV[place + 2]), tonumber(ARGV[place + 3]))
    place = place + 4
end

if slot > 0 and book.til <= slot then
    if now - slot > math.floor(guard / ROOM) then
        for index, ask in ipairs(book.asks) do
            if ask.is_window then
                put_off(index)
            end
        end
    end
    return done(GO, slot)
end
local at, ident = earliest(book)
if has_share then
    return leave(at, ident)
end
local turn, whose = earliest(share)
if turn <= now then
    return leave(at, ident)
end
if math.max(turn, at) - now > budget then
    if turn >= at then
        return later(share, turn, whose)
    end
    return later(book, at, ident)
end
add(share, turn)
return done(TURN, turn)
