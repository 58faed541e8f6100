package queue

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/redis/go-redis/v9"
)

// entry is one id in active.
type entry struct{ id, token, session string }

// cutToken splits "<fence> <session>".
func cutToken(token string) (fence, session string, err error) {
	fence, session, ok := strings.Cut(token, " ")
	if !ok {
		return "", "", errToken
	}
	return fence, session, nil
}

// active walks the active jobs of a queue. An id that moves meanwhile may be
// seen twice or not at all; one that stays is seen.
func (c *Client) active(ctx context.Context, queue string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for cursor := uint64(0); ; {
			page, next, err := c.rdb.HScan(ctx, c.keys.of(queue, "active"), cursor, "", 1000).Result()
			if err != nil {
				yield(entry{}, wrap("scan", queue, "", err))
				return
			}
			for i := 0; i+1 < len(page); i += 2 {
				_, session, _ := cutToken(page[i+1])
				if !yield(entry{page[i], page[i+1], session}, nil) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

func isNil(err error) bool { return errors.Is(err, redis.Nil) }
