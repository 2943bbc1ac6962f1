package replay

import (
	"io"
	"time"

	"reprise/trace"
)

// more returns the next row of the workload, which may read some; nil is its
// end. The batch is a new one each time: its rows may be held.
func (f *feeder) more() *trace.Request {
	for len(f.batch) == 0 && !f.eof {
		batch := make([]trace.Request, 128)
		n, err := f.rows.Read(batch)
		f.batch = batch[:n]
		if err != nil {
			f.eof = true
			if err != io.EOF {
				f.err = err
			}
		}
	}
	if len(f.batch) == 0 {
		return nil
	}
	return &f.batch[0]
}

// readAt says from when on the next row must be read: when it is due itself, or
// a child behind it of a row that is over. It is false at the end of the
// workload and at the bound on held rows.
func (f *feeder) readAt() (time.Duration, bool) {
	row := f.more()
	if row == nil {
		return 0, false
	}
	if f.closed != nil {
		return 0, f.closed.takes() && !f.past(f.now())
	}
	due := f.opt.scaled(row.ArrivalNS)
	if f.opt.Arrivals != nil {
		due = f.at
	}
	due += f.opt.Resume.shift()
	if f.kin != nil {
		if d, ok := f.kin.want(f.next); ok {
			due = min(due, d)
		}
	}
	if f.opt.Duration > 0 && due >= f.opt.Duration {
		return 0, false
	}
	if f.full() {
		f.filled = f.filled || due-f.opt.Ahead <= f.now()
		return 0, false
	}
	return due - f.opt.Ahead, true
}

// full says that no further row may be held. One always may.
func (f *feeder) full() bool {
	n := len(f.timed) + f.waiting()
	return n > 0 && (f.bytes >= f.opt.holdLimit() || n >= heldRows)
}

// read takes the next row of the workload.
func (f *feeder) read() {
	h := &held{id: f.next, row: &f.batch[0]}
	f.batch = f.batch[1:]
	f.next++
	if f.kin == nil {
		f.settle(h)
		return
	}
	one := *h.row // one that waits must not keep its batch in memory
	h.row, h.size = &one, rowBytes(&one)
	f.bytes += h.size
	f.kin.join(h)
	f.schedule()
	if f.filled && h.left == 0 && h.due < f.now() {
		f.readLate++
	}
	f.filled = false
}
