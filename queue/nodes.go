package queue

import (
	"context"
	"encoding/json"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// NodeInfo is what a node says of itself, and what Redis adds.
type NodeInfo struct {
	Name     string         `json:"name"`
	Session  string         `json:"session"`
	Version  string         `json:"version"`
	Gossip   string         `json:"gossip"` // address, "" without gossip
	HTTP     string         `json:"http"`   // address, "" if off
	Queues   map[string]int `json:"queues"` // with their weights
	Workers  int            `json:"workers"`
	Active   int            `json:"active"`
	Draining bool           `json:"draining"`
	Since    time.Time      `json:"since"`
	Members  []string       `json:"members"` // that its gossip sees, itself included

	Sweeper      bool          `json:"-"` // it holds the lock
	Epoch        int64         `json:"-"` // of the last term, with Sweeper
	HeartbeatAge time.Duration `json:"-"` // by Redis's clock
}

// Nodes returns the live sessions by name. A session that has not described
// itself yet has only its name.
func (c *Client) Nodes(ctx context.Context) ([]NodeInfo, error) {
	pipe := c.rdb.TxPipeline()
	beats := pipe.ZRangeWithScores(ctx, c.keys.whole("sessions"), 0, -1)
	infos := pipe.HGetAll(ctx, c.keys.whole("nodes"))
	lock, epoch, now := pipe.Get(ctx, c.keys.whole("sweeper")), pipe.Get(ctx, c.keys.whole("epoch")), pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil && !isNil(err) && !isWrongType(lock.Err()) {
		return nil, wrap("list nodes", "", "", err)
	}
	out := make([]NodeInfo, 0, len(beats.Val()))
	for _, z := range beats.Val() {
		out = append(out, nodeInfo(z, infos.Val(), lock.Val(), epoch.Val(), now.Val()))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name+out[i].Session < out[j].Name+out[j].Session })
	return out, nil
}

func nodeInfo(z redis.Z, infos map[string]string, lock, epoch string, now time.Time) NodeInfo {
	session := z.Member.(string)
	n := NodeInfo{}
	_ = json.Unmarshal([]byte(infos[session]), &n) // what cannot be read stays empty
	n.Session, n.Name = session, or(n.Name, NodeName(session))
	n.HeartbeatAge = max(now.Sub(time.UnixMilli(int64(z.Score))), 0)
	if n.Sweeper = lockHolder(lock) == session; n.Sweeper {
		n.Epoch = parseInt(epoch)
	}
	return n
}

// NodeName returns the node's name in a session id, "<name>-<boot suffix>".
func NodeName(session string) string {
	if i := strings.LastIndexByte(session, '-'); i > 0 {
		return session[:i]
	}
	return session
}

func isWrongType(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// GossipKey returns the key that encrypts gossip, and stores the one offered if
// there is none yet: all nodes of a job space get the same.
func (c *Client) GossipKey(ctx context.Context, offered []byte) ([]byte, error) {
	key := c.keys.whole("gossip")
	if err := c.rdb.SetNX(ctx, key, offered, 0).Err(); err != nil {
		return nil, wrap("gossip key", "", "", err)
	}
	v, err := c.rdb.Get(ctx, key).Bytes()
	return v, wrap("gossip key", "", "", err)
}
