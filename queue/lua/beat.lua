-- beat: a session's sign of life
-- KEYS  1 sessions ZSET  2 condemned ZSET  3 nodes HASH  4 format STRING  5 sweeper STRING
--       6 meta HASH  7 log LIST
-- ARGV  1 session  2 all (1: every session's beat is wanted)  3 info (JSON, '' if unchanged)  4 bye  5 format
-- REPLY OK ms format known (1: nodes has this session) sweeper (the lock's value) beat (of its holder) beats (session ms ...) | LOST ms
-- AGAIN harmless: a beat only says "now"
-- WHY   A condemned session is told so and never comes back. bye condemns the session itself, so that the sweeper
--       looks for what it might still hold.
local sessions, condemned, nodes, format, sweeper, meta, log = unpack(KEYS)
local session = ARGV[1]
if call('ZSCORE', condemned, session) then return {'LOST', int(ms)} end
local known = call('HEXISTS', nodes, session)
call('ZCARD', sessions)
local old = ARGV[4] == '1' and longdead(condemned) or {}
local kind, lock = call('TYPE', sweeper), false
if (kind.ok or kind) == 'string' then lock = call('GET', sweeper) end
local written = call('GET', format)
local entry = opened(log, call('HGET', meta, 'log'))

call('ZREM', sessions, '') -- opener
if ARGV[4] == '1' then
  call('ZADD', condemned, ms, session)
  many('ZREM', condemned, old)
  call('ZREM', sessions, session)
  call('HDEL', nodes, session)
  if entry then note(entry, 'bye', session) end
else
  call('ZADD', sessions, ms, session)
  if ARGV[3] ~= '' then call('HSET', nodes, session, ARGV[3]); known = 1 end
end
if not written then call('SETNX', format, ARGV[5]); written = ARGV[5] end
tell(log, entry, 'beat', session, '0')
local holder = lock and string.sub(lock, 23) or ''
local beats = ARGV[2] == '1' and call('ZRANGE', sessions, 0, -1, 'WITHSCORES') or {}
return {'OK', int(ms), written, known, lock or '', holder ~= '' and call('ZSCORE', sessions, holder) or '', beats}
