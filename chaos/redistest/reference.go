package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// referenceConns is how many connections the reference uses.
const referenceConns = 50

var referenceScript = redis.NewScript(`
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('LPUSH', KEYS[3], ARGV[1])
return 1`)

// Reference measures this server on this machine at this moment: calls a second
// of one EVALSHA that does ZADD, HSET and LPUSH with a payload of 200 bytes, from
// 50 connections. Absolute throughput on a shared machine is noise; the ratio to
// this figure, taken in the same run, is not.
func Reference(b testing.TB, addr string, calls int) (perSecond float64) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, PoolSize: referenceConns, MinIdleConns: referenceConns, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	if err := referenceScript.Load(ctx, rdb).Err(); err != nil {
		b.Fatal(err)
	}
	keys := []string{"reference:z", "reference:h", "reference:l"}
	defer rdb.Del(ctx, keys...)
	payload := strings.Repeat("x", 200)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for range referenceConns {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(calls) {
					return
				}
				id := fmt.Sprintf("%036d", i)
				if err := rdb.EvalSha(ctx, referenceScript.Hash(), keys, id, i, payload).Err(); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
	return float64(calls) / time.Since(began).Seconds()
}
