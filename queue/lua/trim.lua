-- trim: what nobody needs any more -> nowhere
-- KEYS  1 jobs HASH  2 tries HASH  3 waiting ZSET  4 delayed ZSET  5 active HASH  6 holders HASH  7 senders HASH
--       8 dead ZSET  9 completed ZSET  10 cancelled ZSET  11 meta HASH  12 minutes HASH
--       13 log LIST
-- ARGV  1 epoch  2 most_dead (jobs that dead may keep)  3..5 cursors of holders, senders, minutes
-- REPLY OK ms forgotten dropped (ids taken out of dead) swept cursors (3, 0: at the end) | FENCED ms epoch
-- AGAIN nothing more to do
-- WHY   Bounded: 100 jobs of each set and one step of each cursor a call. Never an id in a living place: a job that was
--       enqueued again under the same id has its body here too. A dead job that is dropped leaves its header for the rest
--       of 10 minutes if its id was chosen, so that another process may still repeat the enqueue.
local jobs, tries, waiting, delayed, active, holders, senders, dead, completed, cancelled, meta, minutes, log = unpack(KEYS)
local m = call('HMGET', meta, 'epoch', 'dropped', 'log')
if tonumber(m[1] or 0) > tonumber(ARGV[1]) then return {'FENCED', int(ms), m[1]} end
call('HLEN', jobs) call('HLEN', tries) call('ZCARD', waiting) call('ZCARD', delayed) call('HLEN', active)
local entry = opened(log, m[3])
local function living(id)
  return call('HEXISTS', active, id) == 1 or call('ZSCORE', waiting, id) or call('ZSCORE', delayed, id)
end
local bodies, cut, dropped = {}, {}, {}
local function over(set, ids, place)
  local out = {}
  for i = 1, #ids do
    out[i] = ids[i]
    if entry and place then note(entry, 'forget', ids[i], place) end
    if not living(ids[i]) then bodies[#bodies + 1] = ids[i] end
  end
  cut[#cut + 1] = {set, out}
end
over(completed, call('ZRANGEBYSCORE', completed, '-inf', ms, 'LIMIT', 0, 100), 'completed')
over(cancelled, call('ZRANGEBYSCORE', cancelled, '-inf', ms, 'LIMIT', 0, 100), 'cancelled')
local surplus, headers, until_, records = call('ZCARD', dead) - ARGV[2], {}, {}, {}
if surplus > 0 then
  local oldest, outright, bytes = call('ZRANGE', dead, 0, math.min(surplus, 100) - 1, 'WITHSCORES'), {}, 0
  for i = 1, #oldest, 2 do
    if bytes >= most then break end
    local id, left = oldest[i], oldest[i + 1] + memory
    local body = left > ms and not living(id) and call('HGET', jobs, id)
    bytes, dropped[#dropped + 1] = bytes + (body and #body or 0), id
    if body and chosen(body) then
      headers[#headers + 1] = id; headers[#headers + 1] = string.gsub(match(body, '^[^\n]*'), ' r%d+', '', 1) .. '\n'
      until_[#until_ + 1] = left; until_[#until_ + 1] = id
      records[#records + 1] = id
      if entry then note(entry, 'drop', id, 'completed', int(left)) end
    else
      outright[#outright + 1] = id
      if entry then note(entry, 'drop', id, '-', '-') end
    end
  end
  over(dead, outright)
  cut[#cut + 1] = {dead, records}
end

-- one step through a hash: the fields that old() names
local swept, cursors = 0, {}
local function step(hash, cursor, old)
  local page = call('HSCAN', hash, cursor, 'COUNT', 200)
  local out = {}
  for i = 1, #page[2], 2 do
    if old(page[2][i], page[2][i + 1]) then out[#out + 1] = page[2][i] end
  end
  swept, cursors[#cursors + 1] = swept + #out, page[1]
  return out
end
local before = function(stamp, age) return stamp and tonumber(stamp) < ms - age end
local oldholders = step(holders, ARGV[3], function(_, v) return before(match(v, '^gone (%d+)'), 3600000) end)
local oldsenders = step(senders, ARGV[4], function(_, v) return before(match(v, '^%d+ (%d+)'), 1200000) end)
local oldminutes = step(minutes, ARGV[5], function(f) return (tonumber(match(f, '^%d+')) or 0) < floor(ms / 60000) - 1440 end)

call('ZREM', waiting, '') -- opener
many('ZADD', completed, until_) many('HSET', jobs, headers) many('HDEL', tries, records)
many('HDEL', tries, bodies) many('HDEL', jobs, bodies) -- first: an id without a body is dropped, a body without a place would run again
for i = 1, #cut do many('ZREM', cut[i][1], cut[i][2]) end
many('HDEL', holders, oldholders) many('HDEL', senders, oldsenders) many('HDEL', minutes, oldminutes)
if m[1] ~= ARGV[1] then call('HSET', meta, 'epoch', ARGV[1]) end
if #dropped > 0 then call('HSET', meta, 'dropped', int((m[2] or 0) + #dropped)) end
tell(log, entry, 'trim', '-', ARGV[1], m[1] ~= ARGV[1])
return {'OK', int(ms), #bodies + #records, dropped, swept, cursors}
