package sweeper

import (
	"strings"
	"testing"
	"time"
)

func TestNewNamesAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Silence: -time.Second, Lease: -2 * time.Second})
	if err == nil {
		t.Fatal("was allowed")
	}
	for _, want := range []string{"space", "poke", "lock", "watch", "session", "silence -1s", "lease -2s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %s in:\n%v", want, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	if o.Silence != 2*time.Second || o.Lease != 15*time.Second || o.Held() != "" || o.Witness.Testify(t.Context(), "x") {
		t.Errorf("%+v", o)
	}
}
