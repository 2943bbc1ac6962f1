package synth

import (
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/longtest"
	"reprise/trace/profile"
)

// The rows of a model and a seed are the same on every machine. The digest was
// written down on amd64; the times of the trace are whole numbers here, since
// fitting may use floating point and generating may not.
func TestWorkloadIsAFunctionOfModelAndSeed(t *testing.T) {
	rows := talk{block: 16, models: 2, sessions: true, users: 3}.rows(1, 500)
	for i := range rows {
		rows[i].ArrivalNS = int64(i/7) * 333_000_000
	}
	uneven := slices.Clone(rows)
	for i := range uneven {
		uneven[i].ArrivalNS += int64(i%7*(i%7)) * 9_000_001
	}
	m := fitted(t, rows, trace.Meta{BlockSize: 16}, 1, 0)
	const want = "sha256:3553185c6508503a273d002a8693ba04ebd209d3f127b151c8551dc376202e8e"
	digest := map[string]bool{}
	for _, o := range []Options{{Seed: 1}, {Seed: 2}, {Seed: 1, Users: 2}, {Seed: 1, Requests: 1100}, {Seed: 1, Speed: 3}} {
		m := fitted(t, uneven, trace.Meta{BlockSize: 16}, 1, 0)
		a, b := rowDigest(generated(t, m, o)), rowDigest(generated(t, m, o))
		if a != b {
			t.Errorf("%+v: two runs differ", o)
		}
		digest[a] = true
	}
	if len(digest) != 5 {
		t.Errorf("%d different workloads of 5 options", len(digest))
	}
	if got := rowDigest(generated(t, m, Options{Seed: 1, Users: 2, Requests: 1500, Speed: 1.7})); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}

// More of what a seed stands for: sessions of the source, inferred ones and none, users with
// arrivals of their own, several cache domains, requests without a session or without
// blocks, and all columns.
func TestWorkloadsAreTheSameEverywhere(t *testing.T) {
	whole := func(rows []trace.Request) []trace.Request {
		for i := range rows {
			rows[i].ArrivalNS = int64(i/7) * 333_000_000
		}
		return rows
	}
	columns := whole(everyColumn(2600))
	bare := whole(talk{block: 16, models: 2, sessions: true, users: 5}.rows(2, 600))
	for i := range bare {
		bare[i].Blocks = nil
		if i%7 == 0 {
			bare[i].Session, bare[i].User = nil, nil
		}
	}
	mixed := whole(talk{block: 16, models: 2, sessions: true, users: 4}.rows(3, 600))
	for i := range mixed {
		if i%5 == 0 {
			mixed[i].Session = nil
		}
		if i%11 == 0 {
			mixed[i].Blocks, mixed[i].InputTokens = nil, 0
		}
	}
	uneven := talk{block: 16, models: 2, sessions: true, users: 4}.rows(4, 600)
	for i := range uneven {
		uneven[i].ArrivalNS = int64(i/9)*700_000_000 + int64(i%9*(i%9))*9_000_001
	}
	for name, c := range map[string]struct {
		rows []trace.Request
		meta trace.Meta
		o    Options
		want string
	}{
		"every column":       {columns, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}, Options{Seed: 3, Requests: 900, Users: 2, Speed: 0.7}, "sha256:ed8cf5549876aab7dc8e3f459b9936c5e2a8ef989f69a9ba70d65d59fd86cfac"},
		"without blocks":     {bare, trace.Meta{Sessions: sessionsOfSource}, Options{Seed: 4, Users: 2}, "sha256:96ca493a6899c12e42a85e7ad79e36f8aeba184ab7a0c5cbd9813f0d921042e3"},
		"some sessions":      {mixed, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}, Options{Seed: 5, Requests: 1300}, "sha256:6b44d4810894740fe8ccfc064cafcde79b8a040a02c79878fd27f2a3369d2dd0"},
		"no sessions":        {whole(talk{block: 16, models: 3, users: 4, failed: true}.rows(6, 700)), trace.Meta{BlockSize: 16}, Options{Seed: 6, Users: 3, Requests: 1200}, "sha256:888701d5318a30bc21a487b0cfecdf10c3ebcf76df13227bb2fcc5324d434c21"},
		"a duration":         {whole(talk{block: 4, models: 1}.rows(7, 900)), trace.Meta{BlockSize: 4}, Options{Seed: 7, Duration: time.Minute, Speed: 1.3}, "sha256:70a7eaea5f09635dc9e3a239d63124a49a8134121a912da10963454c8b27adeb"},
		"blocks of one word": {whole(talk{block: 1, models: 2, sessions: true}.rows(8, 500)), trace.Meta{BlockSize: 1, Sessions: sessionsInferred}, Options{Seed: 8}, "sha256:e11a9897f93f859ad4d69d9289631ab875a3f249eab2e0481b4e617fdd978f52"},
		"uneven gaps":        {uneven, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource}, Options{Seed: 10}, "sha256:0624b8417a833cc9adeb4cfcc4c838231f57b67cc571c027931109e04d6a920b"},
		"great blocks":       {whole(talk{block: 512, models: 1}.rows(9, 500)), trace.Meta{BlockSize: 512}, Options{Seed: 9, Requests: 1500}, "sha256:3c05e274457f81efcdb4c7f6dba0b99222a9f01e87d66ad1bcd536aa12aee238"},
	} {
		if got := rowDigest(generated(t, fitted(t, c.rows, c.meta, 1, 0), c.o)); got != c.want {
			t.Errorf("%s: the digest is %s, want %s", name, got, c.want)
		}
	}
}

