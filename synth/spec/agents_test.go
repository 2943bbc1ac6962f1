package spec_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/synth/spec"
	"reprise/trace"
)

const agentSpec = `
requests: 3000
block: 32
arrivals: poisson:0.5
answer: constant:3s
prefix: {global: 640}
lengths: {own: 'uniform:40..200', output: 'uniform:1..90'}
sessions:
  turns: uniform:1..3
  added: uniform:5..80
  think: exponential:10s
  calls: uniform:1..6
  result: uniform:100..300
  tool: exponential:2s
  compact: {above: 1500, to: 'uniform:700..900'}
  agents: {share: 0.3, count: 'uniform:1..3', calls: 'uniform:1..4', global: 320, own: 'uniform:20..50', result: constant:77, output: constant:33}
`

// Every row of an agent follows from its parents: in time, in length, in blocks. Sub-agents
// are sessions of their own that share their beginning, and their caller waits for all of
// them.
func TestSpecAgents(t *testing.T) {
	rows, s := rowsOf(t, agentSpec, 1)
	const answer = int64(3 * time.Second)
	first := map[int64]int{}   // rows of sessions
	starter := map[int64]int{} // by session of a sub-agent: the row that started it
	var joins, subs, compacted, tools, thinks int
	last := map[int64]int{}
	for i := range rows {
		r := &rows[i]
		if _, known := first[*r.Session]; !known {
			first[*r.Session] = i
			if *r.Turn != 0 {
				t.Fatalf("row %d begins a session with turn %d", i, *r.Turn)
			}
			if r.Parents == nil {
				if len(starter) == 0 && r.InputTokens < 640+40 || r.ThinkNS != nil || r.ToolNS != nil {
					t.Fatalf("row %d begins with %d tokens", i, r.InputTokens)
				}
				last[*r.Session] = i
				continue
			}
			// A sub-agent.
			from := int(r.Parents[0])
			if len(r.Parents) != 1 || *r.ToolNS != 0 || r.ArrivalNS != rows[from].ArrivalNS+answer || r.InputTokens < 320+20 || r.InputTokens > 320+50 || *r.OutputTokens != 33 {
				t.Fatalf("row %d, a sub-agent: %+v", i, r)
			}
			if subs > 0 && !slices.Equal(r.Blocks[:10], rows[first[slices.Min(keys(starter))]].Blocks[:10]) {
				t.Fatalf("row %d does not begin as other sub-agents do", i)
			}
			starter[*r.Session] = from
			subs++
			last[*r.Session] = i
			continue
		}
		before := last[*r.Session]
		was := &rows[before]
		last[*r.Session] = i
		if *r.Turn != *was.Turn+1 || int(r.Parents[0]) != before {
			t.Fatalf("row %d, turn %d, follows row %d and not %d", i, *r.Turn, r.Parents[0], before)
		}
		end := int64(0)
		for _, p := range r.Parents {
			end = max(end, rows[p].ArrivalNS+answer)
		}
		gap := int64(0)
		switch {
		case r.ThinkNS != nil && r.ToolNS == nil:
			gap = *r.ThinkNS
			thinks++
		case r.ToolNS != nil && r.ThinkNS == nil:
			gap = *r.ToolNS
			tools++
		default:
			t.Fatalf("row %d has no gap, or two", i)
		}
		if r.ArrivalNS != end+gap {
			t.Fatalf("row %d arrives %d ns after its parents, want %d", i, r.ArrivalNS-end, gap)
		}
		if len(r.Parents) > 1 {
			joins++
			var waits []int64
			for _, p := range r.Parents[1:] {
				if starter[*rows[p].Session] != before || last[*rows[p].Session] != int(p) {
					t.Fatalf("row %d waits for row %d, which is not the last of a sub-agent of row %d", i, p, before)
				}
				waits = append(waits, *rows[p].Session)
			}
			for session, from := range starter {
				if from == before && !slices.Contains(waits, session) {
					t.Fatalf("row %d does not wait for session %d", i, session)
				}
			}
		}
		_, isSub := starter[*r.Session]
		added := r.InputTokens - was.InputTokens - *was.OutputTokens
		lo, hi := int32(100), int32(300)
		switch {
		case isSub:
			lo, hi = 77, 77
		case r.ThinkNS != nil:
			lo, hi = 5, 80
		}
		if was.InputTokens+*was.OutputTokens+hi > 1500 && r.InputTokens >= 700 && r.InputTokens <= 900 && added < 0 {
			compacted++
			if !slices.Equal(r.Blocks[:20], rows[first[*r.Session]].Blocks[:20]) || r.Blocks[20] == was.Blocks[20] {
				t.Fatalf("row %d: a summary does not replace what follows the prefix", i)
			}
			continue
		}
		full := int(was.InputTokens) / s.Block
		if added < lo || added > hi || r.InputTokens > 1500 || !slices.Equal(r.Blocks[:full], was.Blocks[:full]) {
			t.Fatalf("row %d adds %d tokens to row %d", i, added, before)
		}
	}
	if joins < 50 || subs < 100 || compacted < 50 || tools < 500 || thinks < 100 {
		t.Errorf("%d joins, %d sub-agents, %d summaries, %d tool times and %d think times tell little", joins, subs, compacted, tools, thinks)
	}
}

