package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

// When results cannot be written, what is in flight is cut at once: nobody can
// take note of it.
func TestWriterFailsAndNothingIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w := &lateWriter{start: begin, fail: 1}
		f := &fake{hold: func(id int32) time.Duration {
			if id == 0 {
				return time.Second
			}
			return time.Hour
		}}
		run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: Options{Grace: time.Minute}}).Run(t.Context(), reader(workload(every(time.Second, 500)...)), w)
		if took := time.Since(begin); err == nil || run.EndedEarly != errWrite.Error() || run.Requests > 4 || took > 3*time.Second {
			t.Errorf("after %v: error %v, run %+v", took, err, run)
		}
	})
}
