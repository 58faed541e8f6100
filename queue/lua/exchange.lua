-- exchange: active -> settled, waiting -> active; the hot path, one round trip
-- KEYS  1 jobs HASH  2 tries HASH  3 waiting ZSET  4 delayed ZSET  5 active HASH  6 holders HASH  7 dead ZSET
--       8 completed ZSET  9 cancelled ZSET  10 cancels SET  11 meta HASH  12 minutes HASH  13 wake LIST  14 poke LIST
--       15 log LIST
-- ARGV  1 session  2 turn  3 k (claims wanted, 1,000 at most are given)  4 bye (1: the last turn)  5 risky (1: may get a job with two stalls)
--       6 bytes (bound of the bodies, at least one job)
--       then 6 per settlement: id  token  verb  delay_ms  class  tries
--       verbs: C complete (delay_ms: kept so long, class 'h': only the header of it)  R retry  D dead
--       S snooze  L release  U unserved; in lower case when sent again after an unknown result
--       tries: the whole new value, '@' after its first newline stands for now; '' leaves it
-- REPLY OK|GONE ms verdicts (O settled, S stale) claims (id fence body tries ...) paused ids-to-cancel backlog next-due
--       | STALE ms
-- AGAIN STALE: nothing is done for a turn that is not higher than the last
-- WHY   Settles by the whole token, so only the current attempt can end a job, whoever runs it besides.
--       All checks come before the first write; claims only decide on what cannot fail any more.
local jobs, tries, waiting, delayed, active, holders, dead, completed, cancelled, cancels, meta, minutes, wake, poke, log = unpack(KEYS)
local session, turn, k = ARGV[1], tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), 1000)
local holder = call('HGET', holders, session)
local gone = holder and string.sub(holder, 1, 4) == 'gone'
if holder and not gone and turn <= tonumber(holder) then return {'STALE', int(ms)} end
local m = call('HMGET', meta, 'head', 'sequence', 'fence', 'paused', 'limit',
  'completed', 'failed', 'retried', 'dead', 'cancelled', 'stale', 'promoted', 'orphans', 'claimed', 'log')
local head, sequence, fence, paused, limit = tonumber(m[1] or 0), tonumber(m[2] or 0), tonumber(m[3] or 0), m[4], m[5]
local ids = {}
for i = 7, #ARGV, 6 do ids[#ids + 1] = ARGV[i] end
local held = #ids > 0 and call('HMGET', active, unpack(ids)) or {}
local running, marks, later = call('HLEN', active), call('SCARD', cancels), call('ZCARD', delayed)
call('HLEN', jobs) call('HLEN', tries) call('ZCARD', waiting) call('ZCARD', dead) call('ZCARD', completed)
call('ZCARD', cancelled) call('HLEN', minutes) call('LLEN', wake)
local poked = call('LLEN', poke)
local first = later > 0 and call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local late = first and tonumber(first) <= ms - 100
  and call('ZRANGEBYSCORE', delayed, '-inf', ms - 100, 'WITHSCORES', 'LIMIT', 0, 100) or {}
local entry = opened(log, m[15])
if entry and not holder then note(entry, 'join', session) end

