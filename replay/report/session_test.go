package report

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/textpage"
)

// manySessions are random trees as a run plays them, with failures, requests that were
// cancelled on purpose, some whose end is not known, and rows without a session.
func manySessions(rng *rand.Rand, n int) []result.Result {
	var out []result.Result
	row := int64(0)
	for k := range n {
		tree := playedTree(rng, 1+rng.IntN(9), true, 1)
		begin := rng.Int64N(5000)
		for i := range tree {
			r := &tree[i]
			shift(r, begin)
			for j := range r.Parents {
				r.Parents[j] += row - 3
			}
			r.RowID, r.Session, r.Turn = row+int64(i), trace.Ptr(int64(k/2)), trace.Ptr(int32(i))
			r.Play = trace.Ptr(int32(k % 2))
			r.RecordedE2ENS = trace.Ptr(rng.Int64N(90))
			r.WantInput, r.Input, r.WantOutput = 9, trace.Ptr(rng.Int32N(900)), new(int32)
			r.Cached, r.Known = trace.Ptr(rng.Int32N(*r.Input+1)), trace.Ptr(rng.Int32N(900))
			r.Output, r.OutputFrom = trace.Ptr(rng.Int32N(90)), result.FromUsage
			switch rng.IntN(60) {
			case 0:
				r.Error = "server_error"
			case 1:
				r.Error = result.KindCancelled
			case 2:
				r.DoneNS = nil
			case 3:
				r.RecordedE2ENS = nil
			}
			if k%7 == 3 {
				r.Session = nil
			}
			if rng.IntN(9) == 0 && i > 0 {
				r.FirstTokenNS, r.LastTokenNS = nil, nil
			}
		}
		row += int64(len(tree))
		out = append(out, tree...)
	}
	return out
}

// foundSession is what a test finds of a session by itself.
type foundSession struct {
	rows             []*result.Result
	begin, end       int64
	failed, unended  bool
	input, cached    int64
	output, recorded int64
}

func wholes(rows []result.Result) map[result.SessionKey]*foundSession {
	all := map[result.SessionKey]*foundSession{}
	for i := range rows {
		r := &rows[i]
		if r.Session == nil {
			continue
		}
		key := result.SessionKey{Session: *r.Session, Round: r.Round, Play: *r.Play}
		w := all[key]
		if w == nil {
			w = &foundSession{begin: math.MaxInt64}
			all[key] = w
		}
		w.rows = append(w.rows, r)
		w.begin = min(w.begin, r.DueNS)
		if r.DoneNS != nil {
			w.end = max(w.end, *r.DoneNS)
		} else if r.Error == "" {
			w.unended = true
		}
		w.failed = w.failed || r.Error == "server_error"
		w.input, w.cached, w.output = w.input+int64(*r.Input), w.cached+int64(*r.Cached), w.output+int64(*r.Output)
	}
	for _, w := range all {
		first, last, known := int64(math.MaxInt64), int64(0), true
		for _, r := range w.rows {
			isParent := false
			for _, other := range w.rows {
				isParent = isParent || slices.Contains(other.Parents, r.RowID)
			}
			first = min(first, *r.ArrivalNS)
			if r.RecordedE2ENS != nil {
				last = max(last, *r.ArrivalNS+*r.RecordedE2ENS)
			} else if linked := slices.ContainsFunc(w.rows, func(r *result.Result) bool { return len(r.Parents) > 0 }); !isParent || !linked {
				known = false
			}
		}
		if known {
			w.recorded = last - first // 0 is not known
		}
	}
	return all
}

