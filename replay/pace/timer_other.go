//go:build !linux

package pace

import "time"

// lead is how long before the due time the sleep ends: Go's timers are up to a
// millisecond late, more where the system joins wake-ups to save power. Precision costs
// up to a whole core here, which other goroutines have whenever they can run, but for
// the last 60 µs.
const lead = 1500 * time.Microsecond

// A Timer is the most precise Pacer that needs no privileges: where there is no
// timerfd, a sleep that ends 1.5 ms early, then yields, then a spin of at most 60 µs.
// It is for one goroutine at a time.
type Timer struct{ sleeper }

// New returns a Timer whose due times count from start, which must come from time.Now
// (it may be moved by Add) and may lie in the future. Close it after use.
func New(start time.Time) (*Timer, error) {
	if !hasMonotonic(start) {
		return nil, errNoMonotonic
	}
	return &Timer{sleeper{start: start, lead: lead}}, nil
}

// Close releases the timer.
func (t *Timer) Close() error { return nil }
