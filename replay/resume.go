package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A Resumption is what the journals of a killed run say about it, so that it can be
// continued:
//
//   - Rows with a result keep it, failures included, and are not sent again.
//   - The clock goes on where the journals end, and so does the schedule, or from
//     the first row without a result if that was due before: all recorded and
//     scheduled times are moved by as much. So the requests that were in flight are
//     sent again, with the same distances between them.
//   - In a causal run, parents that were over count as if they had ended when the run
//     is resumed: think and tool times begin anew.
//   - In a closed loop all slots are free.
//   - In a load of sessions the trees that were live go on first, each from its last row
//     that was over; trees that were not live keep their order.
//   - Requests that were sent and have no result are sent again, and counted: the server
//     sees them twice, and finds the prompts of the first time in its cache.
type Resumption struct {
	run      result.Run // as the last journal began
	gap      result.Interruption
	done     []doneRow // in row order
	sent     []sentRow // in the order of sending, where the window asks for it
	dueFirst int64
	dueLast  int64
	requests int64 // sent
	unready  int64
	stalls   *result.Stalls
	origin   func(id int64) (row int64, round int32)
	lost     map[int64]bool // rows that were sent and have no result, by their number among those that are read
	treeEnds []int64        // when the trees of a load of sessions ended that did, in order
}

type doneRow struct {
	key    result.RequestKey
	at     int64
	failed bool
	large  bool // the prompt does not fit the context
}

type sentRow struct {
	released int64
	result.Place
}

// ReadResumption reads the journals of the run whose results were to be at path.
// It fails when there are none, or the options are not those of that run, a
// [Disagreement]. rows is the workload. The options' Known is called for the rows
// that were sent, which the server knows if it is the same and kept its cache. Arrivals
// and rows are read to their end, or in an endless run as far as it can have come, so
// they must not be those that the continued run will read.
func ReadResumption(path string, o Options, rows trace.Reader[trace.Request]) (*Resumption, error) {
	name := result.JournalName(path)
	f, err := result.Open(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("there is nothing to resume: %w", err)
		}
		return nil, err
	}
	defer f.Close()
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	r := &Resumption{run: f.Run, stalls: f.Run.Stalls, origin: o.origin}
	if err := r.agree(o.About); err != nil {
		return nil, err
	}
	if was, asks := shareOf(f.Run), o.Share; was != asks {
		return nil, &Disagreement{"shard", shareWords(was), shareWords(asks)}
	}
	if err := o.Metering.metered(path); err != nil {
		return nil, err
	}
	if err := r.readDone(f, o.Warmup.Requests+o.Warmup.Sessions+o.Cooldown.Requests > 0); err != nil {
		return nil, err
	}
	r.lost = map[int64]bool{}
	noted, err := result.ReadSends(path, func(id int64) {
		if _, done := r.find(id); !done {
			r.lost[id] = true
		}
	})
	if err != nil {
		return nil, err
	}
	if noted {
		r.gap.Twice = &result.SeenTwice{Rows: []int64{}}
	}
	last, err := result.LastWritten(name)
	if err != nil {
		return nil, err
	}
	r.gap.DownNS = int64(max(time.Since(last), 0))
	// Go over the workload: find the first row without a result, count those that were
	// due already, and tell Known of those that were sent.
	s := surveyor{r: r, opt: &o, sched: newScheduler(&o, nil, nil), first: math.MaxInt64, known: o.Known}
	if n := len(r.run.Resumed); n > 0 {
		s.before = r.run.Resumed[n-1].ShiftNS
	}
	if o.Sessions != nil {
		err = s.trees()
	} else {
		err = trace.Each(rows, s.row)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return r, errors.Join(errWorkload, err)
	}
	if o.Concurrency == 0 && (o.Sessions == nil || o.Sessions.Live == 0) {
		r.gap.ShiftNS = r.gap.AtNS - min(r.gap.AtNS-s.before, s.first)
	}
	return r, nil
}

