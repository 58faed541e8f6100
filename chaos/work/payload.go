package work

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kelpiehq/kelpie/queue"
)

// Kind is the kind of every job of a chaos run. Its payload travels as it is,
// see Seal and Verify.
var Kind = queue.Define[[]byte]("chaos.work")

// Task says what a job's handler does.
type Task struct {
	Op       string        `json:"op"`                 // "<client>/<n>": the call that makes the job
	Run      time.Duration `json:"run"`                // how long an attempt runs, ns
	Acts     []Act         `json:"acts,omitempty"`     // by attempt from 1, the last one for all later ones; none: OK
	Nap      time.Duration `json:"nap,omitempty"`      // of Snooze, ns
	Children int           `json:"children,omitempty"` // of Child
	Pad      string        `json:"pad,omitempty"`      // makes the payload larger
}

// Act is how one attempt ends.
type Act string

// The acts. All but Deaf end early, as cut, when their context does.
const (
	OK      Act = "ok"
	Fail    Act = "fail"
	Panic   Act = "panic"
	Snooze  Act = "snooze"  // for Nap if its fence is a multiple of 4, else OK: the attempt's number does not rise, so the fence must decide
	Discard Act = "discard" // fails for good
	Overrun Act = "overrun" // runs until its context ends, at most a minute
	Deaf    Act = "deaf"    // runs for Run whatever its context says, then ends as OK
	Child   Act = "child"   // enqueues Children jobs, then OK
)

// act returns what the given attempt does.
func (t Task) act(attempt int) Act {
	if len(t.Acts) == 0 {
		return OK
	}
	return t.Acts[min(max(attempt, 1), len(t.Acts))-1]
}

// The seal is the first field of a payload: a checksum of what follows it.
const (
	sealHead = `{"seal":"`
	sealTail = `",`
	sumSize  = 16
)

// Seal makes the payload of a task: one line of JSON.
func (t Task) Seal() ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	rest := text[1:] // behind the brace: a task has always a field
	return append([]byte(sealHead+Sum(rest)+sealTail), rest...), nil
}

// Verify returns the task of a payload, or an error that says why the payload is
// not one that Seal has made.
func Verify(payload []byte) (t Task, err error) {
	seal, ok := bytes.CutPrefix(payload, []byte(sealHead))
	if !ok || len(seal) < sumSize || !bytes.HasPrefix(seal[sumSize:], []byte(sealTail)) {
		return t, errors.New("the payload has no seal")
	}
	rest := seal[sumSize+len(sealTail):]
	if want, got := string(seal[:sumSize]), Sum(rest); got != want {
		return t, fmt.Errorf("the payload's checksum is %s, its seal says %q", got, want)
	}
	if err := json.Unmarshal(payload, &t); err != nil {
		return t, fmt.Errorf("the payload cannot be read: %w", err)
	}
	return t, nil
}

// Sum returns the checksum of a payload: 16 hexadecimal digits.
func Sum(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:sumSize/2])
}