// meanOf and quantile are by the book, of whole values.
func meanOf(values []int64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

func quantileOf(values []int64, p float64) float64 {
	slices.Sort(values)
	at := p * float64(len(values)-1)
	low := int(at)
	if low+1 == len(values) {
		return float64(values[low])
	}
	return float64(values[low]) + (at-float64(low))*float64(values[low+1]-values[low])
}

// Counts, times, rates and tokens by session are those that a second count gives, with
// sessions that were cut, failed, or began outside the window.
func TestSessionsBySecondCount(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 83))
		rows := manySessions(rng, 260)
		all := wholes(rows)
		run := result.Run{Load: result.Load{Speed: 1, Timing: result.Causal}}
		cut := map[result.SessionKey]bool{}
		if seed%3 > 0 {
			run.Beyond, run.Cut = 7, &result.CutSessions{Sessions: []result.SessionKey{{Session: 1e6}}} // one that never began
			for key := range all {
				if rng.IntN(12) == 0 {
					cut[key] = true
					run.Cut.Sessions = append(run.Cut.Sessions, key)
				}
			}
		}
		from, to := int64(0), int64(math.MaxInt64)
		if seed%2 == 1 {
			from, to = 700, 4100
			run.Window = &result.Window{From: &result.Place{DueNS: from}, To: &result.Place{DueNS: to}}
		}
		shuffled := slices.Clone(rows)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		s := summarise(t, run, Options{}, shuffled...)

		measured := func(r *result.Result) bool { return r.DueNS >= from && r.DueNS < to }
		firstDue, lastDone := int64(math.MaxInt64), int64(0)
		for i := range rows {
			if r := &rows[i]; measured(r) {
				firstDue = min(firstDue, r.DueNS)
				if r.DoneNS != nil {
					lastDone = max(lastDone, *r.DoneNS)
				}
			}
		}
		var want Sessions
		var times, slow, inputs []int64
		ended := int64(0)
		for key, w := range all {
			fine := !w.failed && !w.unended && !cut[key]
			if fine && w.end >= firstDue && w.end <= lastDone {
				ended++
			}
			switch {
			case w.begin < from || w.begin >= to:
				want.Outside++
				continue
			case w.failed:
				want.Failed++
			case !fine:
				want.Censored++
			default:
				want.Succeeded++
				times, inputs = append(times, w.end-w.begin), append(inputs, w.input)
				if w.recorded > 0 {
					slow = append(slow, int64(math.Round(float64(w.end-w.begin)/float64(w.recorded)*1e6)))
				}
			}
			want.Sessions++
			if len(w.rows) == 1 {
				want.Single++
			}
		}
		got := s.Sessions
		if got.Sessions != want.Sessions || got.Succeeded != want.Succeeded || got.Failed != want.Failed || got.Censored != want.Censored || got.Outside != want.Outside || got.Single != want.Single || got.CutUnknown {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		is(t, "success", got.SuccessShare, float64(want.Succeeded)/float64(want.Succeeded+want.Failed))
		is(t, "mean", got.Completion.Mean, meanOf(times)/1e6)
		near(t, "p90", got.Completion.P90, quantileOf(times, 0.9)/1e6, 1e-6)
		near(t, "p50 of slowdown", got.Slowdown.P50, quantileOf(slow, 0.5)/1e6, 1e-6)
		is(t, "compared", trace.Ptr(float64(got.Slowdown.Count)), float64(len(slow)))
		is(t, "input tokens", got.Input.Mean, meanOf(inputs))
		near(t, "sessions per second", got.PerS, float64(ended)/float64(lastDone-firstDue)*1e9, 1e-6)
		near(t, "jobs per hour and user", got.PerUser, 3600e9/meanOf(times), 1e-6)
		near(t, "time along the path", got.Path.Server.MeanS, meanOf(times)/1e9-*got.Path.Think.MeanS-*got.Path.Tool.MeanS-*got.Path.Wait.MeanS-*got.Path.Client.MeanS, 1e-6)
		checkDepths(t, s.ByDepth, all, measured)
	}
}