// readDone reads which rows have a result. Those that were sent are put in order
// where that is asked for.
func (r *Resumption) readDone(f *result.File, sent bool) error {
	if n := len(r.run.Resumed); n > 0 {
		r.gap.AtNS = r.run.Resumed[n-1].AtNS
	}
	err := trace.Each(f.Reader(), func(_ int64, x *result.Result) error {
		if len(r.done) == 0 {
			r.dueFirst, r.dueLast = x.DueNS, x.DueNS
		}
		r.dueFirst, r.dueLast = min(r.dueFirst, x.DueNS), max(r.dueLast, x.DueNS)
		d := doneRow{key: x.Key(), at: x.DueNS, failed: x.Failed(), large: x.Error == result.KindTooLong}
		if x.DoneNS != nil {
			d.at = *x.DoneNS
			r.gap.AtNS = max(r.gap.AtNS, d.at)
		}
		r.done = append(r.done, d)
		switch {
		case x.Error == result.KindPrepare:
			r.unready++
		case sent && x.ReleasedNS != nil:
			r.sent = append(r.sent, sentRow{*x.ReleasedNS, result.Place{DueNS: x.DueNS, Row: x.RowID, Round: x.Round}})
		}
		return nil
	})
	r.gap.Kept = int64(len(r.done))
	r.requests = r.gap.Kept - r.unready
	slices.SortFunc(r.sent, func(a, b sentRow) int {
		return cmp.Or(cmp.Compare(a.released, b.released), cmp.Compare(a.Round, b.Round), cmp.Compare(a.Row, b.Row))
	})
	return err
}

// find returns how a row ended, by its number among those that are read.
func (r *Resumption) find(id int64) (d doneRow, ok bool) {
	if r == nil {
		return d, false
	}
	k := r.keyOf(id)
	i := sort.Search(len(r.done), func(i int) bool { return r.done[i].key.Compare(k) >= 0 })
	if i == len(r.done) || r.done[i].key != k {
		return d, false
	}
	return r.done[i], true
}

// keyOf names the row that is read as the id-th.
func (r *Resumption) keyOf(id int64) result.RequestKey {
	row, round := r.origin(id)
	return result.RequestKey{Round: round, Row: row}
}

// Gap is the interruption that ends with this resumption.
func (r *Resumption) Gap() result.Interruption { return r.gap }

// base is the time at which the clock goes on; shift is by how much the schedule is moved.
func (r *Resumption) base() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.gap.AtNS)
}

func (r *Resumption) shift() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.gap.ShiftNS)
}

// A surveyor looks at each row of a workload once.
type surveyor struct {
	r      *Resumption
	opt    *Options
	sched  *scheduler
	first  int64 // due time of the first row without a result and without parents
	before int64 // shift of the schedule before
	known  func(int64, *trace.Request) int32
	round  int32         // that is read
	began  time.Duration // when its first row was due
}

// errEnough ends the reading of rows without end.
var errEnough = errors.New("replay: what follows was not due")

// enough reports, at the first row of a round of an endless run, that no row from there
// on has a result or was due when the run was killed. A process that does not move
// on within a round never will.
func (s *surveyor) enough(w *pendingRow) bool {
	k := s.r.keyOf(w.id)
	if !s.opt.Endless || k.Round == s.round {
		return false
	}
	at := w.due
	if s.opt.Arrivals != nil {
		at = s.sched.nextArrival // one that is left out has none of its own
	}
	stands := at <= s.began
	s.round, s.began = k.Round, at
	switch n := len(s.r.done); {
	case n > 0 && k.Round <= s.r.done[n-1].key.Round:
		return false
	case s.opt.Concurrency > 0, stands, at >= s.opt.Duration:
		return true
	}
	return s.first < math.MaxInt64 && int64(at)+s.before > s.r.gap.AtNS
}

func (s *surveyor) row(id int64, row *trace.Request) error {
	w := &pendingRow{id: id, row: row}
	turn := s.opt.Causal != nil && slices.ContainsFunc(row.Parents, func(p int64) bool { return p >= 0 && p < id })
	if !turn {
		s.setRootDue(w)
	}
	_, done := s.r.find(id)
	if s.r.lost[id] {
		s.r.addTwice(id, row)
		if s.known != nil {
			s.known(id, row)
		}
	}
	switch {
	case done:
		if s.known != nil {
			s.known(id, row)
		}
	case s.opt.excludes(row):
	case s.opt.Concurrency > 0:
		if n := len(s.r.done); n > 0 && s.r.keyOf(id).Compare(s.r.done[n-1].key) < 0 {
			s.r.gap.Again++
		}
	case turn:
		if due, ok := s.turnDue(id, row); ok && due <= s.r.gap.AtNS {
			s.r.gap.Again++
		}
	case s.opt.Duration > 0 && w.due >= s.opt.Duration:
	default:
		s.first = min(s.first, int64(w.due))
		if len(s.r.done) > 0 && int64(w.due)+s.before <= s.r.gap.AtNS {
			s.r.gap.Again++
		}
	}
	if !turn && s.enough(w) {
		return errEnough
	}
	return nil
}

