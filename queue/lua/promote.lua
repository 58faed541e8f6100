-- promote: delayed and due -> waiting
-- KEYS  1 waiting ZSET  2 delayed ZSET  3 active HASH  4 meta HASH  5 minutes HASH  6 wake LIST  7 log LIST
-- ARGV  1 epoch  2 most (jobs at a time, at most 100)
-- REPLY OK ms moved next (due time in ms of the next one, '' if none) | FENCED ms epoch
-- AGAIN nothing more to move
-- WHY   What is due is decided here by Redis's clock, so no job is early; the score has the class, so no body is read.
local waiting, delayed, active, meta, minutes, wake, log = unpack(KEYS)
local m = call('HMGET', meta, 'epoch', 'sequence', 'promoted', 'paused', 'limit', 'log')
if tonumber(m[1] or 0) > tonumber(ARGV[1]) then return {'FENCED', int(ms), m[1]} end
local due = call('ZRANGEBYSCORE', delayed, '-inf', '(' .. int(ms + 1), 'WITHSCORES', 'LIMIT', 0, math.min(100, ARGV[2]))
local running = call('HLEN', active)
call('ZCARD', waiting) call('HLEN', minutes) call('LLEN', wake)
local entry = opened(log, m[6])

local sequence, ranks, ids = tonumber(m[2] or 0), {}, {}
for i = 1, #due, 2 do
  local score = tonumber(due[i + 1])
  sequence = sequence + 1
  ranks[i], ranks[i + 1] = rank((score - floor(score)) * 16, sequence), due[i]
  ids[#ids + 1] = due[i]
  if entry then note(entry, 'promote', due[i], int(floor(score))) end
end
call('ZREM', waiting, '') -- opener
if #ids > 0 then
  call('ZADD', waiting, unpack(ranks))
  call('ZREM', delayed, unpack(ids))
  call('HSET', meta, 'sequence', int(sequence), 'promoted', int((m[3] or 0) + #ids))
  call('HINCRBY', minutes, int(floor(ms / 60000)) .. ' promoted', #ids)
end
if m[1] ~= ARGV[1] then call('HSET', meta, 'epoch', ARGV[1]) end
ring(waiting, wake, m[4], m[5], running)
tell(log, entry, 'promote', '-', ARGV[1], m[1] ~= ARGV[1])
local next = call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
return {'OK', int(ms), #ids, next and int(floor(tonumber(next))) or ''}