// A row says all that its tuple says, and to which session it belongs.
func TestWorkloadRows(t *testing.T) {
	first, second := aRow(), aRow()
	first.Builds, first.Parent, first.Hit, first.ParentHit, first.ParentFull, first.ParentBlocks = "opens", nil, 0, 0, 0, 0
	first.Join, first.After, first.Waits, first.ThinkNS, first.ToolNS = int32(begins), nil, false, nil, nil
	first.Stream, first.Fresh, first.Tail = trace.Ptr(false), 4, 16
	second.Builds, second.Hit, second.ParentHit, second.ParentFull, second.ParentBlocks = "branches", 2, 0, 4, 4
	second.Join, second.After, second.User = int32(byParent), nil, trace.Ptr(int64(5))
	bare := modelRow{Table: tablePlaces, Builds: "opens"}
	rows := generated(t, modelOf(t, []modelRow{first, second, bare}), Options{Speed: 2})
	want := trace.Request{ArrivalNS: rows[0].ArrivalNS, Session: trace.Ptr(int64(0)), Turn: trace.Ptr(int32(0)), User: trace.Ptr(int64(0)), Model: "m", Adapter: "a", Kind: "chat",
		Class: trace.Ptr("batch"), Stream: trace.Ptr(false), Temperature: trace.Ptr(float32(0.5)), Category: trace.Cold, InputTokens: 64, OutputTokens: trace.Ptr[int32](13),
		ReasoningTokens: trace.Ptr(int32(14)), ImageTokens: trace.Ptr(int32(15)), Images: trace.Ptr(int32(16)), MaxTokens: trace.Ptr(int32(17)),
		Blocks: []uint64{0, 1, 2, 3}, Status: "ok", FinishReason: "stop", E2ENS: trace.Ptr(int64(18))}
	if !reflect.DeepEqual(rows[0], want) {
		t.Errorf("the first row is %+v, want %+v", rows[0], want)
	}
	want.ArrivalNS, want.Turn, want.Category, want.Stream, want.Parents = rows[1].ArrivalNS, trace.Ptr(int32(1)), trace.Continuation, trace.Ptr(true), []int64{0}
	want.ThinkNS, want.ToolNS, want.InputTokens, want.Blocks = trace.Ptr(int64(4)), trace.Ptr(int64(4)), 11*16+12, []uint64{0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	if !reflect.DeepEqual(rows[1], want) {
		t.Errorf("the second row is %+v, want %+v", rows[1], want)
	}
	if want := (trace.Request{ArrivalNS: rows[2].ArrivalNS}); !reflect.DeepEqual(rows[2], want) || len(rows) != 3 {
		t.Errorf("the last of %d rows is %+v, want %+v", len(rows), rows[2], want)
	}
}

// A next turn goes to a session whose pause may be over. Arrivals are drawn
// apart from sessions, so not every turn finds one.
func TestPausesFitArrivals(t *testing.T) {
	longtest.Skip(t)
	m := fitted(t, talk{block: 16, models: 1, sessions: true}.rows(3, 3000), trace.Meta{BlockSize: 16, Sessions: "source"}, 10, 1)
	rows := generated(t, m, Options{Seed: 1})
	later, early := 0, 0
	for i := range rows {
		if r := &rows[i]; r.ThinkNS != nil {
			later++
			if r.ArrivalNS-rows[r.Parents[0]].ArrivalNS < *r.ThinkNS {
				early++
			}
		}
	}
	if later < 1000 || early > later/7 {
		t.Errorf("%d of %d later turns come before their pause is over", early, later)
	}
}

// What a workload says of its rows is what profile finds: categories and, where
// they are inferred, sessions.
func TestProfileAgreesWithWorkload(t *testing.T) {
	longtest.Skip(t)
	for _, k := range []talk{
		{block: 16, models: 1}, {block: 16, models: 3, users: 4}, {block: 4, models: 2, failed: true}, {block: 1, models: 1},
		{block: 16, models: 2, sessions: true},
	} {
		options := []Options{{Seed: 2, Users: 3}, {Seed: 4, Requests: 90}}
		if longtest.On() {
			options = append(options, Options{Seed: 1}, Options{Seed: 3, Users: 7, Requests: 1000})
		}
		for _, o := range options {
			t.Run(fmt.Sprintf("%+v/%+v", k, o), func(t *testing.T) {
				m := fitted(t, k.rows(o.Seed, 400), trace.Meta{BlockSize: k.block}, 5, 1)
				w, err := m.Generate(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				rows := readAll(t, w.Reader())
				if int64(len(rows)) != w.Rows() {
					t.Fatalf("%d rows, want %d", len(rows), w.Rows())
				}
				wellFormed(t, rows, k.block)
				agrees(t, rows, k.block)
			})
		}
	}
}

func agrees(t *testing.T, rows []trace.Request, size int) {
	t.Helper()
	plain := slices.Clone(rows)
	c := profile.NewCategorizer(size, false)
	for i := range plain {
		if want := c.Category(&plain[i]); rows[i].Category != want {
			t.Fatalf("row %d is a %s; profile finds %s", i, rows[i].Category, want)
		}
	}
}

// wellFormed checks what every trace promises: order, dense ids, parents, and
// that each block has one place and one number of tokens.
func wellFormed(t *testing.T, rows []trace.Request, size int) {
	t.Helper()
	var blocks, sessions, users trace.Renumber
	type place struct {
		depth, tokens int
		up            uint64
		model         string
	}
	places := map[uint64]place{}
	last := int64(0)
	for i, r := range rows {
		if r.ArrivalNS < last || i == 0 && r.ArrivalNS != 0 {
			t.Fatalf("row %d arrives at %d, after %d", i, r.ArrivalNS, last)
		}
		last = r.ArrivalNS
		if n := block.Count(int(r.InputTokens), size); n != len(r.Blocks) {
			t.Fatalf("row %d has %d blocks for %d tokens", i, len(r.Blocks), r.InputTokens)
		}
		up := uint64(math.MaxUint64)
		for d, b := range r.Blocks {
			if blocks.ID(b) != b {
				t.Fatalf("row %d: block %d is not numbered by first appearance", i, b)
			}
			p := place{d, min(size, int(r.InputTokens)-d*size), up, r.Model}
			if old, ok := places[b]; ok && old != p {
				t.Fatalf("row %d: block %d is %+v and was %+v", i, b, p, old)
			}
			places[b], up = p, b
		}
		if r.Session != nil && sessions.ID(uint64(*r.Session)) != uint64(*r.Session) || r.User != nil && users.ID(uint64(*r.User)) != uint64(*r.User) {
			t.Fatalf("row %d: session %d or user %d is not numbered by first appearance", i, opt(r.Session), opt(r.User))
		}
		for _, p := range r.Parents {
			if p < 0 || p >= int64(i) || opt(rows[p].Session) != opt(r.Session) {
				t.Fatalf("row %d of session %d has parent %d", i, opt(r.Session), p)
			}
		}
	}
}

// More users share what most of their requests begin with, and nothing else:
// each of them pushes the others' blocks deeper into the stack.
func TestUsersShareTheGlobalPrefix(t *testing.T) {
	var rows []trace.Request
	next := uint64(2)
	for i := range 600 {
		r := trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: 48, OutputTokens: trace.Ptr[int32](5), Blocks: []uint64{0, 1, next}}
		switch {
		case i%4 == 3: // without the prefix
			r.Blocks = []uint64{next, next + 1, next + 2}
		case i%4 == 2: // a next turn of the row before
			r.Blocks = append(slices.Clone(rows[i-1].Blocks), next)
			r.InputTokens = 64
		}
		next += 3
		rows = append(rows, r)
	}
	m := fitted(t, rows, trace.Meta{BlockSize: 16}, 1, 1)
	const users = 8
	w, err := m.Generate(t.Context(), Options{Seed: 1, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	got := readAll(t, w.Reader())
	if w.prefix != 2 {
		t.Fatalf("the global prefix has %d blocks, want 2", w.prefix)
	}
	roots := map[uint64]int{}
	for _, r := range got {
		roots[r.Blocks[0]]++
	}
	if most := slices.Max(slices.Collect(maps.Values(roots))); most != len(got)*3/4 {
		t.Errorf("%d of %d requests begin alike, want three quarters", most, len(got))
	}
	one, many := curveOf(generated(t, m, Options{Seed: 1}), 16), curveOf(got, 16)
	if d := math.Abs(many.infinite() - one.infinite()); many.refs != users*one.refs || d > 0.001 {
		t.Errorf("%d users hit %.4f of %.0f blocks, one %.4f of %.0f", users, many.infinite(), many.refs, one.infinite(), one.refs)
	}
	// The tuples' distance is 2 blocks here; among eight users it is 16 or so.
	depth := func(rows []trace.Request) (sum int64) {
		var stack []uint64
		for _, r := range rows {
			if r.Category == trace.Continuation {
				sum += int64(len(stack) - slices.Index(stack, r.Blocks[2]))
			}
			for _, b := range slices.Backward(r.Blocks) {
				if i := slices.Index(stack, b); i >= 0 {
					stack = slices.Delete(stack, i, i+1)
				}
				stack = append(stack, b)
			}
		}
		return sum
	}
	if a, b := depth(generated(t, m, Options{Seed: 1})), depth(got); b < 3*users*a {
		t.Errorf("the distances of continuations add up to %d, of one user's to %d", b, a)
	}
}

// Twice the speed is the same rows at half the times.
func TestSpeedDividesTimes(t *testing.T) {
	m := fitted(t, talk{block: 16, models: 1, sessions: true}.rows(1, 300), trace.Meta{BlockSize: 16}, 5, 1)
	slow, fast := generated(t, m, Options{Seed: 1}), generated(t, m, Options{Seed: 1, Speed: 4})
	thinks := 0
	for i := range slow {
		s, f := slow[i], fast[i]
		if f.ArrivalNS != s.ArrivalNS/4 || !slices.Equal(s.Blocks, f.Blocks) || (s.ThinkNS == nil) != (f.ThinkNS == nil) {
			t.Fatalf("row %d is %+v, slow %+v", i, f, s)
		}
		if s.ThinkNS != nil {
			if thinks++; *f.ThinkNS != *s.ThinkNS/4 {
				t.Fatalf("row %d thinks %d ns, slow %d", i, *f.ThinkNS, *s.ThinkNS)
			}
		}
	}
	if thinks < 50 {
		t.Errorf("only %d think times", thinks)
	}
}

func TestAmounts(t *testing.T) {
	rows := talk{block: 16, models: 1}.rows(1, 400)
	m := fitted(t, rows, trace.Meta{BlockSize: 16}, 1, 1)
	span := time.Duration(rows[399].ArrivalNS)
	for name, c := range map[string]struct {
		o        Options
		requests int
		span     time.Duration
	}{
		"as fitted":       {Options{}, 400, span},
		"half":            {Options{Requests: 200}, 200, span / 2},
		"thrice":          {Options{Requests: 1200}, 1200, 3 * span},
		"a duration":      {Options{Duration: span / 2}, 200, span / 2},
		"a fast duration": {Options{Duration: span / 2, Speed: 2}, 400, span / 2},
		"users":           {Options{Users: 3}, 1200, span},
		"users, half":     {Options{Users: 3, Requests: 600}, 600, span / 2},
		"fast":            {Options{Speed: 2}, 400, span / 2},
		"few for users":   {Options{Users: 3, Requests: 2}, 2, 0},
	} {
		got := generated(t, m, c.o)
		if d := len(got) - c.requests; d < -2 || d > 2 {
			t.Errorf("%s: %d requests, want %d", name, len(got), c.requests)
		}
		if d := time.Duration(got[len(got)-1].ArrivalNS) - c.span; d.Abs() > span/15 {
			t.Errorf("%s: it takes %v, want %v", name, d+c.span, c.span)
		}
	}
	for name, o := range map[string]Options{
		"both":       {Requests: 1, Duration: 1},
		"negative":   {Requests: -1},
		"backwards":  {Speed: -1},
		"no number":  {Speed: math.NaN()},
		"infinite":   {Speed: math.Inf(1)},
		"too slow":   {Speed: 1e-300},
		"too short":  {Duration: 1},
		"too long":   {Duration: math.MaxInt64, Speed: 1e10},
		"too many":   {Requests: math.MaxInt64},
		"together":   {Requests: 3 << 30, Users: 4},
		"many users": {Users: 1 << 20},
	} {
		if _, err := m.Generate(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Sessions of the source keep the lengths that they had, their parents and
// their think times; without blocks as well, where nothing but how long ago it
// was active tells a session.
func TestSessionsOfTheSource(t *testing.T) {
	longtest.Skip(t)
	rows := talk{block: 16, models: 1, sessions: true, users: 5}.rows(1, 3000)
	bare := slices.Clone(rows)
	for i := range bare {
		bare[i].Blocks = nil
	}
	for name, c := range map[string]struct {
		rows []trace.Request
		size int
	}{"with blocks": {rows, 16}, "without blocks": {bare, 0}} {
		meta := trace.Meta{BlockSize: c.size, Sessions: sessionsOfSource}
		got := generated(t, fitted(t, c.rows, meta, 10, 1), Options{Seed: 1})
		f := Compared(t, meta, c.rows, meta, got)
		for name2, limit := range map[string]float64{"turns_ks": 0.05, "think_ks": 0.05, "input_ks": 0.035, "output_ks": 0.035} {
			if d := f.Distance[name2]; d == nil || *d > limit {
				t.Errorf("%s: %s is %v, want at most %g", name, name2, opt2(d), limit)
			}
		}
		parents := [2]int{}
		for i := range c.rows {
			parents[0] += len(c.rows[i].Parents)
			parents[1] += len(got[i].Parents)
		}
		if d := parents[0] - parents[1]; d < -30 || d > 30 {
			t.Errorf("%s: %d rows have a parent, want %d", name, parents[1], parents[0])
		}
		users := map[int64]int64{}
		for i := range got {
			s := *got[i].Session
			if u, ok := users[s]; ok && u != *got[i].User {
				t.Fatalf("%s: session %d has users %d and %d", name, s, u, *got[i].User)
			}
			users[s] = *got[i].User
		}
	}
}

func opt2(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// Users keep about their places in the order: who goes home at half time does so.
func TestUsersKeepTheirTimes(t *testing.T) {
	rows := make([]trace.Request, 0, 6000)
	for i := range 6000 {
		r := trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: 100, OutputTokens: trace.Ptr[int32](5), User: trace.Ptr(int64(i % 3))}
		if i%3 == 0 && i > 3000 { // user 0 goes home at half time
			r.User = trace.Ptr(int64(4 + i%500))
		}
		rows = append(rows, r)
	}
	for _, k := range []int{1, 10} {
		got := generated(t, fitted(t, rows, trace.Meta{}, k, 0), Options{Seed: 1})
		late, early := map[int64]int{}, map[int64]int{}
		for _, r := range got {
			if r.ArrivalNS > 3100e9 {
				late[*r.User]++
			} else {
				early[*r.User]++
			}
		}
		busy, home := 0, 0
		for u, n := range early {
			if n > 500 && late[u] > 500 {
				busy++
			} else if n > 500 && late[u] == 0 {
				home++
			}
		}
		if busy != 2 || home != 1 {
			t.Errorf("k %d: %d users are busy all of the time and %d in the first half, want 2 and 1", k, busy, home)
		}
	}
}

// A workload without blocks keeps its lengths and what goes with what.
func TestWithoutBlocks(t *testing.T) {
	rows := talk{block: 16, models: 1}.rows(1, 4000)
	for i := range rows {
		rows[i].Blocks = nil
		rows[i].OutputTokens = trace.Ptr(rows[i].InputTokens/2 + *rows[i].OutputTokens)
	}
	meta := trace.Meta{}
	w, err := fitted(t, rows, meta, 10, 1).Generate(t.Context(), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := readAll(t, w.Reader())
	f := Compared(t, meta, rows, w.Meta(), got)
	for name, limit := range map[string]float64{"input_ks": 0.035, "output_ks": 0.035, "rho_input_output": 0.02} {
		if d := f.Distance[name]; d == nil || *d > limit {
			t.Errorf("%s is %v, want at most %g", name, opt2(d), limit)
		}
	}
	same := 0
	for i := range got {
		if got[i].InputTokens == rows[i].InputTokens {
			same++
		}
	}
	if same > len(rows)/20 {
		t.Errorf("%d of %d rows have the length of the row in their place", same, len(rows))
	}
	if got[5].Category != "" || got[5].Blocks != nil || w.Meta().Sessions != "" {
		t.Errorf("a row is %+v", got[5])
	}
}

// A workload reads in batches of any size, and again.
func TestWorkloadReads(t *testing.T) {
	m := fitted(t, talk{block: 16, models: 1}.rows(1, 100), trace.Meta{BlockSize: 16}, 1, 0)
	w, err := m.Generate(t.Context(), Options{Users: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := rowDigest(readAll(t, w.Reader()))
	for _, size := range []int{1, 7, 200, 1000} {
		r, d, n := w.Reader(), trace.NewDigest(), 0
		for batch := make([]trace.Request, size); ; {
			k, err := r.Read(batch)
			d.Add(batch[:k])
			if n += k; err == io.EOF {
				break
			}
		}
		if n != 200 || d.Sum() != want {
			t.Errorf("batches of %d give %d rows, or others", size, n)
		}
	}
	meta := w.Meta()
	if meta.Seed != "0" || meta.Digest != "" || meta.Convention != trace.PartialTail || !strings.HasPrefix(meta.SourceFormat, "synth of a trace, model ") {
		t.Errorf("the metadata are %+v", meta)
	}
}
