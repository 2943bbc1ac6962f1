package replay

import (
	"runtime"
	"time"

	"reprise/replay/pace"
)

// newPacer makes the pacer that the options and the Runner want.
func (r *Runner) newPacer(start time.Time) (pace.Pacer, error) {
	switch {
	case r.Pacer != nil:
		return r.Pacer(start)
	case r.Realtime:
		return pace.NewRealtime(start)
	}
	return pace.NewThread(start)
}

// SpareProcessor lets Go run one more thread than there are cores, for the one that
// waits for due times: it then need not take another's place when it wakes. A
// program calls it before its runs, and what it returns when they are over;
// Run.Cores must be noted before.
func SpareProcessor() (undo func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + 1)
	return func() { runtime.GOMAXPROCS(before) }
}