// checkDepths holds the groups by depth against depths that are found from the root on.
func checkDepths(t *testing.T, got []PlaceGroup, all map[result.SessionKey]*foundSession, measured func(*result.Result) bool) {
	t.Helper()
	want := map[int64]int64{}
	for _, w := range all {
		byRow := map[int64]*result.Result{}
		linked := false
		for _, r := range w.rows {
			byRow[r.RowID] = r
			linked = linked || len(r.Parents) > 0
		}
		slices.SortFunc(w.rows, func(a, b *result.Result) int { return cmp.Compare(a.RowID, b.RowID) })
		var depth func(r *result.Result, i int) int64
		depth = func(r *result.Result, i int) (d int64) {
			if !linked {
				return int64(i)
			}
			for _, p := range r.Parents {
				d = max(d, 1+depth(byRow[p], 0))
			}
			return d
		}
		for i, r := range w.rows {
			if measured(r) {
				d := depth(r, i)
				lo := placesFrom[0]
				for _, edge := range placesFrom {
					if edge <= d {
						lo = edge
					}
				}
				want[lo]++
			}
		}
	}
	counts := map[int64]int64{}
	for _, g := range got {
		counts[g.Lo] = g.Rows
	}
	if !maps.Equal(counts, want) {
		t.Errorf("by depth %v, want %v", counts, want)
	}
}

// A run that does not say which sessions had requests left has no finished ones.
func TestSessionsOfAnUnfinishedRun(t *testing.T) {
	rows := []result.Result{answer(0, 0, 0, 10), answer(1, 50, 0, 10)}
	for i := range rows {
		rows[i].Session = trace.Ptr(int64(4))
	}
	for name, run := range map[string]result.Run{
		"a journal":     {EndedEarly: "it did not finish, and this is its journal"},
		"an older file": {Sending: result.Sending{Beyond: 1}},
		"too many cut":  {Sending: result.Sending{Beyond: 1, Cut: &result.CutSessions{Incomplete: true}}},
	} {
		s := summarise(t, run, Options{}, rows...)
		if o := s.Sessions; !o.CutUnknown || o.Censored != 1 || o.Completion.Count != 0 || o.PerS != nil || o.Path != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if o := summarise(t, result.Run{}, Options{}, rows...).Sessions; o.CutUnknown || o.Succeeded != 1 || *o.Completion.Max != 60 || *o.Path.Wait.Share != *Rounded(40.0/60, 1e9) {
		t.Errorf("a whole run: %+v", o)
	}
	if o := summarise(t, result.Run{}, Options{}, answer(0, 0, 0, 10)).Sessions; o != nil {
		t.Errorf("a run without sessions has %+v", o)
	}
}

// What is kept of too many sessions does not depend on the order of the results, is within
// the bound, and of each session all or nothing.
func TestSessionSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 84))
	rows := manySessions(rng, 900)
	var first []session
	for range 4 {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		c := sessionCollector{limit: 700}
		for i := range rows {
			end, _ := OutcomeOf(&rows[i])
			c.add(&rows[i], end, false, false, 0)
		}
		all, _ := c.sessions(&result.Run{})
		if c.n > 700 || c.n < 100 || c.share() > 0.5 {
			t.Fatalf("%d requests of a sample of %v", c.n, c.share())
		}
		if first == nil {
			first = all
		} else if !reflect.DeepEqual(all, first) {
			t.Fatal("another order keeps other sessions")
		}
	}
	found := wholes(rows)
	for i := range first {
		if n := len(found[first[i].requests[0].key].rows); n != len(first[i].requests) {
			t.Errorf("%d of %d requests of a session are kept", len(first[i].requests), n)
		}
	}
}

