package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"
)

func TestWhatDoesNotFitIsLeftOutInOrder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for name, tt := range map[string]struct {
		node  string
		in    Meta
		want  Meta
		node2 string
	}{
		"all of it fits":                 {"n", Meta{"s", "v1", "h:1", true, false}, Meta{"s", "v1", "h:1", true, false}, "n"},
		"the version goes first":         {"n", Meta{long, long, long, false, true}, Meta{long, "", long, false, true}, "n"},
		"then the HTTP address":          {long, Meta{long, long, long, true, true}, Meta{long, "", "", true, true}, long},
		"a short version still finds it": {long, Meta{long, "v1", long, true, true}, Meta{long, "v1", "", true, true}, long},
		"then the node name":             {strings.Repeat("n", 255), Meta{strings.Repeat("s", 255), "", "", true, true}, Meta{strings.Repeat("s", 255), "", "", true, true}, ""},
		"no field is over 255 bytes":     {"n", Meta{"s", strings.Repeat("v", 256), "", false, false}, Meta{Session: "s"}, "n"},
		"nor has it strange characters":  {"n", Meta{"s\x00", "v 1", "é", false, false}, Meta{}, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := encodeMeta(tt.node, tt.in, memberlist.MetaMaxSize)
			node, m, err := decodeMeta(b)
			if err != nil || node != tt.node2 || m != tt.want || len(b) >= memberlist.MetaMaxSize {
				t.Errorf("%d bytes, %q, %+v, %v", len(b), node, m, err)
			}
		})
	}
}

func TestMetadataSurvivesTheWire(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`[!-~]{0,100}`)
	rapid.Check(t, func(t *rapid.T) {
		node := text.Draw(t, "node")
		in := Meta{text.Draw(t, "session"), text.Draw(t, "version"), text.Draw(t, "http"), rapid.Bool().Draw(t, "draining"), rapid.Bool().Draw(t, "redis")}
		b := encodeMeta(node, in, memberlist.MetaMaxSize)
		gotNode, got, err := decodeMeta(b)
		if err != nil || gotNode != node || got != in {
			t.Fatalf("%q %+v became %q %+v (%v)", node, in, gotNode, got, err)
		}
		later := append(b, 77, 3, 'n', 'e', 'w') // a field of a later version
		if _, same, err := decodeMeta(later); err != nil || same != in {
			t.Fatalf("an unknown field: %+v, %v", same, err)
		}
		limit := rapid.IntRange(-1, 600).Draw(t, "limit")
		if n := len(encodeMeta(node, in, limit)); n > max(limit, 0) || n >= memberlist.MetaMaxSize {
			t.Fatalf("%d bytes at limit %d", n, limit)
		}
	})
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{metaVersion})
	f.Add([]byte{metaVersion, 0, tagSession, 200, 'x'})
	f.Add([]byte{metaVersion, 0, tagSession})
	f.Add([]byte(`{"session":"json"}`))
	f.Add(encodeMeta("n1", Meta{"s", "v", "h:1", true, true}, 512))
	f.Fuzz(func(t *testing.T, b []byte) {
		node, m, err := decodeMeta(b)
		if err != nil {
			if node != "" || m != (Meta{}) {
				t.Fatalf("half of it was taken: %q %+v", node, m)
			}
			return
		}
		again := encodeMeta(node, m, 512)
		if len(again) >= memberlist.MetaMaxSize {
			t.Fatalf("%d bytes", len(again))
		}
		if _, _, err := decodeMeta(again); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{kindLeave, 0, 9, 'x'})
	f.Add([]byte{kindDirect, 0xff, 0xff})
	f.Add(encodeMessage(kindDirect, "n1-abc", []byte("hello")))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, from, msg, err := decodeMessage(b)
		if err == nil && !bytes.Equal(encodeMessage(kind, from, msg), b) {
			t.Fatalf("%q became %c %q %q", b, kind, from, msg)
		}
	})
}
