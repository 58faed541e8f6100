package history

import (
	"testing"
	"testing/quick"
)

func TestAClockTranslatesByThePairThatWasReadFastest(t *testing.T) {
	t.Parallel()
	c := NewClock([]Tick{
		{T: 3_000_000, After: 3_000_100, US: 13_000_050}, // out of order
		{T: 1_000_000, After: 1_000_200, US: 11_000_100},
		{T: 2_000_000, After: 2_900_000, US: 12_800_000}, // Redis was slow: it says little
	})
	for _, at := range []int64{0, 1_000_000, 2_500_000, 4_000_000} {
		us, wrong, ok := c.Redis(at)
		if !ok || us != at+10_000_000 {
			t.Errorf("at %d Redis showed %d, %v", at, us, ok)
		}
		if wrong < 50 || wrong > 60 {
			t.Errorf("that may be wrong by %d, not by half of 100 and a little", wrong)
		}
		if back, _, ok := c.Local(us); !ok || back != at {
			t.Errorf("%d of Redis is %d here, %v", us, back, ok)
		}
	}
}

func TestTheTruthLiesWithinTheError(t *testing.T) {
	t.Parallel()
	const apart = 1_700_000_000_000_000
	f := func(seeds []uint16, at uint32) bool {
		var ticks []Tick
		for i, s := range seeds {
			begin := int64(i) * 100_000
			after := begin + int64(s)
			ticks = append(ticks, Tick{T: begin, After: after, US: apart + begin + int64(s)*int64(i%5)/4})
		}
		c := NewClock(ticks)
		us, wrong, ok := c.Redis(int64(at))
		if !ok {
			return len(ticks) == 0
		}
		if d := us - (apart + int64(at)); d > wrong || -d > wrong {
			return false
		}
		t, wrong, ok := c.Local(apart + int64(at))
		d := t - int64(at)
		return ok && d <= wrong && -d <= wrong
	}
	if err := quick.Check(f, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

func TestTheMonotonicClockDoesNotGoBack(t *testing.T) {
	t.Parallel()
	last := Now()
	for range 1000 {
		now := Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

func TestNoPairsAreNoClock(t *testing.T) {
	t.Parallel()
	if _, _, ok := NewClock(nil).Local(5); ok {
		t.Error("a clock without pairs knows the time")
	}
}
