package cluster

import (
	"errors"

	"github.com/hashicorp/memberlist"
)

// Meta is what a member says of itself. It changes seldom; counters belong
// elsewhere.
type Meta struct {
	Session  string // at most 100 printable ASCII characters; "" if there is none yet
	Version  string // of the program
	HTTP     string // address of its HTTP server, "" if it has none
	Draining bool   // it takes no new work
	RedisOK  bool   // its Redis answers
}

const (
	maxMeta     = memberlist.MetaMaxSize - 1 // memberlist panics above its own limit
	metaVersion = 1

	flagDraining = 1 << 0
	flagRedisOK  = 1 << 1

	tagSession = 1
	tagNode    = 2
	tagHTTP    = 3
	tagVersion = 4
)

var errMeta = errors.New("metadata is not ours or broken")

// encodeMeta writes a version byte, the flags and then tag, length and bytes of
// each field, at most limit bytes in all. The fields are taken in the order of
// the list; one that does not fit any more is left out, and so is one that no
// decoder would take.
func encodeMeta(node string, m Meta, limit int) []byte {
	limit = min(limit, maxMeta)
	if limit < 2 {
		return nil
	}
	var flags byte
	if m.Draining {
		flags |= flagDraining
	}
	if m.RedisOK {
		flags |= flagRedisOK
	}
	b := []byte{metaVersion, flags}
	for _, f := range []struct {
		tag  byte
		text string
	}{{tagSession, m.Session}, {tagNode, node}, {tagHTTP, m.HTTP}, {tagVersion, m.Version}} {
		if f.text == "" || len(f.text) > 255 || !printable(f.text) || len(b)+2+len(f.text) > limit {
			continue
		}
		b = append(append(b, f.tag, byte(len(f.text))), f.text...)
	}
	return b
}

// decodeMeta reads what encodeMeta wrote. Unknown tags are skipped, so that
// later versions may add some; any other surprise is an error, never a panic:
// the bytes come from the network.
func decodeMeta(b []byte) (node string, m Meta, err error) {
	if len(b) < 2 || b[0] != metaVersion {
		return "", Meta{}, errMeta
	}
	m.Draining, m.RedisOK = b[1]&flagDraining != 0, b[1]&flagRedisOK != 0
	for b = b[2:]; len(b) > 0; {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return "", Meta{}, errMeta
		}
		tag, text := b[0], string(b[2:2+int(b[1])])
		b = b[2+len(text):]
		if !printable(text) {
			return "", Meta{}, errMeta
		}
		switch tag {
		case tagSession:
			m.Session = text
		case tagNode:
			node = text
		case tagHTTP:
			m.HTTP = text
		case tagVersion:
			m.Version = text
		}
	}
	return node, m, nil
}