// The bars of a lane do not overlap, in a causal run or in open loop, and those of requests
// are as long as the requests.
func TestSessionLanes(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 85))
		rows := playedTree(rng, 2+rng.IntN(20), seed%3 > 0, 1)
		c := sessionCollector{limit: sessionRequests}
		total := int64(0)
		for i := range rows {
			shift(&rows[i], 0)
			for _, at := range []*int64{&rows[i].DueNS, rows[i].SentNS, rows[i].FirstTokenNS, rows[i].DoneNS, rows[i].ThinkNS, rows[i].ToolNS} {
				if at != nil {
					*at *= leastDrawn // each instant is far from the next
				}
			}
			total += *rows[i].DoneNS - rows[i].DueNS
			c.add(&rows[i], Succeeded, false, false, 0)
		}
		run := &result.Run{Load: result.Load{Speed: 1}}
		all, _ := c.sessions(run)
		l := firstSessions(all, run)
		type bar struct{ lane, from, to float64 }
		var bars []bar
		drawn := 0.0
		for part := range l.bars {
			b := l.bars[part]
			for i := range b.X {
				bars = append(bars, bar{b.Y[i], b.X[i], b.Hi[i]})
				if pathPart(part) == pathClient || pathPart(part) == pathPrefill || pathPart(part) == pathDecode {
					drawn += b.Hi[i] - b.X[i]
				}
			}
		}
		slices.SortFunc(bars, func(a, b bar) int { return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.from, b.from)) })
		for i := 1; i < len(bars); i++ {
			if a, b := bars[i-1], bars[i]; a.lane == b.lane && b.from < a.to-1e-9 {
				t.Fatalf("seed %d: bars %v and %v overlap", seed, a, b)
			}
		}
		if math.Abs(drawn-float64(total)/1e9) > 1e-6 {
			t.Errorf("seed %d: %v s of requests are drawn, of %v", seed, drawn, float64(total)/1e9)
		}
		if p := l.plot("", "", ""); len(l.names) > drawnLanes || len(p.Series) != len(laneParts) {
			t.Errorf("%d lanes", len(l.names))
		}
	}
}

// A tree whose requests have several sessions of the workload, which parents join, is one
// session: with the same figures as under one number.
func TestTreesOfSeveralSessions(t *testing.T) {
	for seed := range uint64(4) {
		rows := manySessions(rand.New(rand.NewPCG(seed, 31)), 120)
		split := slices.Clone(rows)
		rng := rand.New(rand.NewPCG(seed, 32))
		subs := 0
		of := map[int64]int64{} // session of each row
		for i := range split {
			if r := &rows[i]; r.Session != nil {
				of[r.RowID] = *r.Session
			}
		}
		for i := range split {
			r := &split[i]
			if r.Session == nil {
				continue
			}
			under := slices.ContainsFunc(r.Parents, func(p int64) bool { s, ok := of[p]; return ok && p < r.RowID && s == *r.Session })
			number := 10 * *r.Session
			if under && rng.IntN(3) == 0 {
				number += 1 + rng.Int64N(9)
				subs++
			}
			r.Session = &number
		}
		if subs < 30 {
			t.Fatalf("%d requests under another number", subs)
		}
		cut := func(session int64) result.Run {
			return result.Run{Sending: result.Sending{Cut: &result.CutSessions{Sessions: []result.SessionKey{{Session: session}}}}}
		}
		one, several := summarise(t, cut(6), Options{}, rows...), summarise(t, cut(60), Options{}, split...)
		if one.Sessions.Sessions < 20 || !reflect.DeepEqual(one.Sessions, several.Sessions) || !reflect.DeepEqual(one.ByDepth, several.ByDepth) {
			t.Errorf("seed %d: under one number\n%+v\nunder several\n%+v", seed, one.Sessions, several.Sessions)
		}
	}
}

