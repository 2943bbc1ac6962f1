package report

import (
	"cmp"
	"slices"

	"reprise/replay/result"
	"reprise/trace/sample"
)

// sessionRequests is how many requests of sessions are kept, 48 MB of them. Of a run that
// has more, whole sessions are kept by a hash: half of them, a quarter, and so on.
const sessionRequests = 1 << 18

// A sessionCollector keeps what the figures by session are made of. What it keeps
// depends on the set of the results, not on their order.
type sessionCollector struct {
	limit  int
	halved uint               // a session is kept when its hash begins with so many zeros
	chunks [][]sessionRequest // all but the last are full
	n      int                // requests in them
	joined bool               // a tree has several sessions
}

// sessionChunk is how many requests are allocated at once.
const sessionChunk = 1024

func (c *sessionCollector) request(i int) *sessionRequest {
	return &c.chunks[i/sessionChunk][i%sessionChunk]
}

// A sessionRequest is what is kept of a result. Instants are nanoseconds of the run's
// clock, or as recorded; −1 is none.
type sessionRequest struct {
	key     result.SessionKey
	row     int64
	parents []int64

	due, sent, first, done int64
	tpot                   int64
	last                   int64 // of its tokens; of an embedding, which has none, done
	arrival, recordedE2E   int64
	think, tool            int64
	scopes                 uint64 // of the contract: see [Judge]
	thread, turn           int32
	input, cached, output  int32
	known                  int32
	counted                bool // input is the server's count
	uncertain              bool // first is not known well
	unended                bool // sent, and its end was never recorded; or not sent
	end                    Outcome
	before, after          bool // outside the measured window
}

// add takes a result that passed [CheckResult].
func (c *sessionCollector) add(r *result.Result, end Outcome, before, after bool, scopes uint64) {
	key, ok := r.SessionKey()
	if !ok || !c.keeps(key) {
		return
	}
	q := sessionRequest{
		key: key, row: r.RowID, parents: slices.Clone(r.Parents), due: r.DueNS, tpot: -1, sent: orUnknown(r.SentNS),
		first: orUnknown(r.FirstTokenNS), done: orUnknown(r.DoneNS),
		last: orUnknown(r.LastTokenNS), arrival: orUnknown(r.ArrivalNS), recordedE2E: orUnknown(r.RecordedE2ENS),
		think: orUnknown(r.ThinkNS), tool: orUnknown(r.ToolNS),
		scopes: scopes, thread: orUnknown(r.Thread), turn: orUnknown(r.Turn), input: InputTokens(r),
		cached: orUnknown(r.Cached), output: orUnknown(r.Output), known: orUnknown(r.Known),
		counted: r.Input != nil, uncertain: len(r.Uncertain) > 0 && r.Uncertain[0], end: end,
		before: before, after: after,
	}
	if r.API == result.APIEmbeddings {
		q.last = q.done
	}
	if end == Succeeded {
		if tpot := Derive(r).TPOT; tpot.OK {
			q.tpot = tpot.NS
		}
	}
	q.unended = q.done < 0 && r.Error == ""
	if c.n == len(c.chunks)*sessionChunk {
		c.chunks = append(c.chunks, make([]sessionRequest, sessionChunk))
	}
	*c.request(c.n) = q
	for c.n++; c.n > c.limit && c.halved < 63; {
		c.halve()
	}
}

// halve keeps half of the sessions.
func (c *sessionCollector) halve() {
	c.halved++
	left := 0
	for i := range c.n {
		if q := c.request(i); c.keeps(q.key) {
			*c.request(left) = *q
			left++
		}
	}
	for i := left; i < c.n; i++ {
		*c.request(i) = sessionRequest{}
	}
	chunks := (left + sessionChunk - 1) / sessionChunk
	clear(c.chunks[chunks:])
	c.n, c.chunks = left, c.chunks[:chunks]
}

func orUnknown[T int32 | int64](v *T) T {
	if v == nil {
		return -1
	}
	return *v
}

// keeps says whether the requests of a session are kept.
func (c *sessionCollector) keeps(k result.SessionKey) bool {
	if c.halved == 0 {
		return true
	}
	x := sample.Mix64(uint64(k.Session)*sample.Golden + uint64(uint32(k.Round)))
	return sample.Mix64(x+uint64(uint32(k.Play)))>>(64-c.halved) == 0
}

// share is how many of the sessions are kept.
func (c *sessionCollector) share() float64 { return 1 / float64(uint64(1)<<c.halved) }

