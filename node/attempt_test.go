package node

import (
	"context"
	"testing"

	"github.com/kelpiehq/kelpie/queue"
)

// A Redis that lost its last writes may give the same token out twice.
func TestAnAttemptThatEndsLeavesTheOthersOfItsToken(t *testing.T) {
	t.Parallel()
	r := newRunning()
	lost, current := newAttempt(context.Background(), &queue.Claim{}), newAttempt(context.Background(), &queue.Claim{})
	defer lost.free()
	defer current.free()
	r.add(lost)
	r.add(current)
	r.remove(lost)
	if all := r.all(); len(all) != 1 || all[0] != current || r.len() != 1 {
		t.Errorf("%d attempts run, not the other one alone", r.len())
	}
	r.remove(current)
	if r.len() != 0 {
		t.Errorf("%d attempts run", r.len())
	}
}
