-- condemn: a session that is silent -> dead for ever
-- KEYS  1 sessions ZSET  2 condemned ZSET  3 nodes HASH  4 meta HASH  5 log LIST  6 sweeper STRING
-- ARGV  1 session  2 beat (ms, as the caller saw it last)
-- REPLY DONE ms | ALIVE ms (it has beaten since) | ABSENT ms
-- AGAIN ABSENT
-- WHY   The beat is compared here, so a session that came back meanwhile lives. The sweeper lock of a dead session
--       goes in the same step, else its successor would wait for the lock to expire.
local sessions, condemned, nodes, meta, log, sweeper = unpack(KEYS)
local session = ARGV[1]
local beat = call('ZSCORE', sessions, session)
if not beat then return {'ABSENT', int(ms)} end
if tonumber(beat) ~= tonumber(ARGV[2]) then return {'ALIVE', int(ms)} end
local kind, lock = call('TYPE', sweeper), false
if (kind.ok or kind) == 'string' then lock = call('GET', sweeper) end
call('ZCARD', condemned) call('HLEN', nodes)
local entry = opened(log, call('HGET', meta, 'log'))
local old = longdead(condemned)

call('ZREM', sessions, '') -- opener
call('ZADD', condemned, ms, session)
many('ZREM', condemned, old)
call('ZREM', sessions, session)
call('HDEL', nodes, session)
if lock and string.sub(lock, 23) == session then call('DEL', sweeper) end
if entry then note(entry, 'condemn', session) end
tell(log, entry, 'condemn', '-', '0')
return {'DONE', int(ms)}
