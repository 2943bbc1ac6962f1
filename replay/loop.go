package replay

import (
	"errors"
	"io"
	"math"

	"reprise/trace"
)

// A Loop reads the rows of a workload again and again. Each round is later than
// the one before it by a period, and its parents are its own. With Blocks it has blocks of
// its own as well, so that its prompts are new to a
// server's cache as those of the first round were; within a round they share what
// they share in the workload. Sessions and users keep their ids.
type Loop struct {
	Open     func() (trace.Reader[trace.Request], error) // from the first row
	Rows     int64                                       // in a round, at least 1
	PeriodNS int64                                       // see [Period]
	Rounds   int64                                       // 0 is without end
	// Blocks is what block ids rise by with each round: one more than the
	// greatest. 0 has every round send the same prompts.
	Blocks uint64

	src   trace.Reader[trace.Request]
	round int64
	row   int64
}

// Period returns the time from the start of one round to that of the next, in
// nanoseconds: the span of the arrivals plus one mean gap, so that the rate is the same
// throughout. It is a second when all rows arrive at once.
func Period(firstNS, lastNS, rows int64) int64 {
	span := lastNS - firstNS
	if rows < 2 || span <= 0 {
		return 1e9
	}
	return span + max(span/(rows-1), 1)
}

var (
	errLoop     = errors.New("replay: a loop takes rows, a period and less than 2^31 rounds")
	errLoopRows = errors.New("replay: the workload has not as many rows as a round of the loop")
)

// Read implements trace.Reader.
func (l *Loop) Read(rows []trace.Request) (int, error) {
	if l.Rows < 1 || l.PeriodNS < 1 || l.Rounds < 0 || l.round > math.MaxInt32 {
		return 0, errLoop
	}
	for l.Rounds == 0 || l.round < l.Rounds {
		if l.src == nil {
			src, err := l.Open()
			if err != nil {
				return 0, err
			}
			l.src = src
		}
		n, err := l.src.Read(rows)
		for i := range rows[:n] {
			l.shift(&rows[i])
		}
		l.row += int64(n)
		switch {
		case err == io.EOF && l.row == l.Rows:
			l.src, l.row, err = nil, 0, nil
			l.round++
		case err == io.EOF || l.row > l.Rows:
			return n, errLoopRows
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}

func (l *Loop) shift(r *trace.Request) {
	r.ArrivalNS += l.round * l.PeriodNS
	for i := range r.Parents {
		r.Parents[i] += l.round * l.Rows
	}
	if l.Blocks == 0 || l.round == 0 {
		return
	}
	for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
		for i := range ids {
			ids[i] += uint64(l.round) * l.Blocks
		}
	}
}

// Origin makes an [Options].Origin for a loop of so many rows a round. row maps the
// number of a row in a round to its number in the workload.
func Origin(rows int64, row func(int64) int64) func(id int64) (int64, int32) {
	return func(id int64) (int64, int32) { return row(id % rows), int32(id / rows) }
}
