-- reschedule: waiting or delayed -> delayed or waiting, with another due time
-- KEYS  1 jobs HASH  2 waiting ZSET  3 delayed ZSET  4 active HASH  5 senders HASH  6 meta HASH  7 wake LIST  8 poke LIST
--       9 log LIST
-- ARGV  1 client  2 turn  3 age_ms (as in enqueue)  4 id  5 delay_ms  6 at_ms ('' none)
-- REPLY OK ms outcome: O<due ms> moved, A active, E ended, N no such job | STALE ms | OLD ms
-- AGAIN the outcome of the first time
-- WHY   A delay is counted here and not by the caller: no node's clock takes part. The body is read to keep its due
--       time true; it is written back before the id moves.
local jobs, waiting, delayed, active, senders, meta, wake, poke, log = unpack(KEYS)
local id = ARGV[4]
local refusal = refused(senders, ARGV[1], ARGV[2], ARGV[3])
if refusal then return refusal end
local m = call('HMGET', meta, 'sequence', 'paused', 'limit', 'log')
local body, running, held = call('HGET', jobs, id), call('HLEN', active), call('HEXISTS', active, id)
local waits = call('ZSCORE', waiting, id)
local placed = waits or call('ZSCORE', delayed, id)
local first = call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
call('LLEN', wake)
local entry = opened(log, m[4])
local poked, due, outcome = call('LLEN', poke), tonumber(ARGV[6]) or ms + ARGV[5], nil
if not body then outcome = 'N' elseif held == 1 then outcome = 'A' elseif not placed then outcome = 'E'
else outcome = 'O' .. int(due) end

if string.sub(outcome, 1, 1) == 'O' then
  local newline, fixed = string.find(body, '\n', 1, true), match(body, '^%d+ %S+ %d+ %d %d+')
  if newline and fixed then
    local rest = string.gsub(options(body), ' d%d+', '', 1)
    call('HSET', jobs, id, fixed .. ' d' .. int(due) .. rest .. string.sub(body, newline))
  end
  if due > ms then
    call('ZADD', delayed, due + class(body) / 16, id)
    call('ZREM', waiting, id)
    if poked == 0 and (not first or due < tonumber(first)) then call('LPUSH', poke, '1') end
  else
    local sequence = tonumber(m[1] or 0) + 1
    call('ZADD', waiting, rank(class(body), sequence), id)
    call('ZREM', delayed, id)
    call('HSET', meta, 'sequence', int(sequence))
  end
  if entry then note(entry, 'reschedule', id, waits and 'waiting' or 'delayed', due > ms and 'delayed' or 'waiting', int(due)) end
end
call('HSET', senders, ARGV[1], ARGV[2] .. ' ' .. int(ms) .. ' ' .. outcome)
ring(waiting, wake, m[2], m[3], running)
tell(log, entry, 'reschedule', ARGV[1], ARGV[2])
return {'OK', int(ms), outcome}
