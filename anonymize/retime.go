package anonymize

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/bits"
)

// A retimer replaces instants by others of the same bin, drawn uniformly, so that
// no more of an instant is left than the bin it was in. Turns of a session keep
// their order.
type retimer struct {
	quantum int64 // ns
	end     int64 // ns, of the last bin, which may be a short one; 0 for none
	noise   *bufio.Reader
	last    bySession[int64] // the instant behind the last one that came out
	buf     [8]byte
	err     error
}

func newRetimer(quantum, end int64, noise io.Reader) *retimer {
	return &retimer{quantum: quantum, end: end, noise: bufio.NewReaderSize(noise, 1<<16)}
}

// arrival draws an instant in the bin of ns.
func (t *retimer) arrival(ns int64, session *int64) int64 {
	from := ns - ns%t.quantum
	to := from + t.quantum
	if t.end > 0 {
		to = min(to, max(t.end, ns+1))
	}
	if session != nil {
		from = max(from, t.last.get(*session))
	}
	if from >= to { // a bin cannot hold more turns than it has nanoseconds
		from = to - 1
	}
	at := from + int64(t.uniform(uint64(to-from)))
	if session != nil {
		t.last.set(*session, at+1)
	}
	return at
}

// uniform draws from 0 to n-1. Failures of the source are kept in err.
func (t *retimer) uniform(n uint64) uint64 {
	// Lemire's method: the high half of a product, redrawn where some values
	// would come up more often than others.
	for {
		if _, err := io.ReadFull(t.noise, t.buf[:]); err != nil {
			t.err = err
			return 0
		}
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(t.buf[:]), n)
		if lo >= -n%n {
			return hi
		}
	}
}
