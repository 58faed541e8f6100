-- peek: headers and tries of some jobs; reads only
-- KEYS  1 jobs HASH  2 tries HASH
-- ARGV  per job: id
-- REPLY OK ms records (header-or-empty size tries ...), one of each per id, from the first on as far as the bytes go
-- AGAIN the same
-- WHY   A list of jobs must not carry their payloads out of Redis.
local jobs, tries = unpack(KEYS)
local out, bytes = {}, 0
for i = 1, #ARGV do
  if bytes >= most then break end
  local body = call('HGET', jobs, ARGV[i])
  bytes = bytes + (body and #body or 0)
  local header = body and match(body, '^[^\n]*') or ''
  out[#out + 1] = string.sub(header, 1, 1000)
  out[#out + 1] = body and math.max(#body - #header - 1, 0) or -1
  out[#out + 1] = call('HGET', tries, ARGV[i]) or ''
end
return {'OK', int(ms), out}
