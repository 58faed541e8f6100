package work

import (
	"strings"
	"testing"
	"time"
)

func TestAPayloadIsSealedAndVerified(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]Task{
		"the smallest one": {Op: "p1/1"},
		"one with all fields": {
			Op: "p1/2", Run: time.Second, Acts: []Act{Fail, OK}, Nap: time.Minute, Children: 3, Pad: strings.Repeat("<\"é\n", 100),
		},
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := task.Seal()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Verify(payload)
			if err != nil || got.Op != task.Op || got.Run != task.Run || len(got.Acts) != len(task.Acts) || got.Pad != task.Pad {
				t.Errorf("Verify(%s) = %+v, %v", payload, got, err)
			}
		})
	}
}

func TestAChangedPayloadIsFound(t *testing.T) {
	t.Parallel()
	payload, err := Task{Op: "p1/1", Run: time.Second, Acts: []Act{Panic}}.Seal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		changed := append([]byte(nil), payload...)
		changed[i] ^= 1
		if _, err := Verify(changed); err == nil {
			t.Errorf("a changed byte %d was not noticed: %s", i, changed)
		}
		if _, err := Verify(payload[:i]); err == nil {
			t.Errorf("a payload cut to %d bytes was not noticed", i)
		}
		if Sum(changed) == Sum(payload) {
			t.Errorf("a changed byte %d leaves the checksum as it was", i)
		}
	}
	if _, err := Verify(append(payload, ' ')); err == nil {
		t.Error("a space behind the payload was not noticed")
	}
}

func TestAnAttemptHasItsAct(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		acts    []Act
		attempt int
		want    Act
	}{
		"without acts it succeeds":             {nil, 3, OK},
		"the first one has the first":          {[]Act{Fail, Panic}, 1, Fail},
		"the second one has the second":        {[]Act{Fail, Panic}, 2, Panic},
		"later ones have the last":             {[]Act{Fail, Panic}, 9, Panic},
		"a number that cannot be is the first": {[]Act{Fail, Panic}, 0, Fail},
	} {
		if got := (Task{Acts: tt.acts}).act(tt.attempt); got != tt.want {
			t.Errorf("%s: act %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	payload, err := Task{Op: "p1/1"}.Seal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add([]byte(sealHead))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, err := Verify(payload); err == nil && !strings.HasPrefix(string(payload), sealHead) {
			t.Errorf("accepted %q", payload)
		}
	})
}
