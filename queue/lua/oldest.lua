-- oldest: how long the oldest waiting job has waited; reads only
-- KEYS  1 jobs HASH  2 waiting ZSET
-- ARGV  none
-- REPLY OK ms since (enqueued or due, in ms; '' if nothing waits)
-- AGAIN the same
-- WHY   The head of each class is its oldest; the bodies stay in Redis, only a number leaves it.
local jobs, waiting = unpack(KEYS)
local oldest
for class_ = 0, 9 do
  local id = call('ZRANGEBYSCORE', waiting, rank(class_, -281474976710656), '(' .. int(rank(class_ + 1, -281474976710656)), 'LIMIT', 0, 1)[1]
  local body = id and call('HGET', jobs, id)
  local since = body and tonumber(match(options(body), ' d(%d+)') or match(body, '^%d+ %S+ %d+ %d (%d+)'))
  if since and (not oldest or since < oldest) then oldest = since end
end
return {'OK', int(ms), oldest and int(oldest) or ''}