// Prometheus and runs beside each other have what the summary has of sessions.
func TestSessionsInFormats(t *testing.T) {
	s := summarise(t, result.Run{}, Options{}, manySessions(rand.New(rand.NewPCG(1, 33)), 120)...)
	o := s.Sessions
	all := families(t, written(t, WritePrometheus, s))
	for _, c := range []struct {
		name, label string
		want        float64
	}{
		{"reprise_session_time_seconds", "p50", *o.Completion.P50 / 1000},
		{"reprise_session_time_values", "", float64(o.Completion.Count)},
		{"reprise_sessions", "failed", float64(o.Failed)},
		{"reprise_session_success_ratio", "", *o.SuccessShare},
		{"reprise_session_path_seconds", "until_first_token", *o.Path.Prefill.MeanS},
		{"reprise_session_input_tokens", "mean", *o.Input.Mean},
	} {
		got := math.NaN()
		for _, m := range all[c.name].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == c.label || c.label == "" {
					got = m.GetGauge().GetValue()
				}
			}
		}
		if !(math.Abs(got-c.want) <= 1e-9*c.want) {
			t.Errorf("%s of %q: %v, want %v", c.name, c.label, got, c.want)
		}
	}
	var text bytes.Buffer
	if err := Overlay([]Named{{"one", s}, {"two", s}}).WriteText(&text, textpage.Options{Width: 80, Rest: "More."}); err != nil {
		t.Fatal(err)
	}
	_, figures, _ := strings.Cut(text.String(), "\n\n") // behind the reasons, which are whole
	want := inSeconds(o.Completion.P95)
	if line := regexp.MustCompile(`, p95 +` + want + ` +` + want).FindString(text.String()); line == "" || strings.Count(figures, "\n") > textpage.AnswerLines-4 {
		t.Errorf("no line with %s, or too many lines:\n%s", want, &text)
	}
	none := summarise(t, result.Run{}, Options{}, pagedAnswers(3)...)
	if all := families(t, written(t, WritePrometheus, none)); all["reprise_sessions"] != nil {
		t.Error("a run without sessions has some")
	}
}

// pagedAnswers are requests without a session.
func pagedAnswers(n int64) (out []result.Result) {
	for row := range n {
		out = append(out, resulttest.Answer(row, row, 0, 5, 9))
	}
	return out
}

// Tenants have the sums and the percentiles that the test finds itself, the most work first.
func TestTenants(t *testing.T) {
	var rows []result.Result
	waited := map[int64][]float64{}
	for ms := int64(0); ms < 120_000; ms += 50 {
		burst := ms >= 30_000 && ms < 42_000
		user := ms / 50 % 3
		if user == 0 && !burst && ms%1000 > 0 {
			continue // user 0 sends little but for its burst
		}
		wait := 40 + ms%7
		if burst {
			wait += 500
		}
		r := resulttest.Answer(int64(len(rows)), ms, 2, wait, wait+10, wait+20)
		r.User, r.Input, r.Cached = &user, trace.Ptr(int32(100)), trace.Ptr(int32(10*user))
		waited[user] = append(waited[user], float64(wait))
		rows = append(rows, r)
	}
	s := summarise(t, result.Run{}, Options{}, rows...)
	o := s.Tenants
	if o == nil || o.Tenants != 3 || len(o.Each) != 3 || o.Left != 0 {
		t.Fatalf("%+v", o)
	}
	share, work := 0.0, math.Inf(1)
	for _, of := range o.Each {
		n := int64(len(waited[of.User]))
		if of.Rows != n || of.Succeeded != n || of.Input != 100*n || *of.Cached != 10*of.User*n || *of.Uncached != (100-10*of.User)*n || of.Output != 3*n {
			t.Errorf("user %d: %+v", of.User, of)
		}
		slices.Sort(waited[of.User])
		if want := waited[of.User][n/2]; math.Abs(*of.TTFTP50-want) > 1 {
			t.Errorf("user %d: p50 %v, want %v", of.User, *of.TTFTP50, want)
		}
		share += *of.CostShare
		if mine := float64((100 - 10*of.User + 6) * n); mine > work {
			t.Errorf("user %d has more work than the one before", of.User)
		} else {
			work = mine
		}
	}
	if math.Abs(share-1) > 1e-5 {
		t.Errorf("shares of %v", share)
	}
	for i := range rows {
		rows[i].User = trace.Ptr(int64(4))
	}
	if s := summarise(t, result.Run{}, Options{}, rows...); s.Tenants != nil {
		t.Errorf("one user: %+v", s.Tenants)
	}
}