// A call starts 256 sub-agents at most.
func TestAgentsAreBounded(t *testing.T) {
	rows, _ := rowsOf(t, strings.NewReplacer("count: 'uniform:1..3'", "count: 'constant:16777216'", "share: 0.3", "share: 1").Replace(agentSpec), 1)
	at := map[int64]int{}
	for i := range rows {
		if r := &rows[i]; *r.Turn == 0 && r.Parents != nil {
			at[r.Parents[0]]++
		}
	}
	for row, n := range at {
		if n > 256 {
			t.Errorf("row %d starts %d", row, n)
		}
	}
	if len(at) == 0 {
		t.Error("no row starts any")
	}
}

func keys[K comparable, V any](m map[K]V) (list []K) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

func TestBadAgentSpecs(t *testing.T) {
	for from, c := range map[string]struct{ to, want string }{
		"  tool: exponential:2s\n":            {"", "give calls and tool"},
		"  calls: uniform:1..6\n":             {"", "give calls and tool"},
		"  result: uniform:100..300":          {"  result: fish", "sessions.result: "},
		"above: 1500, ":                       {"", "give above"},
		"above: 1500":                         {"above: 1.5", "want a whole number"},
		"to: 'uniform:700..900'":              {"to: fish", "sessions.compact.to: "},
		"share: 0.3":                          {"share: 1.3", "sessions.agents.share: want above 0"},
		"count: 'uniform:1..3', ":             {"", "give count, calls and own"},
		"own: 'uniform:20..50'":               {"own: fish", "sessions.agents.own: "},
		"global: 320":                         {"global: -1", "sessions.agents.global: "},
		"requests: 3000\n":                    {"requests: 3000\nsources: {lengths.input: nowhere}\n", "lengths.input is not set in this specification"},
		"  agents: {share: 0.3, count: 'unif": {"  agents: {surprise: 1, count: 'unif", "surprise"},
	} {
		if !strings.Contains(agentSpec, from) {
			t.Fatalf("%q is not in the specification", from)
		}
		_, err := spec.Parse("bad.yaml", []byte(strings.Replace(agentSpec, from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.to, from, err, c.want)
		}
	}
	without := agentSpec[:strings.Index(agentSpec, "  calls:")] + agentSpec[strings.Index(agentSpec, "  compact:"):]
	if _, err := spec.Parse("bad.yaml", []byte(without)); err == nil || !strings.Contains(err.Error(), "need calls") {
		t.Errorf("agents without calls: %v", err)
	}
}

// A part takes from the sessions of the top level what its own do not say, and its
// parameters are listed with their sources.
func TestPartsTakeSessions(t *testing.T) {
	const text = `
requests: 50
arrivals: poisson:1
lengths: {own: 'constant:40', output: 'constant:5'}
sessions: {turns: 'constant:1', added: 'constant:7', think: constant:1s}
mix:
  - {share: 1, sessions: {turns: 'constant:3'}}
sources: {"mix[0].sessions.turns": "a book", arrivals: "a guess"}
`
	rows, s := rowsOf(t, text, 1)
	later := 0
	for i := range rows {
		if *rows[i].Turn > 0 {
			later++
			if was := rows[rows[i].Parents[0]]; rows[i].InputTokens-was.InputTokens-*was.OutputTokens != 7 || *rows[i].ThinkNS != 1e9 {
				t.Fatalf("row %d: %+v", i, rows[i])
			}
		}
	}
	if later < 20 {
		t.Errorf("%d later turns", later)
	}
	want := []spec.Parameter{{Key: "requests", Value: "50"}, {"block", "16", ""}, {"arrivals", "poisson:1", "a guess"}, {"lengths.own", "constant:40", ""},
		{"lengths.output", "constant:5", ""}, {"sessions.turns", "constant:1", ""}, {"sessions.added", "constant:7", ""}, {"sessions.think", "constant:1s", ""},
		{"mix[0].share", "1", ""}, {"mix[0].sessions.turns", "constant:3", "a book"}}
	if got := s.Parameters(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The built-in workload of agents has the published figures that its parameters come from,
// and those that it was not made to have as far as they are said here: over ninety days, so
// that long sessions come to their end.
func TestAgentsHavePublishedFigures(t *testing.T) {
	text, err := os.ReadFile("../../datasets/workloads/agents.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.Parse("agents.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	s.Block, s.Duration, s.Arrivals = 4096, 90*24*time.Hour, "poisson:0.0002" // fewer ids
	reader, err := s.Rows(1)
	if err != nil {
		t.Fatal(err)
	}
	type agent struct {
		requests, calls int
		sub, compacted  bool
		input, output   int32
		helped          bool
	}
	agents, callsOf := map[int64]*agent{}, []float64{} // calls after the first of each request
	var order []int64
	var input, output, tool, think, growth []float64
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	open := map[int64]int{} // by session: index into callsOf of its request
	compactions := 0
	err = trace.Each(reader, func(_ int64, r *trace.Request) error {
		a := agents[*r.Session]
		begins := a == nil
		if begins {
			a = &agent{sub: r.Parents != nil}
			agents[*r.Session] = a
			order = append(order, *r.Session)
		}
		input, output = append(input, float64(r.InputTokens)), append(output, float64(*r.OutputTokens))
		if len(r.Parents) > 1 {
			a.helped = true
		}
		if !a.sub {
			switch {
			case begins || r.ThinkNS != nil:
				a.requests++
				open[*r.Session] = len(callsOf)
				callsOf = append(callsOf, 0)
			default:
				callsOf[open[*r.Session]]++
			}
			if !begins {
				growth = append(growth, float64(r.InputTokens-a.input))
				if r.InputTokens < a.input-64_000 {
					a.compacted = true
					compactions++
				}
			}
		}
		if r.ThinkNS != nil {
			think = append(think, seconds(*r.ThinkNS))
		}
		if r.ToolNS != nil && *r.ToolNS > 0 {
			tool = append(tool, seconds(*r.ToolNS))
		}
		a.calls++
		a.input, a.output = r.InputTokens, *r.OutputTokens
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var requests, calls, subCalls []float64
	compacted, helped := 0.0, 0.0
	for _, id := range order {
		a := agents[id]
		if a.sub {
			subCalls = append(subCalls, float64(a.calls))
			continue
		}
		requests, calls = append(requests, float64(a.requests)), append(calls, float64(a.calls))
		if a.compacted {
			compacted++
		}
		if a.helped {
			helped++
		}
	}
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	at := func(x []float64, p float64) float64 {
		slices.Sort(x)
		return x[int(p*float64(len(x)-1))]
	}
	growing := slices.DeleteFunc(slices.Clone(growth), func(g float64) bool { return g <= 0 })
	n := float64(len(requests))
	for _, f := range []struct {
		what           string
		got, published float64
		within         float64 // a factor; 0 is only printed
	}{
		{"requests of a session, mean", mean(requests), 9.2, 1.25},
		{"requests of a session, p50", at(requests, 0.5), 1, 1},
		{"requests of a session, p90", at(requests, 0.9), 18, 1.25},
		{"requests of a session, p99", at(requests, 0.99), 137, 1.4},
		{"calls after the first of a request, mean", mean(callsOf), 7.8, 1.2},
		{"calls after the first of a request, p50", at(callsOf, 0.5), 1, 1},
		{"calls after the first of a request, p90", at(callsOf, 0.9), 20, 1.3},
		{"calls after the first of a request, p99", at(callsOf, 0.99), 86, 1.35},
		{"calls of a session, mean", mean(calls), 82.5, 1.25},
		{"calls of a session, p90", at(calls, 0.9), 152, 0},
		{"output, mean", mean(output), 523, 1.1},
		{"output, p50", at(output, 0.5), 210, 1.1},
		{"growth of a growing call, mean", mean(growing), 1750, 1.15},
		{"tool time, mean s", mean(tool), 16.8, 1.25},
		{"tool time, p50 s", at(tool, 0.5), 0.3, 1.1},
		{"tool time, p90 s", at(tool, 0.9), 13.6, 1.25},
		{"think time, p50 s", at(think, 0.5), 86, 1.1},
		{"think time, p90 s", at(think, 0.9), 1236, 1.1},
		{"think time, p99 s", at(think, 0.99), 50_040, 0},
		{"input, p10", at(input, 0.1), 43_475, 0},
		{"input, p50", at(input, 0.5), 109_903, 1.5},
		{"input, p90", at(input, 0.9), 300_118, 0},
		{"share of sessions with a compaction", compacted / n, 0.097, 2},
		{"compactions of those, mean", float64(compactions) / max(1, compacted), 3.7, 0},
		{"share of sessions with sub-agents", helped / n, 0.026, 1.5},
		{"calls of a sub-agent, mean", mean(subCalls), 10.7, 1.15},
	} {
		t.Logf("%-42s %10.4g, published %.4g", f.what, f.got, f.published)
		if apart := math.Abs(math.Log(f.got / f.published)); f.within > 0 && !(apart <= math.Log(f.within)+1e-9) {
			t.Errorf("%s is %v, published is %v", f.what, f.got, f.published)
		}
	}
	t.Logf("%d sessions, %d calls, %d sub-agents", len(requests), len(input), len(subCalls))
}
