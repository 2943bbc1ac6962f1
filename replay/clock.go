package replay

import (
	"time"

	"reprise/trace/crash"
)

// A clockWatch looks at the clocks each second. Instants are of a monotonic clock,
// which a step of the wall clock does not move; but what servers log is of a wall
// clock, and a machine that was suspended shows it there: the monotonic clock of
// most systems stands still meanwhile. One that goes on, as when only the process
// was stopped, shows as a second that took longer.
type clockWatch struct {
	begun, last time.Time // monotonic
	wall        time.Time // at the beginning
	jump, stall time.Duration

	stop chan struct{}
	done chan struct{}
}

// lookEvery is how often the clocks are looked at.
const lookEvery = time.Second

// begin starts the watch. wall reads the wall clock; nil is that of the machine.
func (c *clockWatch) begin(wall func() time.Time) {
	look := func() (mono, clock time.Time) {
		now := time.Now()
		if wall == nil {
			return now, now.Round(0)
		}
		return now, wall().Round(0)
	}
	c.stop, c.done = make(chan struct{}), make(chan struct{})
	mono, clock := look()
	c.begun, c.last, c.wall = mono, mono, clock
	go func() {
		defer close(c.done)
		defer crash.Caught()
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.look(look())
			case <-c.stop:
				c.look(look())
				return
			}
		}
	}()
}

// look compares the clocks with what they said at the beginning, and with the
// last look.
func (c *clockWatch) look(mono, wall time.Time) {
	off := wall.Sub(c.wall) - mono.Sub(c.begun)
	c.jump = max(c.jump, off, -off)
	c.stall = max(c.stall, mono.Sub(c.last)-lookEvery)
	c.last = mono
}

// end stops the watch. jump is the most that the wall clock was off, from where
// it would have been without a step; stall the longest that a look was overdue.
func (c *clockWatch) end() (jump, stall time.Duration) {
	if c.stop == nil {
		return 0, 0
	}
	close(c.stop)
	<-c.done
	return c.jump, c.stall
}
