package synth

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
)

// A turn follows the one before it however late it comes. A request without a session follows what it builds on, or
// the one before on its template, only if it comes soon.
func TestFollowed(t *testing.T) {
	const k = 1
	templates := []template{{up: none, shared: true}, {up: none}}
	on := func(template int32) place {
		return place{template: template, link: link{class: opens, parent: none}, seat: seat{after: none}}
	}
	builds := func(parent int32, j join, after int32) place {
		return place{template: none, link: link{class: continues, parent: parent}, seat: seat{join: j, after: after}}
	}
	places := []place{on(1), on(1), on(0), on(0)}
	for range 40 {
		places = append(places, on(none))
	}
	places = append(places, builds(0, byParent, none), builds(43, joinless, none), builds(42, joinless, none), builds(1, byPlace, 2))

	places = append(places, builds(0, byParent, none), builds(44, byParent, none))
	times := make([]int64, len(places))
	for i := range times {
		times[i] = int64(i)
	}
	times[48], times[49] = 100, 101

	// By place; 46 comes too late, all have the template of 2 and 3, and 49 comes soon after 48, of its session.
	want := map[int]int32{1: 0, 44: 0, 45: 43, 47: 2, 48: 0, 49: 48}
	for i, got := range followed(places, templates, times, k) {
		up, ok := want[i]
		if !ok {
			up = none
		}
		if got != up {
			t.Errorf("place %d follows %d, want %d", i, got, up)
		}
	}
	spread := []place{on(1), on(none), on(1), on(none), on(1), on(none), on(1)}
	at := make([]int64, len(spread))
	if got, _ := groupHeads(spread, templates, followed(spread, templates, at, 10), at, 10); len(got) != len(spread) {
		t.Errorf("requests on a template that come evenly follow each other: heads %v", got)
	}
}

// Requests on a template are clumps where they come at once again and again, however many others come meanwhile, and
// none where they come by chance or share the template with all.
func TestClumpsAreFoundByTime(t *testing.T) {
	const k, second = 10, int64(1e9)
	r := rand.New(rand.NewPCG(5, 6))
	templates := []template{{up: none}, {up: none}, {up: none, shared: true}}
	at := map[int32][]int64{}
	for i := range int64(20) {
		for range 4 {
			at[0] = append(at[0], i*300*second+r.Int64N(3*second)) // a job each five minutes
			at[2] = append(at[2], i*300*second+r.Int64N(3*second))
		}
	}
	for range 200 {
		at[1] = append(at[1], r.Int64N(6000*second))
	}
	var places []place
	var times []int64
	for template, of := range at {
		slices.Sort(of)
		for _, at := range of {
			opened := link{class: opens, parent: none}
			places = append(places, place{template: template, link: opened, seat: seat{after: none}})
			times = append(times, at)
		}
	}
	order := byTime(times)
	sorted, instants := make([]place, len(places)), make([]int64, len(places))
	for i, d := range order {
		sorted[i], instants[i] = places[d.place], d.key
	}

	follows := followed(sorted, templates, instants, k)
	counts := map[int32]int{}
	for i, up := range follows {
		if up != none {
			counts[sorted[i].template]++
			if sorted[up].template != sorted[i].template || instants[i]-instants[up] > 3*second {
				t.Errorf("place %d follows one %d ns before", i, instants[i]-instants[up])
			}
		}
	}
	if counts[0] != 60 || counts[1] != 0 || counts[2] != 0 {
		t.Errorf("%v follow, by template; 60 of the first template have to", counts)
	}

	heads, group := groupHeads(sorted, templates, follows, instants, k)
	clocked := 0
	for head, g := range group {
		if g == 1 && sorted[heads[head]].template == 0 {
			clocked++
		}
	}
	if clocked != 20 {
		t.Errorf("%d of 20 jobs come by a clock", clocked)
	}
	for i, at := range blurredHeads(heads, group, instants, k, r) {
		if early := at % (300 * second); group[i] == 1 && early > 30*second && early < 270*second {
			t.Errorf("a job of five minutes comes %d s after one", early/second)
		}
	}
}

// A prompt follows the one that it repeats, however many come between, where many repeats come after that pause.
func TestRetriesFollowAfterACommonPause(t *testing.T) {
	const k = 10
	r := rand.New(rand.NewPCG(7, 8))
	var places []place
	var times []int64
	for i := range int32(400) {
		places = append(places, place{template: none, link: link{class: opens, parent: none}, seat: seat{after: none}})
		times = append(times, int64(i)*1e8)
	}
	for i := range int32(200) { // half of them three seconds later, the others some time
		pause := int64(3e9)
		if i%2 == 1 {
			pause = 10e9 + r.Int64N(20e9)
		}
		places = append(places, place{template: none, link: link{class: repeats, parent: i}, seat: seat{after: none}})
		times = append(times, times[i]+pause)
	}
	for i, up := range followed(places, nil, times, k) {
		if want := i >= 400 && i%2 == 0; (up != none) != want {
			t.Fatalf("place %d follows %d", i, up)
		}
	}
}

