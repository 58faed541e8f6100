package plant

import "slices"

// Bugs returns all of them, in a fixed order.
func Bugs() []Bug { return slices.Concat(settlementBugs(), sessionBugs(), countingBugs(), claimBugs()) }

const (
	exchange = "queue/lua/exchange.lua"
	promote  = "queue/lua/promote.lua"
	reclaim  = "queue/lua/reclaim.lua"
	enqueue  = "queue/lua/enqueue.lua"
)

// settlementBugs let somebody settle or act who may not.
func settlementBugs() []Bug {
	judge := "if held[j] ~= ARGV[i + 1] or seen[id] then"
	return []Bug{{
		Name: "settle-by-id", Says: "a settlement shows the id alone, not its token",
		Scenario: "zombies", Invariants: []string{"settlement"},
		Edits: []Edit{{exchange, judge, "if not held[j] or seen[id] then"}},
	}, {
		Name: "settle-by-fence", Says: "a settlement shows the fence without the session",
		Scenario: "set-back", Invariants: []string{"settlement"},
		Edits: []Edit{{exchange, judge, "if not held[j] or match(held[j], '^%d+') ~= match(ARGV[i + 1], '^%d+') or seen[id] then"}},
	}, {
		Name: "exchange-without-turn", Says: "Redis takes any turn of a session",
		Scenario: "echoes", Invariants: []string{"turns"},
		Edits: []Edit{{exchange, "if holder and not gone and turn <= tonumber(holder) then return {'STALE', int(ms)} end\n", ""}},
	}, {
		Name: "no-roll-call", Says: "a node never compares what it holds with what it runs",
		Scenario: "echoes", Invariants: []string{"settled"},
		Edits: []Edit{{"node/report.go", "	call, cancel := context.WithTimeout(ctx, 2*callTimeout)\n",
			"	e.barrier, e.uncalled = false, 0\n	e.rollCall.Store(false)\n	if ctx != nil {\n		return\n	}\n	call, cancel := context.WithTimeout(ctx, 2*callTimeout)\n"}},
	}, {
		Name: "break-unnoticed", Says: "a node calls no roll after a break of its connections that no call met",
		Scenario: "forgotten", Invariants: []string{"settled"},
		Edits: []Edit{{"node/heart.go", "	in.reconnected()\n", ""}},
	}, {
		Name: "enqueue-under-a-new-id", Says: "an enqueue whose reply was lost is repeated under a new id",
		Scenario: "echoes", Invariants: []string{"phantom"},
		Edits: []Edit{
			{"queue/lane.go", "		r, err := l.round(ctx, batch[0].script, args, replicas, unknown)\n",
				"		if unknown && batch[0].script == enqueueScript {\n			l.turn++\n			args[1] = l.turn\n			for i := 3; i < len(args); i += 7 {\n				args[i] = uuid.NewString()\n			}\n		}\n" +
					"		r, err := l.round(ctx, batch[0].script, args, replicas, unknown)\n"},
			{"queue/lane.go", "	\"github.com/redis/go-redis/v9\"\n", "	\"github.com/google/uuid\"\n	\"github.com/redis/go-redis/v9\"\n"},
		},
	}, {
		Name: "no-seen-table", Says: "twins in one batch are not noticed",
		Scenario: "retries", Invariants: []string{"place", "phantom"},
		Edits: []Edit{{enqueue, "if seen[id] or (", "if ("}},
	}}
}

// sessionBugs take the living for dead, or the dead for living.
func sessionBugs() []Bug {
	const fencedByEpoch = "if tonumber(m[1] or 0) > tonumber(ARGV[1]) then return {'FENCED', int(ms), m[1]} end\n"
	return []Bug{{
		Name: "no-gone-mark", Says: "reclaim moves the jobs of a session without marking it gone",
		Scenario: "last-words", Invariants: []string{"gone"},
		Edits: []Edit{{reclaim, "if mark then call('HSET', holders, session, 'gone ' .. int(ms)) end\n", ""}},
	}, {
		Name: "sessions-before-holders", Says: "the audit reads the sessions first, and takes every holder that is not among them for dead",
		Scenario: "newcomers", Invariants: []string{"condemned"},
		Edits: []Edit{
			{"sweeper/survey.go", "	holders := a.holders(ctx, queues)\n	if len(holders) == 0 {\n		return\n	}\n	sessions, condemned, err := a.s.o.Space.Sessions(ctx)\n",
				"	sessions, condemned, err := a.s.o.Space.Sessions(ctx)\n	holders := a.holders(ctx, queues)\n	if len(holders) == 0 {\n		return\n	}\n"},
			{"sweeper/survey.go", "	case condemned:\n", "	case condemned || !lives:\n"},
		},
	}, {
		Name: "condemned-by-age", Says: "silence is the age of a beat by Redis's clock, to whichever node looks",
		Scenario: "outage", Invariants: []string{"condemned"},
		Edits: []Edit{
			{"sweeper/judge.go", "	if s.sweeps() {\n		candidates", "	if s.sweeps() || true {\n		candidates"},
			{"sweeper/watch.go", "	return s.beat, max(0, w.last.Sub(s.since)), true\n",
				"	newest := s.beat\n	for _, other := range w.seen {\n		newest = max(newest, other.beat)\n	}\n	return s.beat, time.Duration(newest-s.beat) * time.Millisecond, true\n"},
		},
	}, {
		Name: "no-epoch", Says: "a queue moves for any sweeper",
		Scenario: "last-words", Invariants: []string{"epoch"},
		Edits: []Edit{
			{promote, fencedByEpoch, ""},
			{reclaim, "if tonumber(m[1] or 0) > tonumber(epoch) then return {'FENCED', int(ms), m[1]} end\n", ""},
			{"queue/lua/trim.lua", fencedByEpoch, ""},
			{"queue/lua/repair.lua", fencedByEpoch, ""},
		},
	}, {
		Name: "no-opener", Says: "an exchange does not begin with a write that a full Redis lets through",
		Scenario: "full", Invariants: []string{"full"},
		Edits: []Edit{{exchange, "call('ZREM', waiting, '') -- opener: what follows may be written when Redis is full\n", ""}},
	}}
}

