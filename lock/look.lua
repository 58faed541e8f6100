-- look: what stands where the lock should be
-- KEYS  1 lock STRING
-- ARGV  none
-- REPLY FREE | HELD type pttl head (ms, -1 never; the first 100 bytes of a string)
-- AGAIN the same; it only reads
-- WHY   redislock tells that a lock is held, not that it can never be free.
local kind = redis.call('TYPE', KEYS[1])
kind = type(kind) == 'table' and kind.ok or kind
if kind == 'none' then return {'FREE'} end
local head = kind == 'string' and redis.call('GETRANGE', KEYS[1], 0, 99) or ''
return {'HELD', kind, redis.call('PTTL', KEYS[1]), head}
