package anonymize_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// agentTools are the definitions of an agent's tools.
func agentTools(agent int) trace.Text {
	var b strings.Builder
	for i := range 14 {
		fmt.Fprintf(&b, `,{"type":"function","function":{"name":"agent%d_tool%d","description":"does work number %d of agent %d, step by step","parameters":{"type":"object","properties":{"path":{"type":"string","description":"the path of a file"},"limit":{"type":"integer"}}}}}`, agent, i, i, agent)
	}
	return trace.NewText("[" + b.String()[1:] + "]")
}

// agentTalks are sessions of agents, in turn: each agent has its tools and its system
// prompt, of equal lengths.
func agentTalks(agents, sessions, turns int) (src []trace.Entry) {
	for s := range sessions {
		agent := s % agents
		head := text(fmt.Sprintf("rule of agent %d", 10+agent), 60)
		for _, e := range chat(fmt.Sprint("topic ", s), "u", 2_500*s, turns, 0) {
			e.Messages[0].Content, e.Parents, e.Model, e.Tools = head, nil, trace.NewText("m"), agentTools(10+agent)
			src = append(src, e)
		}
	}
	return src
}

// What the entries of agents still name tells their trunks apart, and is a trunk where no
// cached tokens tell of one: docs/evidence/inferred-reuse.md has the figures.
func TestTrunksByName(t *testing.T) {
	marker := trace.NewText("[REDACTED]")
	for _, c := range []struct {
		agents, sessions, turns int
		counted                 bool    // cached tokens are known
		before, curveBefore     float64 // the least error of the hit ratio and of the curve that shows without names
	}{
		{agents: 2, sessions: 40, turns: 2, counted: true, before: 0.005, curveBefore: 0.005},
		{agents: 40, sessions: 120, turns: 2, counted: true, before: 0.1, curveBefore: 0.1},
		{agents: 2, sessions: 40, turns: 2, before: 0.5, curveBefore: 0.5},
	} {
		src := agentTalks(c.agents, c.sessions, c.turns)
		rows, _ := run(t, policy(t), src)
		bare, _ := hidden(rows, 16, 1)
		if !c.counted {
			for i := range bare {
				bare[i].Cached = nil
			}
		}
		var capacities []int
		for _, share := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1} {
			distinct := map[uint64]bool{}
			for i := range rows {
				for _, id := range rows[i].Blocks {
					distinct[id] = true
				}
			}
			capacities = append(capacities, int(share*float64(len(distinct))))
		}
		exact, want := hitRatio(rows, 16), curve(rows, capacities)
		errors := func(how string, src []trace.Entry) (ratio, mae float64) {
			got, _ := run(t, policy(t), src)
			for i, hit := range curve(got, capacities) {
				if math.IsNaN(hit) { // no blocks
					hit = 0
				}
				mae += math.Abs(hit-want[i]) / float64(len(want))
			}
			t.Logf("%d agents, %d requests, cached tokens %v, %s: hit ratio %.3f exact, %.3f inferred; LRU curve MAE %.3f", c.agents, len(got), c.counted, how, exact, hitRatio(got, 16), mae)
			for _, r := range got {
				if len(r.Blocks) > 0 && r.ReuseSource != trace.ReuseInferred || strings.Contains(r.Category, " ") {
					t.Fatalf("%+v", r)
				}
			}
			return math.Abs(hitRatio(got, 16) - exact), mae
		}
		ratio, mae := errors("without names", bare)
		if ratio < c.before && mae < c.curveBefore {
			t.Errorf("nothing to tell apart: %.4f, curve %.4f", ratio, mae)
		}
		for _, how := range []string{"tools", "system", "tools and system", "hash of system", "key"} {
			named := make([]trace.Entry, len(bare))
			for i := range bare {
				named[i] = bare[i]
				system := src[i].Messages[0]
				named[i].Messages = []trace.Message{{Role: trace.System, Content: marker}, {Role: trace.User, Content: marker}}
				if strings.Contains(how, "tools") {
					named[i].Tools = src[i].Tools
				}
				switch how {
				case "system", "tools and system":
					named[i].Messages[0] = system
				case "hash of system":
					named[i].Messages[0].Content = trace.NewText(fmt.Sprintf("[REDACTED len=%d sha256=%064d]", system.Content.Len(), 10+i/c.turns%c.agents))
				case "key":
					named[i].Messages, named[i].PrefixKey = nil, trace.NewText(fmt.Sprint("agent ", i/c.turns%c.agents))
				}
			}
			most := 0.03 // the trunk is rounded to the steps of the provider
			switch {
			case !c.counted && !strings.Contains(how, "tools"):
				continue // nothing says how long a trunk is
			case !c.counted && how == "tools":
				most = 0.3 // only a part of the trunk is there
			}
			if how == "tools" { // blocks on disk give the same rows
				want, _ := run(t, policy(t), named)
				spilling := policy(t).WithLimits(100, 500)
				spilling.SpillDir = t.TempDir()
				if got, card := run(t, spilling, named); digest(got) != digest(want) || card.Totals.SpillBytes == 0 {
					t.Errorf("%d agents: other rows with 100 blocks in memory", c.agents)
				}
			}
			if ratio, mae := errors(how, named); ratio > most || mae > most+0.01 {
				t.Errorf("%d agents, %s: the hit ratio is %.4f off, the curve %.4f", c.agents, how, ratio, mae)
			}
		}
	}
}

// A cluster of one session tells nothing, and salts keep apart what is cached.
func TestTrunksApart(t *testing.T) {
	shared := func(name func(i int, e *trace.Entry)) (n int) {
		var src []trace.Entry
		for i := range 8 {
			e := trace.Entry{Time: at(1000 * i), Session: trace.NewText(fmt.Sprint(i)), Model: trace.NewText("m"), Kind: "chat",
				InputTokens: trace.Ptr[int32](3200), OutputTokens: trace.Ptr[int32](10), Cached: trace.Ptr[int32](1600)}
			name(i, &e)
			src = append(src, e)
		}
		rows, _ := run(t, anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16}, src)
		trunks := map[uint64]bool{}
		for _, r := range rows {
			trunks[r.Blocks[0]] = true
		}
		return len(trunks)
	}
	for _, c := range []struct {
		name string
		of   func(i int, e *trace.Entry)
		want int
	}{
		{"no names", func(int, *trace.Entry) {}, 1},
		{"two keys", func(i int, e *trace.Entry) { e.PrefixKey = trace.NewText(fmt.Sprint(i % 2)) }, 2},
		{"a key for each session", func(i int, e *trace.Entry) { e.PrefixKey = trace.NewText(fmt.Sprint(i)) }, 1},
		{"two salts", func(i int, e *trace.Entry) { e.Salt = trace.NewText(fmt.Sprint(i % 2)) }, 2},
		{"two salts and two keys", func(i int, e *trace.Entry) {
			e.Salt, e.PrefixKey = trace.NewText(fmt.Sprint(i%2)), trace.NewText(fmt.Sprint(i/2%2))
		}, 4},
	} {
		if n := shared(c.of); n != c.want {
			t.Errorf("%s: %d trunks, want %d", c.name, n, c.want)
		}
	}
}