// countingBugs lose count of attempts or of time.
func countingBugs() []Bug {
	return []Bug{{
		Name: "hand-back-spends", Says: "a job that is handed back has spent an attempt",
		Scenario: "hand-over", Invariants: []string{"graceful"},
		Edits: []Edit{{"queue/settle.go", "return &Settlement{Verb: VerbRelease, claim: c} }",
			"return &Settlement{Verb: VerbRelease, claim: c, tries: c.tries.failed(\"node\", ReasonFailed, \"handed back\")} }"}},
	}, {
		Name: "attempts-uncounted", Says: "a failure does not count",
		Scenario: "retries", Invariants: []string{"attempts"},
		Edits: []Edit{{"queue/tries.go", "	t.spent, t.count, t.unserved = attempt, t.count+1, 0\n	return t.String()",
			"	t.count, t.unserved = t.count+1, 0\n	return t.String()"}},
	}, {
		Name: "promoted-by-the-nodes-clock", Says: "what is due is decided by the sweeper's own clock", Skew: true,
		Scenario: "ahead", Invariants: []string{"early"},
		Edits: []Edit{
			{promote, "'(' .. int(ms + 1)", "'(' .. int(ARGV[3] + 1)"},
			{"queue/sweep.go", "[]any{epoch, PromoteBatch})", "[]any{epoch, PromoteBatch, time.Now().UnixMilli()})"},
		},
	}, {
		Name: "old-place-first", Says: "promote takes a job out of its old place before it stands in the new one, and may break in between",
		Scenario: "due-together", Invariants: []string{"place", "lost"},
		Edits: []Edit{{promote, "  call('ZADD', waiting, unpack(ranks))\n  call('ZREM', delayed, unpack(ids))\n",
			"  call('ZREM', delayed, unpack(ids))\n  if us % 10 == 0 then error('torn') end\n  call('ZADD', waiting, unpack(ranks))\n"}},
	}}
}

// claimBugs hand jobs out as naive consumers do.
func claimBugs() []Bug {
	const (
		asked   = "local session, turn, k = ARGV[1], tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), 1000)\n"
		listed  = "local listed = {}\nfor id in string.gmatch(ARGV[3], ' (%S+)') do listed[#listed + 1] = id end\nlocal session, turn, k = ARGV[1], tonumber(ARGV[2]), #listed\n"
		wanted  = "local wanted, budget, risky = call('ZRANGE', waiting, 0, k - 1), "
		given   = "local wanted, budget, risky = listed, "
		inGo    = "	args = append(args, s.id, t.n, max(x.Want, 0), "
		inGoNow = "	args = append(args, s.id, t.n, \"0 \"+strings.Join(ids, \" \"), "
		imports = "import (\n	\"context\"\n	\"errors\"\n	\"fmt\"\n"
		strings = "import (\n	\"context\"\n	\"errors\"\n	\"fmt\"\n	\"strings\"\n"
	)
	fromGo := func(read string) []Edit {
		return []Edit{{exchange, asked, listed}, {exchange, wanted, given},
			{"queue/exchange.go", imports, strings}, {"queue/exchange.go", inGo, read + inGoNow}}
	}
	return []Bug{{
		Name: "blocking-pop", Says: "jobs are handed out by a blocking pop",
		Scenario: "deaf", Invariants: []string{"place", "lost"},
		Edits: fromGo("	var ids []string\n	for len(ids) < x.Want {\n		got, err := s.c.rdb.BZPopMin(ctx, time.Millisecond, s.c.keys.of(queue, \"waiting\")).Result()\n		if err != nil {\n			break\n		}\n		ids = append(ids, fmt.Sprint(got.Member))\n	}\n"),
	}, {
		Name: "claim-in-two-steps", Says: "a claim reads the head of the queue first and takes it later",
		Scenario: "due-together", Invariants: []string{"settlement"},
		Edits: fromGo("	var ids []string\n	if x.Want > 0 {\n		ids, _ = s.c.rdb.ZRange(ctx, s.c.keys.of(queue, \"waiting\"), 0, int64(x.Want)-1).Result()\n	}\n"),
	}, {
		Name: "no-active-set", Says: "a claim takes a job out of waiting and notes nowhere who runs it",
		Scenario: "deaf", Invariants: []string{"place", "lost"},
		Edits: []Edit{
			{exchange, "  many('HSET', active, tokens) many('ZADD', dead, spentout)\n", "  many('ZADD', dead, spentout)\n"},
			{exchange, "if held[j] ~= ARGV[i + 1] or seen[id] then", "if seen[id] then"},
		},
	}}
}
