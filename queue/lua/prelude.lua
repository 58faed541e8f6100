-- Put before every script. Redis time is read once, here. Numbers above 14
-- digits need int(), since Lua prints no more; many() keeps below the limit of
-- unpack; wake is the one snippet that ends each script which can leave work.
local call, fmt, match, floor = redis.call, string.format, string.match, math.floor
local now = call('TIME')
local ms, us = now[1] * 1000 + floor(now[2] / 1000), now[1] * 1000000 + now[2]

local function int(n) return fmt('%.0f', n) end

local function many(command, key, args)
  for i = 1, #args, 998 do call(command, key, unpack(args, i, math.min(i + 997, #args))) end
end

-- rank orders waiting: class 0 (priority 9) first, within a class by n; a
-- negative n stands before all that were enqueued.
local function rank(class, n) return class * 562949953421312 + 281474976710656 + n end

-- class returns 9 - priority of a body; a body that cannot be read counts as 5.
local function class(body) return 9 - (match(body, '^%d+ %S+ %d+ (%d) ') or 5) end

-- ring pushes the one wake token if something waits and may be claimed.
local function ring(waiting, wake, paused, limit, active)
  if not paused and (not limit or active < tonumber(limit))
    and call('ZCARD', waiting) > 0 and call('LLEN', wake) == 0 then
    call('LPUSH', wake, '1')
  end
end

-- options returns what follows the fixed fields of a header: ' d<due> c t<ms> r<ms> b<backoff>'.
local function options(body) return match(body, '^%d+ %S+ %d+ %d %d+([^\n]*)') or '' end

-- most is how many bytes of bodies a step reads before it leaves the rest to the
-- next one; the size of a body is known only when it is read, so one may go over.
local most = 1048576

-- memory is how long (ms) an id that a caller chose stays known after the end.
local memory = 600000

-- chosen says whether a caller chose the id of this body.
local function chosen(body) return string.find(options(body), ' c', 1, true) ~= nil end

-- kept returns how long (ms) an ended job stays known, and what replaces its
-- body: nothing if it has a retention, the header if only its id is remembered.
local function kept(body)
  local retention = tonumber(match(options(body), ' r(%d+)') or 0)
  local least = chosen(body) and memory or 0
  if retention > 0 then return math.max(retention, least) end
  return least, match(body, '^[^\n]*') .. '\n'
end

-- attempts returns how many a value of tries has spent.
local function attempts(record) return match(record or '', '^%d+') or '0' end

-- halves returns fence and session of a token.
local function halves(token)
  local fence, session = match(token or '', '^(%d+) (%S+)$')
  return fence or '0', session or '-'
end

-- The log of transitions, for tests and chaos runs; queue/log.go reads it. opened
-- returns an empty entry where the field log of meta says that one is kept; note
-- adds a line for a move, its numbers as text; tell writes the entry as the last
-- write of the call, if it has a move or is wanted without one.
local function opened(log, on)
  if on == '1' and call('LLEN', log) then return {} end
end

local function note(entry, ...) entry[#entry + 1] = table.concat({...}, ' ') end

local function tell(log, entry, script, who, number, wanted)
  if not entry or #entry == 0 and not wanted then return end
  table.insert(entry, 1, script .. ' ' .. int(us) .. ' ' .. who .. ' ' .. number)
  call('RPUSH', log, table.concat(entry, '\n'))
end

-- longdead returns some sessions condemned a day ago. Who adds one to condemned
-- takes these out, so the set keeps a day and no more.
local function longdead(condemned)
  return call('ZRANGEBYSCORE', condemned, '-inf', ms - 86400000, 'LIMIT', 0, 100)
end

-- refused is what a client's command gets that must not be applied: OLD, older
-- than both memories; OK, the outcomes of the first time; STALE, behind a later
-- turn of its sender. Nothing for one that is to be applied.
local function refused(senders, client, turn, age_ms)
  if ms - age_ms > 300000 then return {'OLD', int(ms)} end
  local n, outcomes = match(call('HGET', senders, client) or '', '^(%d+) %d+ (.*)$')
  if not n then return end
  if tonumber(turn) == tonumber(n) then return {'OK', int(ms), outcomes} end
  if tonumber(turn) < tonumber(n) then return {'STALE', int(ms)} end
end
