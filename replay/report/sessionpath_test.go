package report

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

// playedTree is a random session as a run plays it: each request is due when its parents
// are over and its think and tool time have passed, or where the workload has none at the
// later of its recorded time and their ends. In open loop it is due at its recorded time.
func playedTree(rng *rand.Rand, n int, causal bool, speed float64) []result.Result {
	var out []result.Result
	for i := range n {
		r := result.Result{RowID: int64(3 + i), Session: trace.Ptr(int64(7)), ArrivalNS: trace.Ptr(int64(i) * rng.Int64N(40))}
		latest := int64(0)
		if i > 0 && rng.IntN(8) > 0 {
			for range 1 + rng.IntN(3)/2*rng.IntN(3) {
				p := max(0, i-1-rng.IntN(5))
				r.Parents = append(r.Parents, int64(3+p))
				latest = max(latest, *out[p].DoneNS)
			}
		}
		if rng.IntN(4) > 0 {
			r.ThinkNS = trace.Ptr(rng.Int64N(50))
		}
		if rng.IntN(3) > 0 {
			r.ToolNS = trace.Ptr(rng.Int64N(50))
		}
		pause, timed := int64(0), false
		for _, p := range []*int64{r.ThinkNS, r.ToolNS} {
			if p != nil {
				pause, timed = pause+int64(float64(*p)*(1/speed)), true
			}
		}
		switch {
		case !causal || r.Parents == nil || !timed:
			r.DueNS = int64(float64(*r.ArrivalNS) / speed)
			if causal {
				r.DueNS = max(r.DueNS, latest)
			}
		default:
			r.DueNS = latest + pause
		}
		at := r.DueNS + rng.Int64N(4)*rng.Int64N(3)
		r.SentNS = trace.Ptr(at)
		if rng.IntN(10) > 0 {
			at += rng.Int64N(30)
			r.FirstTokenNS, r.LastTokenNS = trace.Ptr(at), trace.Ptr(at)
		}
		r.DoneNS = trace.Ptr(at + rng.Int64N(60))
		out = append(out, r)
	}
	return out
}

// partsByInstant gives each instant of a session to a part by itself: it walks back from
// the end one nanosecond at a time, and keeps in mind only in which request it is.
func partsByInstant(rows []result.Result, run *result.Run) (parts [pathParts]int64) {
	byRow := map[int64]*result.Result{}
	begin, now := rows[0].DueNS, rows[0]
	for i := range rows {
		byRow[rows[i].RowID] = &rows[i]
		begin = min(begin, rows[i].DueNS)
		if *rows[i].DoneNS > *now.DoneNS {
			now = rows[i]
		}
	}
	parent := func(r *result.Result) *result.Result {
		var last *result.Result
		sorted := slices.Sorted(slices.Values(r.Parents))
		for _, p := range sorted {
			if q := byRow[p]; last == nil || *q.DoneNS > *last.DoneNS {
				last = q
			}
		}
		return last
	}
	low := now.DueNS                            // where the path was left for a gap
	for t := *now.DoneNS - 1; t >= begin; t-- { // the instant [t, t+1)
		var gapOf *result.Result
		for t < now.DueNS {
			p := parent(&now)
			gapOf = &now
			if p == nil || *p.DoneNS <= t {
				break // nothing of the path is under way
			}
			now, gapOf = *p, nil
			low = min(low, now.DueNS)
		}
		switch {
		case gapOf != nil && parent(gapOf) == nil:
			parts[pathWait]++
		case gapOf != nil:
			done := *parent(gapOf).DoneNS
			gap := low - done
			think, tool := int64(0), int64(0)
			if gapOf.ThinkNS != nil {
				think = int64(float64(*gapOf.ThinkNS) * (1 / run.Speed))
			}
			if gapOf.ToolNS != nil {
				tool = int64(float64(*gapOf.ToolNS) * (1 / run.Speed))
			}
			if think+tool > gap {
				think = int64(float64(gap) * (float64(think) / float64(think+tool)))
				tool = gap - think
			}
			switch at := t - done; {
			case at < think:
				parts[pathThink]++
			case at < think+tool:
				parts[pathTool]++
			default:
				parts[pathWait]++
			}
		case t < *now.SentNS:
			parts[pathClient]++
		case now.FirstTokenNS == nil || t < *now.FirstTokenNS:
			parts[pathPrefill]++
		default:
			parts[pathDecode]++
		}
	}
	return parts
}