// What follows comes as long after the other one, nothing before what it builds on, and nothing after the end.
func TestTimed(t *testing.T) {
	places := make([]place, 7)
	for i := range places {
		places[i] = place{link: link{parent: none}, seat: seat{after: none}}
	}
	places[1].parent, places[2].after, places[4].parent, places[6].parent = 0, 1, 3, 0
	follows := []int32{none, 0, 1, none, 3, none, none}
	times := []int64{0, 5, 6, 20, 50, 60, 100}
	for name, c := range map[string]struct{ heads, want []int64 }{
		"as they were":      {[]int64{0, 20, 60, 100}, times},
		"heads moved":       {[]int64{20, 0, 60, 100}, []int64{20, 25, 26, 0, 30, 60, 100}},
		"before its parent": {[]int64{0, 20, 100, 60}, []int64{0, 5, 6, 20, 50, 100, 60}},
		"long after it":     {[]int64{60, 0, 20, 20}, []int64{60, 65, 66, 0, 30, 20, 60}}, // 160 is as far beyond 100 as 40 is before
		"beyond the end":    {[]int64{20, 90, 60, 100}, []int64{20, 25, 26, 90, 90, 60, 100}},
	} {
		got := timed(places, follows, follows, times, gapsTo(follows, times), c.heads)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Gaps are exchanged with those about as long in their window, whose sum stays; a lone one is jittered, by whole units
// of the clock; nothing and equal gaps stay.
func TestGapsAreBlurred(t *testing.T) {
	const k, unit, window = 10, 1_000_000, gapsTogether * 10
	r := rand.New(rand.NewPCG(1, 2))
	gaps := make([]int64, 3000)
	for i := range gaps {
		switch i % 25 {
		case 7:
			gaps[i] = 0
		case 13:
			gaps[i] = unit * int64(100_000+r.IntN(900_000))
		default:
			gaps[i] = unit * int64(r.ExpFloat64()*500)
		}
	}

	got := blurred(gaps, k, r)
	sum := func(gaps []int64) (sum int64) {
		for _, gap := range gaps {
			sum += gap
		}
		return sum
	}
	moved := 0
	for i := range gaps {
		if from := i / window * window; i == from && sum(got[from:from+window]) != sum(gaps[from:from+window]) {
			t.Fatalf("the window from %d has another sum", from)
		}
		if was := gaps[i]; got[i] < was-was/gapsAlike || got[i] > was+was/gapsAlike+1 {
			t.Fatalf("gap %d was %d and is %d", i, was, got[i])
		}
		if got[i]%unit != 0 {
			t.Fatalf("gap %d is %d, no whole unit of the clock", i, got[i])
		}
		if got[i] != gaps[i] {
			moved++
		}
	}
	if moved < len(gaps)/2 {
		t.Errorf("%d of %d gaps changed", moved, len(gaps))
	}
}

// Samples of one prompt within milliseconds, turns of sessions and jobs of a clock come so in the workload as well,
// though heads move.
func TestBurstsAreKept(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var rows []trace.Request
	next, session := uint64(1000), int64(0)
	fresh := func(n int) (blocks []uint64) {
		for range n {
			blocks = append(blocks, next)
			next++
		}
		return blocks
	}
	request := func(at int64, blocks []uint64) trace.Request {
		out := 20 + r.Int32N(200)
		return trace.Request{ArrivalNS: at, InputTokens: int32(16 * len(blocks)), OutputTokens: &out, Blocks: blocks, Status: trace.StatusOK}
	}
	job := fresh(6)
	for i := range 300 {
		at := int64(i)*2e9 + r.Int64N(1e9)
		prompt := fresh(4 + r.IntN(5))
		for s := range int64(4) { // samples of one prompt
			rows = append(rows, request(at+s*1e6, prompt))
		}
		turns := fresh(3 + r.IntN(4))
		for turn := range int32(3) {
			q := request(at+int64(turn)*7e9+r.Int64N(1e9), slices.Clone(turns))
			q.Session, q.Turn = trace.Ptr(session), trace.Ptr(turn)
			rows, turns = append(rows, q), append(turns, fresh(2)...)
		}
		if session++; i%30 == 0 { // jobs at once
			for range 8 {
				rows = append(rows, request(int64(i)*2e9, append(slices.Clone(job), fresh(1)...)))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(max(-1, min(1, a.ArrivalNS-b.ArrivalNS))) })

	soon := func(rows []trace.Request) (samples, turns, jobs int) {
		last, began := map[uint64]int64{}, map[int64]int64{}
		for i := range rows {
			q := &rows[i]
			end := q.Blocks[len(q.Blocks)-1]
			if at, known := last[end]; known && q.ArrivalNS-at <= 1e6 {
				samples++
			}
			if q.Session != nil {
				if at, known := began[*q.Session]; known && q.ArrivalNS-at > 5e9 && q.ArrivalNS-at < 9e9 {
					turns++
				}
				began[*q.Session] = q.ArrivalNS
			}
			if at, known := last[q.Blocks[0]]; known && len(q.Blocks) == 7 && q.ArrivalNS == at {
				jobs++
			}
			last[end], last[q.Blocks[0]] = q.ArrivalNS, q.ArrivalNS
		}
		return samples, turns, jobs
	}
	wantSamples, wantTurns, wantJobs := soon(rows)
	m := fitted(t, rows, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}, 10, 1)
	for seed := range uint64(3) {
		samples, turns, jobs := soon(generated(t, m, Options{Seed: seed}))
		if samples < wantSamples*98/100 || turns < wantTurns*95/100 || jobs < wantJobs*3/4 || wantJobs < 50 {
			t.Errorf("%d samples, %d turns and %d jobs come soon, want %d, %d and %d", samples, turns, jobs, wantSamples, wantTurns, wantJobs)
		}
	}
	if samples, _, _ := soon(generated(t, m, Options{Seed: 1, Requests: int64(len(rows)) - 1})); samples > wantSamples*9/10 {
		t.Errorf("%d samples come soon by the cascade, which cannot know them: the test tells nothing", samples)
	}
}
