package fidelity

import "reprise/trace/sample"

// A lengthPair is the input and the output length of a request.
type lengthPair struct{ in, out int32 }

// scatter hashes a number for sampling.
func scatter(z uint64) uint64 { return sample.Mix64(z + sample.Golden) }

// inSample tells whether a hash is in a sample of one in 2^shift.
func inSample(hash uint64, shift uint) bool { return shift == 0 || hash>>(64-shift) == 0 }

func (p lengthPair) hash() uint64 { return scatter(uint64(uint32(p.in))<<32 | uint64(uint32(p.out))) }

// A pairTally counts distinct pairs of lengths: requests that count, and 0 for
// a pair that only the history has. Above limit pairs it keeps those whose hash
// begins with shift zero bits, and gives up half of them as often as needed.
type pairTally struct {
	limit int
	shift uint
	n     map[lengthPair]int64
}

func (c *pairTally) add(p lengthPair, counted bool) {
	if !inSample(p.hash(), c.shift) {
		return
	}
	var one int64
	if counted {
		one = 1
	}
	c.n[p] += one
	for len(c.n) > c.limit {
		c.shift++
		for p := range c.n {
			if !inSample(p.hash(), c.shift) {
				delete(c.n, p)
			}
		}
	}
}

// A sampledTuple is what is correlated of a request.
type sampledTuple struct {
	row                 int64
	in, out, hit, fresh int32
}

// A tupleSample keeps requests; above limit those whose hashed row number begins
// with shift zero bits, as [pairTally] does.
type tupleSample struct {
	limit int
	shift uint
	rows  []sampledTuple
}

func (s *tupleSample) add(r sampledTuple) {
	if !inSample(scatter(uint64(r.row)), s.shift) {
		return
	}
	s.rows = append(s.rows, r)
	for len(s.rows) > s.limit {
		s.shift++
		left := s.rows[:0]
		for _, r := range s.rows {
			if inSample(scatter(uint64(r.row)), s.shift) {
				left = append(left, r)
			}
		}
		s.rows = left
	}
}
