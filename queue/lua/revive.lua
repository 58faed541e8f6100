-- revive: dead -> waiting, with all attempts anew
-- KEYS  1 jobs HASH  2 tries HASH  3 waiting ZSET  4 active HASH  5 dead ZSET  6 senders HASH  7 meta HASH
--       8 minutes HASH  9 wake LIST  10 log LIST
-- ARGV  1 client  2 turn  3 age_ms (as in enqueue)  then per job: id
-- REPLY OK ms outcomes, one letter per id: O revived, N not dead, L later (too many bytes for one step) | STALE ms | OLD ms
-- AGAIN the outcomes of the first time
-- WHY   Counts start again, what went wrong stays readable. ZADD waiting is the first write, hence the one that a full
--       Redis refuses: then nothing has moved.
local jobs, tries, waiting, active, dead, senders, meta, minutes, wake, log = unpack(KEYS)
local refusal = refused(senders, ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
local m = call('HMGET', meta, 'sequence', 'revived', 'paused', 'limit', 'log')
local running = call('HLEN', active)
call('HLEN', jobs) call('HLEN', tries) call('ZCARD', waiting) call('ZCARD', dead) call('HLEN', minutes) call('LLEN', wake)
local entry = opened(log, m[5])

local sequence, seen, outcomes, ids, ranks, records, bytes = tonumber(m[1] or 0), {}, {}, {}, {}, {}, 0
for i = 4, #ARGV do
  local id, later = ARGV[i], bytes >= most
  local body = not later and not seen[id] and call('ZSCORE', dead, id) and call('HGET', jobs, id)
  outcomes[#outcomes + 1] = later and 'L' or body and 'O' or 'N'
  if body then
    bytes = bytes + #body
    seen[id], sequence, ids[#ids + 1] = true, sequence + 1, id
    ranks[#ranks + 1] = rank(class(body), sequence); ranks[#ranks + 1] = id
    local record = call('HGET', tries, id)
    if record then
      records[#records + 1] = id
      record = string.gsub(record, '^%d+ %d+ %d+', '0 0 0')
      records[#records + 1] = record
    end
    if entry then note(entry, 'revive', id, attempts(record)) end
  end
end

many('ZADD', waiting, ranks) many('HSET', tries, records) many('ZREM', dead, ids)
local all = table.concat(outcomes)
call('HSET', senders, ARGV[1], ARGV[2] .. ' ' .. int(ms) .. ' ' .. all)
if #ids > 0 then
  call('HSET', meta, 'sequence', int(sequence), 'revived', int((m[2] or 0) + #ids))
  call('HINCRBY', minutes, int(floor(ms / 60000)) .. ' revived', #ids)
end
ring(waiting, wake, m[3], m[4], running)
tell(log, entry, 'revive', ARGV[1], ARGV[2])
return {'OK', int(ms), all}
