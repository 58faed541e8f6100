-- repair: ids without a body -> nowhere, bodies without a place -> waiting
-- KEYS  1 jobs HASH  2 tries HASH  3 waiting ZSET  4 delayed ZSET  5 active HASH  6 dead ZSET  7 completed ZSET
--       8 cancelled ZSET  9 meta HASH  10 wake LIST  11 log LIST
-- ARGV  1 epoch  then per suspect: id
-- REPLY OK ms orphans strays | FENCED ms epoch
-- AGAIN what was too many bytes for the first time, else nothing more to do
-- WHY   Looks again, in one step, at what the audit suspected. An active id without a body is left to its holder: it
--       settles, or is reclaimed.
local jobs, tries, waiting, delayed, active, dead, completed, cancelled, meta, wake, log = unpack(KEYS)
local m = call('HMGET', meta, 'epoch', 'orphans', 'strays', 'sequence', 'paused', 'limit', 'log')
if tonumber(m[1] or 0) > tonumber(ARGV[1]) then return {'FENCED', int(ms), m[1]} end
local running = call('HLEN', active)
local sets = {waiting, delayed, dead, completed, cancelled}
for i = 1, #sets do call('ZCARD', sets[i]) end
call('LLEN', wake)
local entry, names = opened(log, m[7]), {'waiting', 'delayed', 'dead', 'completed', 'cancelled'}
local sequence, orphans, strays, records, ranks, seen = tonumber(m[4] or 0), 0, 0, {}, {}, {}
local cut, bytes = {{}, {}, {}, {}, {}}, 0
for i = 2, #ARGV do
  local id, places = ARGV[i], 0
  local body = call('HEXISTS', jobs, id) == 1
  for j = 1, #sets do
    if not seen[id] and call('ZSCORE', sets[j], id) then
      places = places + 1
      if not body then
        cut[j][#cut[j] + 1] = id
        if entry then note(entry, 'orphan', id, names[j]) end
      end
    end
  end
  if not body and not seen[id] then
    if places > 0 then orphans = orphans + 1 end
    if call('HEXISTS', active, id) == 0 and call('HEXISTS', tries, id) == 1 then records[#records + 1] = id end
  elseif body and not seen[id] and places == 0 and bytes < most and call('HEXISTS', active, id) == 0 then
    local text = call('HGET', jobs, id)
    bytes, strays, sequence = bytes + #text, strays + 1, sequence + 1
    ranks[#ranks + 1] = rank(class(text), sequence); ranks[#ranks + 1] = id
    if entry then note(entry, 'stray', id) end
  end
  seen[id] = true
end

call('ZREM', waiting, '') -- opener
many('ZADD', waiting, ranks)
for j = 1, #sets do many('ZREM', sets[j], cut[j]) end
many('HDEL', tries, records)
if m[1] ~= ARGV[1] then call('HSET', meta, 'epoch', ARGV[1]) end
if orphans + strays > 0 then
  call('HSET', meta, 'orphans', int((m[2] or 0) + orphans), 'strays', int((m[3] or 0) + strays), 'sequence', int(sequence))
end
ring(waiting, wake, m[5], m[6], running)
tell(log, entry, 'repair', '-', ARGV[1], m[1] ~= ARGV[1])
return {'OK', int(ms), orphans, strays}