// addTwice counts a row that the server sees twice.
func (r *Resumption) addTwice(id int64, row *trace.Request) {
	twice := r.gap.Twice
	twice.Requests++
	twice.PromptTokens += int64(row.InputTokens)
	if len(twice.Rows) < mostTwiceRows {
		twice.Rows = append(twice.Rows, r.keyOf(id).Row)
	}
}

// mostTwiceRows is how many rows are named that a server sees twice.
const mostTwiceRows = 100

// setRootDue gives a row its due time, as in a run.
func (s *surveyor) setRootDue(w *pendingRow) {
	if s.opt.Causal != nil && s.opt.Causal.following(w.id) > 0 {
		s.sched.deps.parents[w.id] = &parentRow{}
		defer delete(s.sched.deps.parents, w.id)
	}
	s.sched.setRootDue(w)
}

// turnDue says when a turn was due whose parents are all over. Where no pause is
// known, that is at their end at the soonest.
func (s *surveyor) turnDue(id int64, row *trace.Request) (due int64, ok bool) {
	for _, p := range row.Parents {
		if p < 0 || p >= id {
			continue
		}
		d, done := s.r.find(p)
		if !done || d.failed {
			return 0, false
		}
		due = max(due, d.at)
	}
	if pause, known := pauseOf(row.ThinkNS, row.ToolNS); known {
		return due + int64(s.opt.thinking(pause)), true
	}
	if s.opt.Arrivals == nil {
		due = max(due, int64(s.opt.scaled(row.ArrivalNS))+s.before)
	}
	return due, true
}

// addTo adds what the parts of the run before had.
func (r *Resumption) addTo(run *result.Run) {
	if r == nil {
		return
	}
	run.Requests += r.requests
	run.Unprepared += r.unready
	if r.gap.Kept > 0 {
		run.Stalls = r.stalls.Resumed(r.gap.AtNS, run.Stalls)
	}
	if run.Unready == "" && r.unready > 0 {
		run.Unready = "before the run was interrupted"
	}
}

// A Disagreement says that a run cannot be resumed with other settings.
type Disagreement struct {
	Field     string // of [result.Run], by its name in JSON
	Was, Asks string // as JSON
}

func (d *Disagreement) Error() string {
	return fmt.Sprintf("the run that was interrupted had another %s: %s, not %s", strings.ReplaceAll(d.Field, "_", " "), d.Was, d.Asks)
}

func shareOf(run result.Run) (s result.Share) {
	if run.Shard != nil {
		s = run.Shard.Share
	}
	return s
}

func shareWords(s result.Share) string {
	if s.Whole() {
		return "none"
	}
	return s.String()
}

// mayDiffer lists what of a Run may be another in a resumption. All else that is
// known at the beginning of a run must be the same.
var mayDiffer = []string{"version", "trace_id", "started", "cores", "note", "resumed", "requests", "unprepared", "ended_early", "environment", "stalls", "connections_why", "shard"}

// agree holds what is asked for against what was.
func (r *Resumption) agree(now result.Run) error {
	was, err := fieldsOf(r.run)
	if err != nil {
		return err
	}
	asks, err := fieldsOf(now)
	if err != nil {
		return err
	}
	var names []string
	for _, fields := range []map[string]json.RawMessage{was, asks} {
		for name := range fields {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, b := string(was[name]), string(asks[name])
		if a != b && !slices.Contains(mayDiffer, name) {
			return &Disagreement{name, spelt(a), spelt(b)}
		}
	}
	return nil
}

func spelt(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// fieldsOf lists the fields of a Run, and what it Asked beside them.
func fieldsOf(run result.Run) (map[string]json.RawMessage, error) {
	if run.Selection != nil {
		chosen := *run.Selection
		chosen.Prime = nil // the server may need more, or less, than at the start
		run.Selection = &chosen
	}
	doc, err := json.Marshal(run)
	if err != nil {
		return nil, errors.New("replay: the run's description cannot be written as JSON")
	}
	var fields, plan map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, err
	}
	if inner := fields["plan"]; inner != nil {
		if err := json.Unmarshal(inner, &plan); err != nil {
			return nil, err
		}
		delete(fields, "plan")
		maps.Copy(fields, plan)
	}
	return fields, nil
}
