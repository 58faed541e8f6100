package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// stateParts are what the model and Redis must agree on after every action.
var stateParts = []string{"waiting", "delayed", "active", "dead", "completed", "cancelled", "bodies", "tries", "cancels", "holders", "senders", "sessions", "condemned", "meta"}

var metaFields = []string{"enqueued", "completed", "failed", "retried", "stalled", "dead", "cancelled", "stale", "claimed", "promoted", "revived"}

// state is the model as text.
func (m *model) state() map[string]string {
	out := map[string]string{"waiting": strings.Join(m.sorted(Waiting), " ")}
	for _, p := range []State{Delayed, Dead, Completed, Cancelled} {
		var list []string
		for _, id := range m.sorted(p) {
			score := float64(m.jobs[id].score)
			if p == Delayed {
				score += float64(m.jobs[id].class) / 16
			}
			list = append(list, fmt.Sprintf("%s@%.4f", id, score))
		}
		out[string(p)] = strings.Join(list, " ")
	}
	var active, bodies, tried, marked []string
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		kept := "whole"
		if j.header {
			kept = "header"
		}
		bodies = append(bodies, id+"="+kept)
		if j.place == Active {
			active = append(active, id+"="+j.token)
		}
		if j.marked {
			marked = append(marked, id)
		}
		if j.tried {
			tried = append(tried, fmt.Sprintf("%s=%d %d %d %d", id, j.spent, j.stalls, j.unserved, j.count))
		}
	}
	out["active"], out["bodies"], out["tries"], out["cancels"] = strings.Join(active, " "), strings.Join(bodies, " "), strings.Join(tried, ", "), strings.Join(marked, " ")
	out["holders"], out["senders"], out["sessions"], out["condemned"] = m.holding(), m.sending(), text2(m.beats), strings.Join(slices.Sorted(maps.Keys(m.doomed)), " ")
	out["meta"] = fmt.Sprint("sequence ", m.sequence, " head ", m.head, " fence ", m.fence, " epoch ", m.epoch)
	for _, f := range metaFields {
		out["meta"] += fmt.Sprint(" ", f, " ", m.count[f])
	}
	return out
}

func (m *model) holding() string {
	var list []string
	for _, s := range slices.Sorted(maps.Keys(m.holders)) {
		switch turn := m.holders[s]; {
		case turn < 0:
			list = append(list, fmt.Sprint(s, "=gone ", m.gone[s]))
		case turn > 0:
			list = append(list, fmt.Sprint(s, "=", turn))
		}
	}
	return strings.Join(list, " ")
}

func (m *model) sending() string {
	var list []string
	for _, s := range slices.Sorted(maps.Keys(m.senders)) {
		list = append(list, fmt.Sprintf("%s=%d %d %s", s, m.senders[s].turn, m.senders[s].ms, m.senders[s].outcomes))
	}
	return strings.Join(list, ", ")
}

func text2(m map[string]int64) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, fmt.Sprint(k, "=", m[k]))
	}
	return strings.Join(list, " ")
}

// readState is Redis as the same text, read in one round trip.
func readState(ctx context.Context, s *space) (map[string]string, error) {
	pipe := s.rdb.Pipeline()
	sets := map[string]*redis.ZSliceCmd{}
	for _, p := range places {
		sets[p] = pipe.ZRangeWithScores(ctx, s.key(p), 0, -1)
	}
	for _, p := range []string{"sessions", "condemned"} {
		sets[p] = pipe.ZRangeWithScores(ctx, s.c.keys.whole(p), 0, -1)
	}
	hashes := map[string]*redis.MapStringStringCmd{}
	for _, h := range []string{"jobs", "tries", "active", "holders", "senders", "meta"} {
		hashes[h] = pipe.HGetAll(ctx, s.key(h))
	}
	marks := pipe.SMembers(ctx, s.key("cancels"))
	wake, poke := pipe.LLen(ctx, s.key("wake")), pipe.LLen(ctx, s.key("poke"))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := map[string]string{"tokens": fmt.Sprint(wake.Val(), " ", poke.Val())}
	for p, z := range sets {
		out[p] = setText(p, z.Val())
	}
	out["active"] = hashText(hashes["active"].Val(), " ", func(v string) string { return v })
	out["holders"] = hashText(hashes["holders"].Val(), " ", func(v string) string { return v })
	out["senders"] = hashText(hashes["senders"].Val(), ", ", func(v string) string { return v })
	out["tries"] = hashText(hashes["tries"].Val(), ", ", func(v string) string { line, _, _ := strings.Cut(v, "\n"); return line })
	out["bodies"] = hashText(hashes["jobs"].Val(), " ", func(v string) string {
		if strings.HasSuffix(v, "\n") {
			return "header"
		}
		return "whole"
	})
	out["cancels"] = strings.Join(slices.Sorted(slices.Values(marks.Val())), " ")
	meta := hashes["meta"].Val()
	for _, f := range append([]string{"sequence", "head", "fence", "epoch"}, metaFields...) {
		out["meta"] += " " + f + " " + or(meta[f], "0")
	}
	out["meta"] = strings.TrimSpace(out["meta"])
	return out, nil
}

func setText(place string, list []redis.Z) string {
	var out []string
	for _, z := range list {
		id := z.Member.(string)
		switch place {
		case "waiting", "condemned":
			out = append(out, id)
		case "sessions":
			out = append(out, fmt.Sprintf("%s=%.0f", id, z.Score))
		default:
			out = append(out, fmt.Sprintf("%s@%.4f", id, z.Score))
		}
	}
	if place == "sessions" || place == "condemned" {
		slices.Sort(out)
	}
	return strings.Join(out, " ")
}

func hashText(h map[string]string, between string, f func(string) string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		out = append(out, k+"="+f(h[k]))
	}
	return strings.Join(out, between)
}
