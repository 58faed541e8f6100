-- raise: the holder of the sweeper lock gets a new epoch
-- KEYS  1 sweeper STRING  2 epoch STRING  3 sessions ZSET  4 nodes HASH  5 meta HASH  6 log LIST
-- ARGV  1 lock (its whole value)  2 seen (the highest epoch that the caller was fenced by, or 0)
-- REPLY OK epoch | LOST ms
-- AGAIN OK, a higher epoch
-- WHY   An epoch is made like a fence: from Redis's clock, above the last one and above what a queue has seen,
--       so it rises also where Redis lost the last one. Descriptions of nodes that are no session (a beat whose
--       session was lost with Redis's data) are removed here, once a term.
local sweeper, epoch, sessions, nodes, meta, log = unpack(KEYS)
local kind = call('TYPE', sweeper)
if (kind.ok or kind) ~= 'string' or call('GET', sweeper) ~= ARGV[1] then return {'LOST', int(ms)} end
local last = tonumber(call('GET', epoch) or 0) or 0
local names = call('HLEN', nodes) <= 2000 and call('HKEYS', nodes) or {}
local lost = {}
local entry = opened(log, call('HGET', meta, 'log'))
for i = 1, #names do
  if #lost < 900 and not call('ZSCORE', sessions, names[i]) then lost[#lost + 1] = names[i] end
end

call('ZREM', sessions, '') -- opener
local value = math.max(us, last + 1, ARGV[2] + 1)
call('SET', epoch, int(value))
if #lost > 0 then call('HDEL', nodes, unpack(lost)) end
if entry then note(entry, 'raise', string.sub(ARGV[1], 23)) end
tell(log, entry, 'raise', '-', int(value))
return {'OK', int(value)}