// A SessionOutcome is how a session of a run ended.
type SessionOutcome uint8

// The outcomes of a session that began in the measured window.
const (
	SessionSucceeded SessionOutcome = iota // all of its requests ended, and none failed
	SessionFailed                          // a request failed
	SessionCensored                        // it had requests left when the run ended, or some whose end is not known
	sessionOutside                         // it began before or after the window
	sessionPartial                         // its first requests were not sent, as of one that a run begins inside of
)

// String names the outcome.
func (o SessionOutcome) String() string {
	return [...]string{"succeeded", "failed", "censored", "outside", "partial"}[o]
}

// A session is one of a run: the requests of a tree of agents, in the order of their rows.
// A tree may have several sessions of the workload, which parents join.
type session struct {
	key        result.SessionKey // the least of the tree's
	requests   []*sessionRequest
	outcome    SessionOutcome
	start, end int64 // first due, last done
	failed     bool  // a request did
	cut        bool  // it had requests left, as far as is known, or some whose end is not known
	linked     bool  // the workload says which request follows which
}

// sessions groups what was kept, in the order of [result.SessionKey.Compare]. known is
// false where the run does not say which sessions had requests left: all that did not
// fail are censored then.
func (c *sessionCollector) sessions(run *result.Run) (all []session, known bool) {
	cut, known := cutSessions(run)
	kept := make([]*sessionRequest, c.n)
	for i := range kept {
		kept[i] = c.request(i)
	}
	slices.SortFunc(kept, func(a, b *sessionRequest) int {
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.row, b.row))
	})
	trees := joinTrees(kept)
	c.joined = len(trees) > 0
	if c.joined {
		slices.SortFunc(kept, func(a, b *sessionRequest) int {
			return cmp.Or(trees.of(a.key).Compare(trees.of(b.key)), cmp.Compare(a.row, b.row))
		})
		for key := range cut {
			cut[trees.of(key)] = true
		}
	}
	for from := 0; from < len(kept); {
		to := from + 1
		key := trees.of(kept[from].key)
		for to < len(kept) && trees.of(kept[to].key) == key {
			to++
		}
		s := session{key: key, requests: kept[from:to:to]}
		for i := range s.requests {
			s.linked = s.linked || slices.ContainsFunc(s.requests[i].parents,
				func(row int64) bool { p := s.at(row); return p >= 0 && p < i })
		}
		s.settle(!known || cut[s.key])
		all = append(all, s)
		from = to
	}
	return all, known
}

// joinedTrees lead from a session to one before it of the same tree.
type joinedTrees map[result.SessionKey]result.SessionKey

// of is the first session of the tree that a session belongs to.
func (t joinedTrees) of(key result.SessionKey) result.SessionKey {
	for {
		up, ok := t[key]
		if !ok {
			return key
		}
		key = up
	}
}

// joinTrees finds the sessions that belong together, since a request of one has a parent in
// the other, in the same round and play. kept is in the order of keys and rows. Rows
// without a session are of no tree.
func joinTrees(kept []*sessionRequest) joinedTrees {
	trees := joinedTrees{}
	var byRow []*sessionRequest // made when it is needed, which is seldom
	in := func(list []*sessionRequest, round, play int32, row int64) *sessionRequest {
		i, ok := slices.BinarySearchFunc(list, row, func(q *sessionRequest, row int64) int {
			return cmp.Or(cmp.Compare(q.key.Round, round), cmp.Compare(q.key.Play, play), cmp.Compare(q.row, row))
		})
		if !ok {
			return nil
		}
		return list[i]
	}
	for from := 0; from < len(kept); {
		to := from + 1
		for to < len(kept) && kept[to].key == kept[from].key {
			to++
		}
		for _, q := range kept[from:to] {
			for _, row := range q.parents {
				if row < 0 || row >= q.row || in(kept[from:to], q.key.Round, q.key.Play, row) != nil {
					continue
				}
				if byRow == nil {
					byRow = slices.Clone(kept)
					slices.SortFunc(byRow, func(a, b *sessionRequest) int {
						return cmp.Or(cmp.Compare(a.key.Round, b.key.Round), cmp.Compare(a.key.Play, b.key.Play),
							cmp.Compare(a.row, b.row))
					})
				}
				if p := in(byRow, q.key.Round, q.key.Play, row); p != nil {
					a, b := trees.of(p.key), trees.of(q.key)
					switch c := a.Compare(b); {
					case c < 0:
						trees[b] = a
					case c > 0:
						trees[a] = b
					}
				}
			}
		}
		from = to
	}
	return trees
}

