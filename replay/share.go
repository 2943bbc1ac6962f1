package replay

import (
	"errors"
	"fmt"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// ErrLateStart is the error of a run that was not ready when its clock was to start.
var ErrLateStart = errors.New("replay: the start is over")

// CheckShare refuses what a share of a load cannot do by itself.
func (o *Options) CheckShare() error {
	s := o.Share
	switch {
	case s == result.Share{}:
		return nil
	case s.Of < 1 || s.Index < 0 || s.Index >= s.Of:
		return fmt.Errorf("replay: there is no shard %v: they are numbered from 0", s)
	case o.Warmup.Requests+o.Warmup.Sessions+o.Cooldown.Requests > 0:
		return errors.New("replay: a shard cannot count the requests of the others: give warm-up and " +
			"cool-down as times")
	case o.Sessions != nil && o.Sessions.IdleCap > 0:
		return errors.New("replay: a shard cannot know when the others are idle: a cap on the idle time of the whole " +
			"load is for one process")
	}
	most := max(o.Concurrency, o.MaxInFlight)
	if o.Sessions != nil {
		most = max(most, o.Sessions.Live, o.Sessions.MaxLive)
	}
	if most > 0 && most < s.Of {
		return fmt.Errorf("replay: %d requests or sessions at once are too few for %d shards: each needs one",
			most, s.Of)
	}
	return nil
}

// sayShard notes in About which share is sent.
func (o *Options) sayShard() error {
	if o.Share.Whole() {
		return nil
	}
	about := result.Shard{Share: o.Share}
	if was := o.About.Shard; was != nil {
		about.Clock = was.Clock
	}
	if !o.StartAt.IsZero() {
		about.StartClock = o.StartAt.UTC().Format(time.RFC3339Nano)
	}
	var err error
	about.Settings, err = result.SettingsDigest(o.About)
	o.About.Shard = &about
	return err
}

// awaitStart waits until shortly before the instant at which the clock is to start, and returns
// that instant: of the monotonic clock, as the wall clock says at the end of the wait.
func (o *Options) awaitStart(over <-chan struct{}) (time.Time, error) {
	if o.StartAt.IsZero() {
		return time.Now(), nil
	}
	for {
		left := o.untilStart()
		switch {
		case left < 0:
			return time.Now(), o.late(-left)
		case left <= beforeStart:
			return time.Now().Add(left), nil
		}
		// In steps, since the wall clock may be set meanwhile.
		t := time.NewTimer(min(left-beforeStart, time.Second))
		select {
		case <-t.C:
		case <-over:
			t.Stop()
			return time.Now(), nil
		}
	}
}

// beforeStart is how long before its start a run stops sleeping: opening the pacer and the
// watches takes some of it.
const beforeStart = 20 * time.Millisecond

func (o *Options) untilStart() time.Duration {
	now := time.Now()
	if o.wall != nil {
		now = o.wall()
	}
	return o.StartAt.Sub(now.Round(0))
}

func (o *Options) late(by time.Duration) error {
	return fmt.Errorf("%w: the run was ready %v after %s, when it was to start, and nothing was sent", ErrLateStart,
		by.Round(time.Millisecond), o.StartAt.UTC().Format(time.RFC3339))
}

// A Thinning says which arrivals of a process belong to a share of the load: those that
// its rows or trees would have had in the whole. A shard draws all of them and leaves out
// the others, so that the arrivals of all shards together are those of the process.
type Thinning struct {
	of   int64
	mine func(i int64) bool // of the i-th arrival of a round, i below of
}

// ThinTrees is the thinning of a process by which session trees start, so many in a play.
func ThinTrees(share result.Share, trees int64) *Thinning {
	return &Thinning{trees, share.Has}
}

// ThinRows is the thinning of a process that gives arrivals to rows: those of one round of the
// whole load, with their lineage in it, or nil. mine says whether a row is of the share.
func ThinRows(o Options, lineage *Lineage, rows trace.Reader[trace.Request],
	mine func(row int64) bool) (*Thinning, error) {
	var bits []uint64
	n := int64(0)
	err := trace.Each(rows, func(id int64, row *trace.Request) error {
		if lineage != nil {
			for _, p := range row.Parents {
				if p >= 0 && p < id {
					return nil // it waits for another, and has no arrival
				}
			}
		}
		if o.excludes(row) && (lineage == nil || lineage.following(id) == 0) {
			return nil
		}
		if n%64 == 0 {
			bits = append(bits, 0)
		}
		if mine(id) {
			bits[n/64] |= 1 << (n % 64)
		}
		n++
		return nil
	})
	return &Thinning{n, func(i int64) bool { return bits[i/64]&(1<<(i%64)) != 0 }}, err
}

// Of thins a process. A nil Thinning leaves it as it is.
func (t *Thinning) Of(p arrival.Process) arrival.Process {
	if t == nil || t.of == 0 {
		return p
	}
	return &thinned{Thinning: t, all: p}
}

type thinned struct {
	*Thinning
	all  arrival.Process
	next int64
}

// Next implements [arrival.Process].
func (t *thinned) Next() (gap time.Duration) {
	for range t.of { // one of a round is the shard's, or it has none and nobody asks
		gap += t.all.Next()
		i := t.next
		t.next = (i + 1) % t.of
		if t.mine(i) {
			break
		}
	}
	return gap
}
