package life

import (
	"testing"

	"github.com/kelpiehq/kelpie/chaos/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