// SessionTimes collect what the sessions of a run took, as its report has them. Of very many
// requests they keep a sample of whole sessions.
type SessionTimes struct {
	run *result.Run
	c   sessionCollector
}

// NewSessionTimes makes one for the results of a run.
func NewSessionTimes(run *result.Run) *SessionTimes {
	return &SessionTimes{run, sessionCollector{limit: sessionRequests}}
}

// Add takes a result that passed [CheckResult].
func (t *SessionTimes) Add(r *result.Result) {
	end, _ := OutcomeOf(r)
	before, after := t.run.Window.Holds(r)
	t.c.add(r, end, before, after, 0)
}

// Share is the share of the sessions that are kept.
func (t *SessionTimes) Share() float64 { return t.c.share() }

// A SessionTime is what one session took.
type SessionTime struct {
	Key      result.SessionKey   // of the tree: the least of its sessions
	Sessions []result.SessionKey // of the workload, in the tree
	Requests int
	Outcome  SessionOutcome
	StartNS  int64 // first due time
	NS       int64 // from there to the last answer
	Cut      bool  // it had requests left when the run ended, or some whose end is not known
	ServerNS int64 // of it along the critical path: prefill and decode
}

// Sessions are all that were collected, in the order of their keys.
func (t *SessionTimes) Sessions() (out []SessionTime) {
	all, _ := t.c.sessions(t.run)
	for i := range all {
		s := &all[i]
		one := SessionTime{Key: s.key, Requests: len(s.requests), Outcome: s.outcome, StartNS: s.start,
			NS: s.end - s.start, Cut: s.cut}
		for _, q := range s.requests {
			if !slices.Contains(one.Sessions, q.key) {
				one.Sessions = append(one.Sessions, q.key)
			}
		}
		s.path(t.run, func(step pathStep) {
			if step.part == pathPrefill || step.part == pathDecode {
				one.ServerNS += step.to - step.from
			}
		})
		out = append(out, one)
	}
	return out
}

// cutSessions are the sessions that had requests left, as far as the run says so.
func cutSessions(run *result.Run) (cut map[result.SessionKey]bool, known bool) {
	if run.Cut == nil {
		return nil, run.Beyond+run.NotSent == 0 && run.EndedEarly == ""
	}
	cut = map[result.SessionKey]bool{}
	for _, key := range run.Cut.Sessions {
		cut[key] = true
	}
	return cut, !run.Cut.Incomplete
}

// settle finds the begin, the end and the outcome. cut says that requests may have been
// left.
func (s *session) settle(cut bool) {
	s.start, s.end, s.cut = s.requests[0].due, s.requests[0].due, cut
	for i := range s.requests {
		q := s.requests[i]
		s.start, s.end = min(s.start, q.due), max(s.end, q.done)
		s.failed = s.failed || q.end == Failed && !q.unended
		s.cut = s.cut || q.unended
	}
	switch first := s.root(); {
	case s.requests[0].turn > 0:
		s.outcome = sessionPartial
	case first.before || first.after:
		s.outcome = sessionOutside
	case s.failed:
		s.outcome = SessionFailed
	case s.cut:
		s.outcome = SessionCensored
	}
}

// root is the request that began the session.
func (s *session) root() *sessionRequest {
	first := s.requests[0]
	for i := range s.requests {
		if s.requests[i].due < first.due {
			first = s.requests[i]
		}
	}
	return first
}

// at finds the request of a row, −1 where the session has none.
func (s *session) at(row int64) int {
	i, ok := slices.BinarySearchFunc(s.requests, row, func(q *sessionRequest, row int64) int {
		return cmp.Compare(q.row, row)
	})
	if !ok {
		return -1
	}
	return i
}

// parents calls visit with each parent of request i in the session. A parent that comes
// later in the file is none: a run does not wait for it. In a session whose workload has no
// parents, such as one that was inferred, each request follows the one before it.
func (s *session) parents(i int, visit func(p int)) {
	if !s.linked && i > 0 {
		visit(i - 1)
	}
	for _, row := range s.requests[i].parents {
		if i > 0 && s.requests[i-1].row == row { // as nearly always
			visit(i - 1)
		} else if p := s.at(row); p >= 0 && p < i {
			visit(p)
		}
	}
}

// chain says whether each request follows the one before it and no other.
func (s *session) chain() bool {
	for i := 1; i < len(s.requests); i++ {
		n := 0
		s.parents(i, func(p int) { n += i - p })
		if n != 1 {
			return false
		}
	}
	return true
}