// partsOf adds up the steps of a path, which leave no instant out and have none twice.
func partsOf(t *testing.T, rows []result.Result, run *result.Run) (parts [pathParts]int64, length int64) {
	t.Helper()
	c := sessionCollector{limit: sessionRequests}
	for i := range rows {
		end, _ := OutcomeOf(&rows[i])
		c.add(&rows[i], end, false, false, 0)
	}
	all, _ := c.sessions(run)
	if len(all) != 1 {
		t.Fatalf("%d sessions", len(all))
	}
	var steps []pathStep
	all[0].path(run, func(s pathStep) { steps = append(steps, s); parts[s.part] += s.to - s.from })
	slices.SortFunc(steps, func(a, b pathStep) int { return int(a.from - b.from) })
	at := all[0].start
	for _, s := range steps {
		if s.from != at || s.to <= s.from {
			t.Fatalf("a step from %d to %d after %d", s.from, s.to, at)
		}
		at = s.to
	}
	if at != all[0].end {
		t.Fatalf("the path ends at %d, the session at %d", at, all[0].end)
	}
	return parts, at - all[0].start
}

// Every instant of a session belongs to the part that a walk back by single nanoseconds
// finds, whatever the schedule, the speed and the shape of the tree.
func TestCriticalPathByInstant(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 81))
		run := &result.Run{Load: result.Load{Speed: []float64{1, 0.5, 3}[seed%3]}}
		rows := playedTree(rng, 2+rng.IntN(14), seed%4 > 0, run.Speed)
		if !slices.ContainsFunc(rows, func(r result.Result) bool { return r.Parents != nil }) {
			continue
		}
		got, _ := partsOf(t, rows, run)
		if want := partsByInstant(rows, run); got != want {
			t.Fatalf("seed %d: parts %v, want %v", seed, got, want)
		}
	}
}

// In a causal tree whose think times are known, the critical path is the longest of all
// ways from the root to a leaf.
func TestCriticalPathIsTheLongest(t *testing.T) {
	judged := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 82))
		rows := playedTree(rng, 2+rng.IntN(11), true, 1)
		children := map[int64][]int{}
		for i := range rows {
			r := &rows[i]
			if i > 0 && r.Parents == nil {
				r.Parents = []int64{rows[0].RowID}
			}
			if r.ThinkNS == nil {
				r.ThinkNS = trace.Ptr(rng.Int64N(9))
			}
			latest, due := int64(0), int64(0)
			for _, p := range r.Parents {
				latest = max(latest, *rows[p-3].DoneNS)
			}
			if i > 0 {
				due = latest + *r.ThinkNS
				if r.ToolNS != nil {
					due += *r.ToolNS
				}
			}
			shift(r, due-r.DueNS)
			for _, p := range slices.Compact(slices.Sorted(slices.Values(r.Parents))) {
				children[p] = append(children[p], i)
			}
		}
		var best [pathParts]int64
		longest, ways := int64(-1), 0
		var walk func(i int, parts [pathParts]int64)
		walk = func(i int, parts [pathParts]int64) {
			r, at := &rows[i], rows[i].DueNS
			if i > 0 {
				parts[pathThink] += *r.ThinkNS
				if r.ToolNS != nil {
					parts[pathTool] += *r.ToolNS
				}
			}
			first := *r.DoneNS
			if r.FirstTokenNS != nil {
				first = *r.FirstTokenNS
			}
			parts[pathClient] += *r.SentNS - at
			parts[pathPrefill] += first - *r.SentNS
			parts[pathDecode] += *r.DoneNS - first
			length := int64(0)
			for _, ns := range parts {
				length += ns
			}
			switch {
			case length > longest:
				longest, ways, best = length, 1, parts
			case length == longest:
				ways++
			}
			for _, c := range children[r.RowID] {
				walk(c, parts)
			}
		}
		walk(0, [pathParts]int64{})
		got, length := partsOf(t, rows, &result.Run{Load: result.Load{Speed: 1}})
		if length != longest {
			t.Fatalf("seed %d: the session took %d, the longest way %d", seed, length, longest)
		}
		if ways == 1 {
			if judged++; got != best {
				t.Fatalf("seed %d: parts %v, want %v", seed, got, best)
			}
		}
	}
	if judged < 200 {
		t.Errorf("%d trees with one longest way only", judged)
	}
}

// shift moves a request in time.
func shift(r *result.Result, by int64) {
	r.DueNS += by
	for _, at := range []*int64{r.SentNS, r.FirstTokenNS, r.DoneNS} {
		if at != nil {
			*at += by
		}
	}
	r.LastTokenNS = r.FirstTokenNS
}
