package synth

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// aDay is what 4,000 users do alike in a capture of 24 s: a first turn that begins
// with a block that all know, a next turn 2.5 s later, and without a session the
// first prompt once more or, every other user, a new one. One user more has eleven
// first turns, without a session, and one request names no user.
func aDay() ([]trace.Request, trace.Meta) {
	const users = 4000
	const second = int64(1e9)
	var steps [3][]trace.Request
	for u := range int64(users) {
		own := func(n int) uint64 { return uint64(1 + 8*u + int64(n)) }
		user, session := trace.Ptr(u), trace.Ptr(u)
		first := []uint64{0, own(0), own(1)}
		steps[0] = append(steps[0], trace.Request{ArrivalNS: second, User: user, Session: session, InputTokens: 40, OutputTokens: 10, Blocks: first})
		steps[1] = append(steps[1], trace.Request{ArrivalNS: second * 7 / 2, User: user, Session: session, InputTokens: 70, OutputTokens: 100,
			Blocks: []uint64{0, own(0), own(2), own(3), own(4)}, ThinkNS: trace.Ptr(second), ToolNS: trace.Ptr(second / 2)})
		r := trace.Request{ArrivalNS: 5 * second, User: user, InputTokens: 40, OutputTokens: 300, Blocks: first}
		if u%2 == 0 {
			r.InputTokens, r.Blocks = 16, []uint64{own(5)}
		}
		steps[2] = append(steps[2], r)
	}
	for range 11 {
		steps[0] = append(steps[0], trace.Request{ArrivalNS: second, User: trace.Ptr(int64(users)), InputTokens: 40, OutputTokens: 10, Blocks: []uint64{0}})
	}
	rows := append(append(steps[0], steps[1]...), steps[2]...)
	rows = append(rows, trace.Request{ArrivalNS: 6 * second, InputTokens: 1, OutputTokens: 1, Blocks: []uint64{1 << 30}},
		trace.Request{ArrivalNS: 6 * second, InputTokens: 1, OutputTokens: 1, Status: trace.StatusFailed})
	return rows, trace.Meta{BlockSize: 16, Sessions: sessionsOfSource, Tokenizer: "o200k_base", Template: "chatml", SourceFormat: "jsonl, by hand",
		TimeUnit: "ms", Capture: trace.RelativeCapture(0, 24*time.Second)}
}