// followed is the parent of request i that ended last, which is the one that it waited
// for; −1 where it has none.
func (s *session) followed(i int) int {
	of := -1
	s.parents(i, func(p int) {
		if s.requests[p].done >= 0 && (of < 0 || s.requests[p].done > s.requests[of].done ||
			s.requests[p].done == s.requests[of].done && p < of) {
			of = p
		}
	})
	return of
}

// depths are how many requests each one has before it on the longest way from a request
// without parents.
func (s *session) depths(into []int32) []int32 {
	into = into[:0]
	for i := range s.requests {
		depth := int32(0)
		s.parents(i, func(p int) { depth = max(depth, into[p]+1) })
		into = append(into, depth)
	}
	return into
}

// recorded is how long the session took in the source: from its first arrival to the last
// end. It is not ok where the source does not say when a request ended that none follows.
func (s *session) recorded() (ns int64, ok bool) {
	parent := make([]bool, len(s.requests))
	for i := range s.requests {
		if s.linked { // else a request may end after the one behind it
			s.parents(i, func(p int) { parent[p] = true })
		}
	}
	begin, end := s.requests[0].arrival, int64(-1)
	for i := range s.requests {
		q := s.requests[i]
		if q.arrival < 0 || q.recordedE2E < 0 && !parent[i] {
			return 0, false
		}
		begin, end = min(begin, q.arrival), max(end, q.arrival+max(q.recordedE2E, 0))
	}
	return end - begin, end > begin
}

// What the time of a session went to.
type pathPart int

const (
	pathClient  pathPart = iota // due to sent: the client was late
	pathPrefill                 // sent to first token
	pathDecode                  // first token to the end of the answer
	pathThink                   // of the user, as the workload says
	pathTool                    // tool time, as the workload says
	pathWait                    // between requests, and the workload does not say for what: for its recorded time
	pathParts
)

// A pathStep is some time of a session's critical path.
type pathStep struct {
	part     pathPart
	from, to int64
}

// path walks a session back along its critical path, and gives each instant from its
// begin to its end to one part. It goes from the request that ended last to the parent
// that ended last, and so on. What a request did while its parent was still under way, as
// in open loop, is the request's. It is not ok where the results do not say which request
// follows which, and there are several.
func (s *session) path(run *result.Run, step func(pathStep)) {
	last := 0
	for i := range s.requests {
		if s.requests[i].done > s.requests[last].done {
			last = i
		}
	}
	end := s.requests[last].done // what is behind it belongs to a part already
	for i := last; ; {
		q := s.requests[i]
		if q.due < end {
			at := q.due
			for part, until := range q.parts() {
				if to := min(until, end); to > at {
					step(pathStep{pathPart(part), at, to})
					at = to
				}
			}
			end = q.due
		}
		before := s.followed(i)
		if before < 0 {
			if end > s.start {
				step(pathStep{pathWait, s.start, end})
			}
			return
		}
		if done := s.requests[before].done; done < end {
			q.pause(run, done, end, step)
			end = done
		}
		i = before
	}
}

// parts are the instants at which the client, prefill and decode are over. A request
// without a first token, such as an embedding, is prefill to its end.
func (q *sessionRequest) parts() [3]int64 {
	first := q.first
	if first < 0 {
		first = q.done
	}
	return [...]int64{pathClient: q.sent, pathPrefill: first, pathDecode: q.done}
}

// pause gives the time before a request, from the end of the parent that it waited for, to
// thinking, then to tools, as the workload says and the speed of the run makes of it. A
// time that is shorter than both is shared out by their lengths.
func (q *sessionRequest) pause(run *result.Run, from, to int64, step func(pathStep)) {
	think, tool := max(q.think, 0), max(q.tool, 0)
	by, byTool := 1.0, 1.0
	if run.Speed > 0 && !run.KeepThink {
		by, byTool = 1/run.Speed, 1/run.Speed
	}
	if load := run.Sessions; load != nil {
		by, byTool = by*load.ThinkScale, byTool*load.ToolScale
	}
	think, tool = int64(float64(think)*by), int64(float64(tool)*byTool)
	if both := think + tool; both > to-from {
		think = int64(float64(to-from) * (float64(think) / float64(both)))
		tool = to - from - think
	}
	for _, s := range [...]pathStep{{pathThink, from, from + think}, {pathTool, from + think, from + think + tool},
		{pathWait, from + think + tool, to}} {
		if s.to > s.from {
			step(s)
		}
	}
}
