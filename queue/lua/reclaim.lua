-- reclaim: what a dead session holds -> waiting, delayed, dead or cancelled
-- KEYS  1 jobs HASH  2 tries HASH  3 waiting ZSET  4 delayed ZSET  5 active HASH  6 holders HASH  7 dead ZSET
--       8 cancelled ZSET  9 cancels SET  10 meta HASH  11 minutes HASH  12 wake LIST  13 poke LIST  14 log LIST
-- ARGV  1 epoch  2 session  3 node  then per job: id
-- REPLY OK ms moved (id place ...) looked (ids, from the first on, that were looked at) | FENCED ms epoch
-- AGAIN nothing more to do
-- WHY   The mark "gone" is written before anything moves, and the first call carries no ids: after it the session adds
--       nothing, so the list that the sweeper then makes is complete. A first stall goes to the head of its class, since
--       the job has waited already; later ones wait, since the job may be what kills its nodes.
local jobs, tries, waiting, delayed, active, holders, dead, cancelled, cancels, meta, minutes, wake, poke, log = unpack(KEYS)
local epoch, session, node = ARGV[1], ARGV[2], ARGV[3]
local m = call('HMGET', meta, 'epoch', 'head', 'stalled', 'dead', 'cancelled', 'paused', 'limit', 'log')
if tonumber(m[1] or 0) > tonumber(epoch) then return {'FENCED', int(ms), m[1]} end
local holder = call('HGET', holders, session)
local running, marks = call('HLEN', active), call('SCARD', cancels)
call('HLEN', jobs) call('HLEN', tries) call('ZCARD', waiting) call('ZCARD', delayed) call('ZCARD', dead)
call('ZCARD', cancelled) call('HLEN', minutes) call('LLEN', wake)
local poked = call('LLEN', poke)
local entry = opened(log, m[8])
local mark = not holder or string.sub(holder, 1, 4) ~= 'gone'
if entry and mark then note(entry, 'gone', session) end

-- newest first, ten at most: what a node writes with its settlement (queue/tries.go)
local function stall(record)
  local spent, stalls, unserved, count, lines = match(record, '^(%d+) (%d+) (%d+) (%d+)\n?(.*)$')
  spent, stalls, count = (spent or 0) + 1, (stalls or 0) + 1, (count or 0) + 1
  local list = {int(ms) .. ' ' .. int(spent) .. ' ' .. node .. ' stalled "the node died or was cut off in the middle of this attempt"'}
  for line in string.gmatch(lines or '', '[^\n]+') do
    if #list < 10 then list[#list + 1] = line end
  end
  return spent, stalls, int(spent) .. ' ' .. int(stalls) .. ' ' .. (unserved or '0') .. ' ' .. int(count) .. '\n' .. table.concat(list, '\n')
end

local head, n, moved, seen = tonumber(m[2] or 0), {stalled = 0, dead = 0, cancelled = 0}, {}, {}
local bytes, looked = 0, 0
local newtries, ranks, dues, ends, ceased, trimmed, unmark, forget, off = {}, {}, {}, {}, {}, {}, {}, {}, {}
local function move(list, score, id, place)
  list[#list + 1] = score; list[#list + 1] = id
  moved[#moved + 1] = id; moved[#moved + 1] = place
end
local function told(id, token, place, record, due, till)
  local f, whose = halves(token)
  if not record then record = call('HGET', tries, id) end
  note(entry, 'reclaim', id, place == 'nowhere' and '-' or place, f, whose, attempts(record), due and int(due) or '-', till and int(till) or '-')
end
for i = 4, #ARGV do
  if bytes >= most then break end
  local id = ARGV[i]
  looked = looked + 1
  local token = call('HGET', active, id)
  if token and not seen[id] and match(token, ' (.*)$') == session then
    seen[id], off[#off + 1] = true, id
    local body = call('HGET', jobs, id)
    bytes = bytes + (body and #body or 0)
    local value, due, till
    if not body then
      unmark[#unmark + 1] = id
      forget[#forget + 1] = id; moved[#moved + 1] = id; moved[#moved + 1] = 'nowhere'
    elseif marks > 0 and call('SISMEMBER', cancels, id) == 1 then
      local keep, header = kept(body)
      n.cancelled, unmark[#unmark + 1] = n.cancelled + 1, id
      if keep > 0 then
        till = ms + keep
        move(ceased, till, id, 'cancelled')
        if header then trimmed[#trimmed + 1] = id; trimmed[#trimmed + 1] = header end
      else
        forget[#forget + 1] = id; moved[#moved + 1] = id; moved[#moved + 1] = 'cancelled'
      end
    else
      local spent, stalls, record = stall(call('HGET', tries, id) or '')
      n.stalled, value = n.stalled + 1, record
      newtries[#newtries + 1] = id; newtries[#newtries + 1] = record
      if spent >= tonumber(match(body, '^%d+ %S+ (%d+) ') or 1) then
        n.dead = n.dead + 1
        move(ends, ms, id, 'dead')
      elseif stalls == 1 then
        head = head + 1
        move(ranks, rank(class(body), -head), id, 'waiting')
      else
        due = ms + math.min(spent * spent, 86400) * 1000
        move(dues, due + class(body) / 16, id, 'delayed')
      end
    end
    if entry then told(id, token, moved[#moved], value, due, till) end
  end
end

call('ZREM', waiting, '') -- opener
if mark then call('HSET', holders, session, 'gone ' .. int(ms)) end
many('HSET', tries, newtries) many('ZADD', waiting, ranks) many('ZADD', delayed, dues) many('ZADD', dead, ends)
many('ZADD', cancelled, ceased) many('HSET', jobs, trimmed) many('SREM', cancels, unmark)
many('HDEL', jobs, forget) many('HDEL', tries, forget) many('HDEL', active, off)
if m[1] ~= epoch then call('HSET', meta, 'epoch', epoch) end
if #ranks > 0 then call('HSET', meta, 'head', int(head)) end
for i, field in ipairs({'stalled', 'dead', 'cancelled'}) do
  if n[field] > 0 then
    call('HSET', meta, field, int((m[2 + i] or 0) + n[field]))
    call('HINCRBY', minutes, int(floor(ms / 60000)) .. ' ' .. field, n[field])
  end
end
ring(waiting, wake, m[6], m[7], running - #off)
if #dues > 0 and poked == 0 then call('LPUSH', poke, '1') end
tell(log, entry, 'reclaim', '-', epoch, m[1] ~= epoch)
return {'OK', int(ms), moved, looked}