// tablesText lists the tables with the shares of each group in percent, without what
// is below a tenth.
func tablesText(m *cellModel) string {
	var b strings.Builder
	for k, t := range m.tables {
		for _, g := range t {
			fmt.Fprintf(&b, "%s %s", tableNames[k], g.category.named())
			if g.from != 0 || g.to != math.MaxInt64 {
				fmt.Fprintf(&b, " %d-%d", g.from, g.to)
			}
			b.WriteString(":")
			for _, c := range g.cells {
				if share := 100 * float64(c.count) / float64(g.total()); share < 0.1 {
					continue
				} else if k == int(tableDistance) || k == int(tableBack) { // computed, not counted
					fmt.Fprintf(&b, " %.3g-%.3g %.1f", float64(c.lo), float64(c.hi), share)
				} else {
					fmt.Fprintf(&b, " %d-%d %.1f", c.lo, c.hi, share)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// With a budget that needs no noise the tables are what counting gives, and the
// statement says what was done.
func TestPublicTablesAreCounts(t *testing.T) {
	rows, meta := aDay()
	budget := dp.Budget{Epsilon: 1e9, Delta: 1e-6}
	o := PublicOptions{Unit: UnitUser, Budget: budget, MaxInput: 100, MaxOutput: 400}
	fit := func(unit string, meta trace.Meta) (*Model, *Release) {
		t.Helper()
		o := o
		o.Unit, o.Noise = unit, noiseOf(1)
		m, r, spent, err := FitPublic(t.Context(), cloned(rows), meta, o)
		if err != nil || !spent {
			t.Fatal(err)
		}
		return m, r
	}
	check := func(name string, m *Model, want string) {
		t.Helper()
		if got := tablesText(m.cells); got != want {
			t.Errorf("%s: the tables are\n%s\nwant\n%s", name, got, want)
		}
	}
	m, r := fit(UnitUser, meta)
	check("with sessions", m, `time_ns any: 1000000000-1999999999 33.4 3000000000-3999999999 33.3 5000000000-5999999999 33.3
category any 1000000000-1999999999: 2-2 100.0
category any 3000000000-3999999999: 4-4 100.0
category any 5000000000-5999999999: 1-1 50.0 3-3 50.0
category any: 1-1 16.7 2-2 33.4 3-3 16.7 4-4 33.3
input_tokens cold: 16-19 100.0
input_tokens global: 40-47 100.0
input_tokens duplicate: 40-47 100.0
input_tokens continuation: 64-79 100.0
input_tokens any: 16-19 16.7 40-47 50.0 64-79 33.3
output_tokens any 16-31: 256-319 100.0
output_tokens any 32-63: 10-11 66.7 256-319 33.3
output_tokens any 64-100: 96-111 100.0
output_tokens any: 10-11 33.3 96-111 33.3 256-319 33.3
hit_blocks global 32-63: 1-1 100.0
hit_blocks global: 1-1 100.0
new_blocks continuation 64-100: 2-3 100.0
new_blocks continuation: 2-3 100.0
trunk_blocks any: 1-1 100.0
shared_blocks duplicate: 1-1 100.0
shared_blocks continuation: 1-1 100.0
shared_blocks any: 1-1 100.0
reuse_distance_blocks global 1-1: 1-8 81.1 9-14 15.3 15-26 3.4 27-51 0.1
reuse_distance_blocks global: 1-8 100.0
reuse_distance_blocks duplicate: 1.27e+04-2.27e+04 100.0
reuse_distance_blocks continuation: 1.27e+04-2.27e+04 100.0
reuse_distance_blocks branch: 1-7 0.1 1.27e+04-2.27e+04 99.9
turn cold: 0-0 100.0
turn global: 0-0 100.0
turn duplicate: 0-0 100.0
turn continuation: 1-1 100.0
turn any: 0-0 66.7 1-1 33.3
back_sessions global: 1-2 100.0
back_sessions duplicate: 4.1e+03-7.52e+03 100.0
back_sessions continuation: 4.1e+03-7.52e+03 100.0
back_sessions any: 1-2 0.1 4.1e+03-7.52e+03 99.9
pause_ns any: 1024000000-2047999999 100.0
`)
	if want := (trace.Meta{BlockSize: 16, Tokenizer: "o200k_base", Template: "chatml", SourceFormat: "jsonl", Tier: "public", Unit: "user",
		Card: m.meta.Card, CardHash: m.meta.CardHash, Digest: m.cellDigest()}); m.meta != want {
		t.Errorf("the metadata are %+v, want %+v", m.meta, want)
	}
	if m.span != 6e9 || m.cells.requests != 12012 || !m.cells.sessions || !m.sourced || m.kSwap != 1 {
		t.Errorf("%d requests in %d ns", m.cells.requests, m.span)
	}
	want := dp.Statement{Unit: "user", Protects: "one user with all requests; requests that name no user are one user's", Budget: budget, Mechanism: dp.Laplace,
		Contribution: dp.Contribution{Records: 8, PerCell: 2}, Clip: 64, CaptureNS: 24e9, MaxInput: 100, MaxOutput: 400, Public: []string{
			"the capture window of 24s that the operator declared, from whose begin all times count",
			"the limits of 100 input and 400 output tokens; longer requests are cut to these",
			"the edges of all cells: powers of two, quarter octaves for single lengths, 24 equal periods of the capture window",
			"that the source names sessions", "the block size of 16 tokens",
		}, Dropped: 0.001, // of 12,012 requests 12,003 were counted
		Selection:    &dp.Selected{Selection: dp.Selection{Scale: 1, Threshold: 2}, Budget: dp.Budget{Epsilon: 1e8, Delta: 5e-7}, NodesPerUnit: 8, Nodes: 1},
		Measurements: r.Measurements, Predicted: r.Predicted}
	if !reflect.DeepEqual(r.Statement, want) {
		t.Errorf("the statement is %+v, want %+v", r.Statement, want)
	}
	spent := 0.0
	for _, n := range r.Measurements {
		spent += n.Epsilon
	}
	if len(r.Measurements) != histograms || math.Abs(spent/0.9e9-1) > 1e-9 {
		t.Errorf("%d measurements cost %g", len(r.Measurements), spent)
	}
	if want := (Exact{Requests: 12012, Units: 4002, Unnamed: 1, NotSampled: 3, NotCounted: map[string]int64{"input": 6, "output": 6, "input by output": 6}}); !reflect.DeepEqual(r.Exact, want) {
		t.Errorf("left out were %+v, want %+v", r.Exact, want)
	}
	noSessions := meta
	noSessions.Sessions = ""
	m, r = fit(UnitUser, noSessions)
	check("without sessions", m, `time_ns any: 1000000000-1999999999 33.4 3000000000-3999999999 33.3 5000000000-5999999999 33.3
category any 1000000000-1999999999: 2-2 100.0
category any 3000000000-3999999999: 4-4 100.0
category any 5000000000-5999999999: 1-1 50.0 3-3 50.0
category any: 1-1 16.7 2-2 33.4 3-3 16.7 4-4 33.3
input_tokens cold: 16-19 100.0
input_tokens global: 40-47 100.0
input_tokens duplicate: 40-47 100.0
input_tokens continuation: 64-79 100.0
input_tokens any: 16-19 16.7 40-47 50.0 64-79 33.3
output_tokens any 16-31: 256-319 100.0
output_tokens any 32-63: 10-11 66.7 256-319 33.3
output_tokens any 64-100: 96-111 100.0
output_tokens any: 10-11 33.3 96-111 33.3 256-319 33.3
hit_blocks global 32-63: 1-1 100.0
hit_blocks global: 1-1 100.0
new_blocks continuation 64-100: 2-3 100.0
new_blocks continuation: 2-3 100.0
trunk_blocks any: 1-1 100.0
shared_blocks duplicate: 1-1 100.0
shared_blocks continuation: 1-1 100.0
shared_blocks any: 1-1 100.0
reuse_distance_blocks global 1-1: 1-8 81.1 9-14 15.3 15-26 3.4 27-51 0.1
reuse_distance_blocks global: 1-8 100.0
reuse_distance_blocks duplicate: 1.27e+04-2.28e+04 100.0
reuse_distance_blocks continuation: 1.27e+04-2.28e+04 100.0
reuse_distance_blocks branch: 1-7 0.1 1.27e+04-2.28e+04 99.9
turn cold: 0-0 100.0
turn global: 0-0 99.9
turn duplicate: 1-1 100.0
turn continuation: 1-1 100.0
turn any: 0-0 50.0 1-1 50.0
`)
	if r.Public[3] != "that the source names no sessions" || m.cells.sessions || m.sourced {
		t.Errorf("of sessions: %s", r.Public[3])
	}
	for i := range rows {
		rows[i].Blocks = nil
	}
	meta.BlockSize = 0
	m, r = fit(UnitRequest, meta)
	check("of single requests without blocks", m, `time_ns any: 1000000000-1999999999 33.4 3000000000-3999999999 33.3 5000000000-5999999999 33.3
category any 1000000000-1999999999: 0-0 100.0
category any 3000000000-3999999999: 0-0 100.0
category any 5000000000-5999999999: 0-0 100.0
category any: 0-0 100.0
input_tokens none: 16-19 16.7 40-47 50.0 64-79 33.3
input_tokens any: 16-19 16.7 40-47 50.0 64-79 33.3
output_tokens any 16-31: 256-319 100.0
output_tokens any 32-63: 10-11 66.7 256-319 33.3
output_tokens any 64-100: 96-111 100.0
output_tokens any: 10-11 33.4 96-111 33.3 256-319 33.3
`)
	if r.Exact.Unnamed != 0 || r.Exact.Units != 12012 || r.Selection != nil || len(r.Public) != 4 || r.Clip != 1 || r.Protects != "one request, not a person" {
		t.Errorf("the statement is %+v, %+v", r.Statement, r.Exact)
	}
}
