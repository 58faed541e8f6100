-- enqueue: new jobs -> waiting or delayed
-- KEYS  1 jobs HASH  2 waiting ZSET  3 delayed ZSET  4 active HASH  5 senders HASH
--       6 meta HASH  7 minutes HASH  8 wake LIST  9 poke LIST  10 log LIST
-- ARGV  1 client  2 turn  3 age_ms (Redis time of the client's last answer before the turn was first sent)
--       then 7 per item: id  head (version kind max priority)  tail (options, ' c' first if the id was chosen)
--       class  delay_ms  at_ms ('' none)  payload
-- REPLY OK ms outcomes, one letter per item: O stored, E the id exists | STALE ms | OLD ms
-- AGAIN the outcomes of the first time
-- WHY   A client that got no answer repeats the turn, so nothing is stored twice and no outcome is guessed.
--       HSET jobs is the first write, hence the one that a full Redis refuses: then nothing is stored.
local jobs, waiting, delayed, active, senders, meta, minutes, wake, poke, log = unpack(KEYS)
local refusal = refused(senders, ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
local m = call('HMGET', meta, 'sequence', 'enqueued', 'paused', 'limit', 'log')
local first = call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
local running = call('HLEN', active)
call('HLEN', jobs) call('ZCARD', waiting) call('HLEN', minutes) call('LLEN', wake)
local poked = call('LLEN', poke)
local entry = opened(log, m[5])

local sequence, earliest = tonumber(m[1] or 0), tonumber(first[2] or math.huge)
local seen, outcomes, bodies, ranks, dues = {}, {}, {}, {}, {}
local stamp, stored, earlier = int(ms), 0, false
for i = 4, #ARGV, 7 do
  local id, tail = ARGV[i], ARGV[i + 2]
  if seen[id] or (string.sub(tail, 1, 2) == ' c' and call('HEXISTS', jobs, id) == 1) then
    outcomes[#outcomes + 1] = 'E'
    if entry then note(entry, 'exists', id) end
  else
    seen[id], stored = true, stored + 1
    outcomes[#outcomes + 1] = 'O'
    local due = tonumber(ARGV[i + 5]) or ms + ARGV[i + 4]
    local given = (ARGV[i + 5] ~= '' or ARGV[i + 4] ~= '0') and ' d' .. int(due) or ''
    bodies[#bodies + 1] = id
    bodies[#bodies + 1] = ARGV[i + 1] .. ' ' .. stamp .. given .. tail .. '\n' .. ARGV[i + 6]
    if due <= ms then
      sequence = sequence + 1
      ranks[#ranks + 1] = rank(ARGV[i + 3], sequence)
      ranks[#ranks + 1] = id
    else
      dues[#dues + 1] = due + ARGV[i + 3] / 16
      dues[#dues + 1] = id
      if due < floor(earliest) then earliest, earlier = due, true end
    end
    if entry then
      note(entry, 'store', id, due <= ms and 'waiting' or 'delayed', given ~= '' and int(due) or '-', match(ARGV[i + 1], '^%d+ %S+ (%d+)') or '-')
    end
  end
end

many('HSET', jobs, bodies)
many('ZADD', waiting, ranks)
many('ZADD', delayed, dues)
local all = table.concat(outcomes)
call('HSET', senders, ARGV[1], ARGV[2] .. ' ' .. stamp .. ' ' .. all)
if stored > 0 then
  call('HSET', meta, 'sequence', int(sequence), 'enqueued', int((m[2] or 0) + stored))
  call('HINCRBY', minutes, int(floor(ms / 60000)) .. ' enqueued', stored)
end
ring(waiting, wake, m[3], m[4], running)
if earlier and poked == 0 then call('LPUSH', poke, '1') end
tell(log, entry, 'enqueue', ARGV[1], ARGV[2])
return {'OK', stamp, all}