-- judge the settlements
local n = {completed = 0, failed = 0, retried = 0, dead = 0, cancelled = 0, stale = 0, promoted = 0, orphans = 0}
local verdicts, seen = {}, {}
local off, gonebody, gonetries, newtries, ranks, dues, ends = {}, {}, {}, {}, {}, {}, {}
local done, ceased, unmark, trimmed = {}, {}, {}, {}
local function delay(id, i)
  dues[#dues + 1] = ms + ARGV[i + 3] + ARGV[i + 4] / 16; dues[#dues + 1] = id
  return 'delayed', ms + ARGV[i + 3]
end
local function forget(id) gonebody[#gonebody + 1] = id; gonetries[#gonetries + 1] = id end
local settle = { -- each returns the new place, and the time that goes with it
  C = function(id, i)
    n.completed = n.completed + 1
    if ARGV[i + 3] == '0' then forget(id) return 'completed' end
    local short = ARGV[i + 4] == 'h'
    local body = call(short and 'HGET' or 'HEXISTS', jobs, id)
    if not body or body == 0 then forget(id) return 'completed' end -- removed meanwhile: a late end brings nothing back
    done[#done + 1] = ms + ARGV[i + 3]; done[#done + 1] = id
    if short then
      trimmed[#trimmed + 1] = id
      trimmed[#trimmed + 1] = match(body, '^[^\n]*') .. '\n'
      gonetries[#gonetries + 1] = id
    end
    return 'completed', ms + ARGV[i + 3]
  end,
  R = function(id, i) n.failed = n.failed + 1; n.retried = n.retried + 1; return delay(id, i) end,
  D = function(id) n.failed = n.failed + 1; n.dead = n.dead + 1; ends[#ends + 1] = ms; ends[#ends + 1] = id; return 'dead' end,
  S = delay,
  U = delay,
  L = function(id, i) head = head + 1; ranks[#ranks + 1] = rank(ARGV[i + 4], -head); ranks[#ranks + 1] = id; return 'waiting' end,
}
local function cancel(id)
  n.cancelled = n.cancelled + 1
  unmark[#unmark + 1] = id
  local keep, header = kept(call('HGET', jobs, id) or '')
  if keep == 0 then forget(id) return 'cancelled' end
  ceased[#ceased + 1] = ms + keep; ceased[#ceased + 1] = id
  if header then trimmed[#trimmed + 1] = id; trimmed[#trimmed + 1] = header end
  return 'cancelled', ms + keep
end
local function settled(id, token, i, verb, place, time)
  local after, f, whose = ARGV[i + 5], halves(token)
  if after == '' then after = call('HGET', tries, id) end
  note(entry, 'settle', id, place, f, whose, verb, attempts(after), place == 'delayed' and int(time) or '-',
    place ~= 'delayed' and time and int(time) or '-', token ~= ARGV[i + 1] and halves(ARGV[i + 1]) or '-')
end
for j = 1, #ids do
  local id, i = ids[j], 1 + 6 * j
  local verb, value = ARGV[i + 2], ARGV[i + 5]
  if held[j] ~= ARGV[i + 1] or seen[id] then
    verdicts[j] = 'S'
    if not seen[id] and verb == string.upper(verb) then n.stale = n.stale + 1 end
    if entry then
      local f, whose = halves(ARGV[i + 1])
      note(entry, 'stale', id, f, whose, seen[id] and string.lower(verb) or verb)
    end
  else
    seen[id], verdicts[j], off[#off + 1] = true, 'O', id
    if value ~= '' then newtries[#newtries + 1] = id; newtries[#newtries + 1] = (string.gsub(value, '\n@', '\n' .. int(ms), 1)) end
    local place, time
    if marks > 0 and call('SISMEMBER', cancels, id) == 1 then
      verb = verb == string.upper(verb) and 'X' or 'x'
      place, time = cancel(id)
    else
      place, time = settle[string.upper(verb)](id, i)
    end
    if entry then settled(id, held[j], i, verb, place, time) end
  end
end

-- write them: the new place first, the old one last
call('ZREM', waiting, '') -- opener: what follows may be written when Redis is full
many('ZADD', delayed, dues) many('ZADD', dead, ends) many('ZADD', waiting, ranks)
many('ZADD', completed, done) many('ZADD', cancelled, ceased) many('HSET', jobs, trimmed)
many('HSET', tries, newtries) many('SREM', cancels, unmark)
many('HDEL', jobs, gonebody)
if #gonetries > 0 and call('HLEN', tries) > 0 then many('HDEL', tries, gonetries) end
many('HDEL', active, off)
if gone then k = 0 else call('HSET', holders, session, ARGV[4] == '1' and 'gone ' .. int(ms) or ARGV[2]) end

-- the net under the sweeper
local promoted = {}
for i = 1, #late, 2 do
  local score = tonumber(late[i + 1])
  sequence = sequence + 1
  promoted[i], promoted[i + 1] = rank((score - floor(score)) * 16, sequence), late[i]
  if entry then note(entry, 'promote', late[i], int(floor(score))) end
end
if #late > 0 then
  many('ZADD', waiting, promoted)
  for i = 1, #late, 2 do late[(i + 1) / 2] = late[i] end
  n.promoted = #promoted / 2
  call('ZREM', delayed, unpack(late, 1, n.promoted))
end

-- claim
local claims, claimed, later_ = {}, 0, {}
running = running - #off
if paused or ARGV[4] == '1' then k = 0 elseif limit then k = math.min(k, limit - running) end
if k > 0 then
  fence = math.max(fence, us - 1)
  local wanted, budget, risky = call('ZRANGE', waiting, 0, k - 1), tonumber(ARGV[6]), ARGV[5] == '1'
  local tokens, out, nobody, spentout = {}, {}, {}, {}
  local from, slice, full = 1, 4, false
  while from <= #wanted and not full do
    local to = math.min(from + slice - 1, #wanted)
    local bodies, records = call('HMGET', jobs, unpack(wanted, from, to)), call('HMGET', tries, unpack(wanted, from, to))
    for j = 1, to - from + 1 do
      local id, body, record = wanted[from + j - 1], bodies[j], records[j]
      local take = body
      if not body then
        n.orphans = n.orphans + 1; nobody[#nobody + 1] = id
        if entry then note(entry, 'orphan', id, 'waiting') end
      end
      if body and record then
        local spent, stalls = match(record, '^(%d+) (%d+)')
        if tonumber(spent or 0) >= tonumber(match(body, '^%d+ %S+ (%d+)') or math.huge) then
          take, n.dead = false, n.dead + 1
          spentout[#spentout + 1] = ms; spentout[#spentout + 1] = id
          if entry then note(entry, 'spentout', id, attempts(record)) end
        elseif tonumber(stalls or 0) >= 2 then
          if risky then risky = false else
            take = false
            later_[#later_ + 1] = ms + 1000 + class(body) / 16; later_[#later_ + 1] = id
            if entry then note(entry, 'later', id, int(ms + 1000)) end
          end
        end
      end
      if take then
        local size = #body + (record and #record or 0)
        if claimed > 0 and size > budget then full = true break end
        budget, fence, claimed = budget - size, fence + 1, claimed + 1
        local f = int(fence)
        tokens[#tokens + 1] = id; tokens[#tokens + 1] = f .. ' ' .. session
        claims[#claims + 1] = id; claims[#claims + 1] = f; claims[#claims + 1] = body; claims[#claims + 1] = record or ''
        if entry then note(entry, 'claim', id, f, session, attempts(record)) end
      end
      out[#out + 1] = id
    end
    from, slice = to + 1, math.min(slice * 2, 64) -- what a slice reads in vain is bounded too
  end
  many('HSET', active, tokens) many('ZADD', dead, spentout)
  if later > 0 or #dues > 0 then many('ZREM', delayed, out) end
  many('ZADD', delayed, later_) many('HDEL', tries, nobody) many('ZREM', waiting, out)
end

-- count, wake, answer
local set = {}
local function put(field, value) set[#set + 1] = field; set[#set + 1] = int(value) end
if claimed > 0 then put('fence', fence) put('claimed', (m[14] or 0) + claimed) end
if #ranks > 0 then put('head', head) end
if #promoted > 0 then put('sequence', sequence) end
local minute = int(floor(ms / 60000))
for i, field in ipairs({'completed', 'failed', 'retried', 'dead', 'cancelled', 'stale', 'promoted', 'orphans'}) do
  if n[field] > 0 then
    put(field, (m[5 + i] or 0) + n[field])
    call('HINCRBY', minutes, minute .. ' ' .. field, n[field])
  end
end
if #set > 0 then call('HSET', meta, unpack(set)) end
ring(waiting, wake, paused, limit, running + claimed)
local next = call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if next and #dues + #later_ > 0 and poked == 0 and (not first or tonumber(next) < tonumber(first)) then call('LPUSH', poke, '1') end
if entry and ARGV[4] == '1' and not gone then note(entry, 'bye', session) end
tell(log, entry, 'exchange', session, ARGV[2])
local mine = {}
if marks > 0 then
  local some = call('SRANDMEMBER', cancels, 100)
  local owned = #some > 0 and call('HMGET', active, unpack(some)) or {}
  for i = 1, #some do
    if owned[i] and match(owned[i], ' (.*)$') == session then mine[#mine + 1] = some[i] end
  end
end
return {gone and 'GONE' or 'OK', int(ms), table.concat(verdicts), claims, paused or '', mine, call('ZCARD', waiting), next or ''}
