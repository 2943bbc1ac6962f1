package shard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// Merge writes the results of all shards to one file at path, in the order of rounds and
// rows, and what they measured at the servers beside it. It reads them twice, and keeps 16
// bytes of each request, 8 of each turn, and up to 16 KB of a batch of each shard.
func (s *Set) Merge(path string) (result.Run, error) {
	found, err := s.survey()
	if err != nil {
		return result.Run{}, err
	}
	run := s.run(found)
	if err := result.Write(path, run, s.rows()); err != nil {
		return run, err
	}
	return run, s.mergeMetrics(path, &run)
}

// rows reads the rows of all shards in order.
func (s *Set) rows() *unionReader {
	u := &unionReader{shards: s.shards, served: s.servedIndex()}
	var readers []trace.Reader[result.Result]
	for i := range s.shards {
		readers = append(readers, s.shards[i].file.Reader())
	}
	u.side = trace.NewSideBySide(readers, 32, func(_ int, a *result.Result, _ int, b *result.Result) int {
		return a.Key().Compare(b.Key())
	})
	return u
}

// A unionReader reads the rows of all shards.
type unionReader struct {
	side   *trace.SideBySide[result.Result]
	shards []member
	served [][][]int32 // by shard and header, the index of each of its values among those of all
	last   result.RequestKey
	shard  int // that the row that was read last is of
	any    bool
}

// Read implements trace.Reader.
func (u *unionReader) Read(rows []result.Result) (n int, err error) {
	for ; n < len(rows); n++ {
		if rows[n], err = u.next(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// next is the next row of all.
func (u *unionReader) next() (result.Result, error) {
	shard, row, err := u.side.Next()
	if err != nil {
		return result.Result{}, err
	}
	r := *row
	if u.any && r.Key() == u.last {
		return r, fmt.Errorf("%w: row %d was sent by shards %v and %v", ErrNoSet, r.RowID, u.shards[u.shard].share(),
			u.shards[shard].share())
	}
	u.any, u.last, u.shard = true, r.Key(), shard
	for i, at := range r.Served {
		if i < len(u.served[shard]) && at >= 0 && int(at) < len(u.served[shard][i]) {
			r.Served[i] = u.served[shard][i][at]
		}
	}
	return r, nil
}

// A survey is what is to be known of the rows before they are written.
type survey struct {
	lags              []sample.Values // send lag by shard
	released, done    []int64         // of the requests that were sent
	firstDue, lastDue int64
	rows              int64

	turns  int64
	sum    float64
	most   time.Duration
	drifts []time.Duration
	shifts map[result.RequestKey]int64 // by which arrivals of a process moved the rows of a causal run
}

// exactLags is how many send lags of a shard are kept; beyond, quantiles are within 0.1 %.
const exactLags = 1 << 20

// survey reads all rows once.
func (s *Set) survey() (*survey, error) {
	first := &s.shards[0].file.Run
	v := &survey{lags: make([]sample.Values, len(s.shards))}
	for i := range v.lags {
		v.lags[i].Limit = exactLags
	}
	causal := first.Timing == result.Causal && first.Sessions == nil
	if causal && first.Rate != "" {
		v.shifts = map[result.RequestKey]int64{}
	}
	rows := s.rows()
	for {
		r, err := rows.next()
		if err == io.EOF {
			return v, nil
		}
		if err != nil {
			return nil, err
		}
		if v.rows == 0 {
			v.firstDue, v.lastDue = r.DueNS, r.DueNS
		}
		v.firstDue, v.lastDue = min(v.firstDue, r.DueNS), max(v.lastDue, r.DueNS)
		v.rows++
		if r.SentNS != nil {
			v.lags[rows.shard].Add(*r.SentNS - r.DueNS)
		}
		if r.ReleasedNS != nil && r.DoneNS != nil {
			v.released, v.done = append(v.released, *r.ReleasedNS), append(v.done, *r.DoneNS)
		}
		if causal && r.ArrivalNS != nil {
			v.addTurn(&r, first.Speed)
		}
	}
}

// addTurn takes the drift of a row, if it is a turn: see [result.Drift].
func (v *survey) addTurn(r *result.Result, speed float64) {
	plan := *r.ArrivalNS
	if speed != 1 {
		plan = int64(float64(plan) / speed)
	}
	var shift int64
	if v.shifts != nil {
		shift = r.DueNS - plan
		for i, p := range r.Parents {
			moved := v.shifts[result.RequestKey{Round: r.Round, Row: p}]
			if i == 0 || moved > shift {
				shift = moved
			}
		}
		v.shifts[r.Key()] = shift
	}
	if len(r.Parents) == 0 || r.ReleasedNS == nil {
		return
	}
	d := time.Duration(r.DueNS - plan - shift)
	if v.turns == 0 {
		v.most = d
	}
	v.turns++
	v.sum += float64(d)
	v.most = max(v.most, d)
	v.drifts = append(v.drifts, d)
}

// peak is how many requests were in flight at most, all shards together.
func (v *survey) peak() (most int) {
	slices.Sort(v.released)
	slices.Sort(v.done)
	over := 0
	for i, at := range v.released {
		for over < len(v.done) && v.done[over] <= at {
			over++
		}
		most = max(most, i+1-over)
	}
	return most
}

// mergeMetrics writes what shards measured at the servers: as a rule the first alone does. Of
// a server that several measured, the samples of the first of them are taken.
func (s *Set) mergeMetrics(path string, run *result.Run) error {
	var readers []trace.Reader[result.Metric]
	from := map[string]int{} // by target, the shard whose samples are taken
	for i := range s.shards {
		m, err := result.OpenMetrics(s.shards[i].path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer m.Close()
		if m.Started == s.shards[i].file.Run.Started { // else it is of another run
			readers = append(readers, &targetsOf{r: m.Reader(), shard: i, from: from})
		}
	}
	if len(readers) == 0 {
		return nil
	}
	return result.WriteMetrics(result.MetricsName(path), run, &inTurn{readers})
}

// targetsOf reads the metrics of a shard, but for targets that an earlier one has.
type targetsOf struct {
	r     trace.Reader[result.Metric]
	shard int
	from  map[string]int
}

// Read implements trace.Reader.
func (t *targetsOf) Read(rows []result.Metric) (int, error) {
	for {
		n, err := t.r.Read(rows)
		kept := 0
		for i := range rows[:n] {
			owner, known := t.from[rows[i].Target]
			if !known {
				owner, t.from[rows[i].Target] = t.shard, t.shard
			}
			if owner == t.shard {
				rows[kept] = rows[i]
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

// inTurn reads one after the other.
type inTurn struct{ left []trace.Reader[result.Metric] }

// Read implements trace.Reader.
func (t *inTurn) Read(rows []result.Metric) (int, error) {
	for len(t.left) > 0 {
		n, err := t.left[0].Read(rows)
		if err == io.EOF {
			t.left, err = t.left[1:], nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}
