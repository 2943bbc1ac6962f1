package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockWatch(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name        string
		mono, wall  []time.Duration // of each look, from the beginning
		jump, stall time.Duration
	}{
		{"steady", []time.Duration{s, 2 * s, 2500 * time.Millisecond}, []time.Duration{s, 2 * s, 2500 * time.Millisecond}, 0, 0},
		{"a step forward", []time.Duration{s, 2 * s, 3 * s}, []time.Duration{s, 62 * s, 63 * s}, 60 * s, 0},
		{"a step back, and forward again", []time.Duration{s, 2 * s, 3 * s}, []time.Duration{s, -8 * s, 3 * s}, 10 * s, 0},
		{"two steps that add up", []time.Duration{s, 2 * s, 3 * s}, []time.Duration{2 * s, 4 * s, 5 * s}, 2 * s, 0},
		{"stopped", []time.Duration{s, 31 * s, 32 * s}, []time.Duration{s, 31 * s, 32 * s}, 0, 29 * s},
		{"suspended", []time.Duration{s, 2 * s, 3 * s}, []time.Duration{s, 3602 * s, 3603 * s}, 3600 * s, 0},
	} {
		var w clockWatch
		start := time.Now()
		w.begun, w.last, w.wall = start, start, start.Round(0)
		for i := range c.mono {
			w.look(start.Add(c.mono[i]), start.Round(0).Add(c.wall[i]))
		}
		if w.jump != c.jump || w.stall != c.stall {
			t.Errorf("%s: jump %v, stall %v", c.name, w.jump, w.stall)
		}
	}
}

// The clocks of a run are watched to its end.
func TestRunNoticesAClockJump(t *testing.T) {
	for _, step := range []time.Duration{0, time.Minute, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			o := Options{wall: func() time.Time {
				now := time.Now()
				if now.Sub(begin) > 5*time.Second {
					now = now.Add(step)
				}
				return now
			}}
			run, _ := (&fake{}).play(t, t.Context(), o, workload(every(time.Second, 7)...))
			if run.ClockJumpNS != int64(step.Abs()) || run.StalledNS != 0 {
				t.Errorf("a step of %v: run %+v", step, run)
			}
		})
	}
}
