package profile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// shapes are the kinds of generated traces that properties are tested on.
var shapes = map[string]shape{
	"plain":             {block: 4},
	"system prompt":     {block: 4, system: true},
	"blocks of 1":       {block: 1, system: true},
	"statuses":          {block: 4, system: true, statuses: true},
	"source's sessions": {block: 4, system: true, sessions: true},
	"outputs":           {block: 4, system: true, output: true},
	"everything":        {block: 3, system: true, output: true, statuses: true, sessions: true},
}

// common is the number of leading blocks that two prompts share. On chained ids
// the hit of a request is its greatest over the requests before it.
func common(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// A verdict is what the annotator says of a row.
type verdict struct {
	category      string
	session, turn int64 // -1 for null
}

// naiveCategories judges every row, which has its session, by comparing it with all rows before it.
func naiveCategories(rows []trace.Request, size int) []string {
	out := make([]string, len(rows))
	who := func(i int) string {
		if s := rows[i].Session; s != nil {
			return fmt.Sprint("session ", *s)
		}
		return fmt.Sprint("row ", i)
	}
	end, left := map[string]uint64{}, map[string]uint64{} // by session: ids plus one
	for i, r := range rows {
		if r.Status == trace.StatusFailed {
			continue
		}
		hit := 0
		for j := range i {
			if rows[j].Status != trace.StatusFailed {
				hit = max(hit, common(rows[j].Blocks, r.Blocks))
			}
		}
		var had []string // sessions that had the last known block, in their order
		last, own := uint64(0), false
		if hit > 0 {
			last = r.Blocks[hit-1] + 1
			for j := range i {
				if rows[j].Status != trace.StatusFailed && common(rows[j].Blocks, r.Blocks) >= hit && !slices.Contains(had, who(j)) {
					had = append(had, who(j))
				}
			}
			own = slices.Contains(had[:min(2, len(had))], who(i)) || end[who(i)] == last || left[who(i)] == last
			if !own {
				left[who(i)] = last
			}
		}
		end[who(i)] = 0
		if full := int(r.InputTokens) / size; full > 0 {
			end[who(i)] = r.Blocks[full-1] + 1
		}
		switch {
		case hit == 0:
			out[i] = "cold"
		case hit == len(r.Blocks):
			out[i] = "duplicate"
		case own:
			out[i] = "continuation"
		case len(had) >= 2:
			out[i] = "template"
		default:
			out[i] = "branch"
		}
	}
	return out
}

func verdicts(rows []trace.Request) []verdict {
	out := make([]verdict, len(rows))
	for i, r := range rows {
		out[i] = verdict{r.Category, -1, -1}
		if r.Session != nil {
			out[i].session = *r.Session
		}
		if r.Turn != nil {
			out[i].turn = int64(*r.Turn)
		}
	}
	return out
}

func TestAnnotatorAgainstAllPairs(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			for seed := range uint64(8) {
				rows := generate(seed, 150, s)
				given := verdicts(rows)
				annotate(rows, s.block, profile.Options{})
				want := naiveCategories(rows, s.block)
				turns := map[int64]int64{}
				for i, got := range verdicts(rows) {
					if got.category != want[i] {
						t.Fatalf("seed %d, row %d: %+v; want %s", seed, i, got, want[i])
					}
					seen[got.category]++
					switch before := given[i]; {
					case before.session >= 0 && (got.session != before.session || got.turn != before.turn):
						t.Fatalf("seed %d, row %d: %+v was %+v in the source", seed, i, got, before)
					case before.session < 0 && got.session >= 0 && got.turn != turns[got.session]:
						t.Fatalf("seed %d, row %d: %+v after %d turns", seed, i, got, turns[got.session])
					case before.session < 0 && got.session >= 0:
						turns[got.session]++
					}
				}
				for session, n := range turns {
					if n < 2 || slices.ContainsFunc(given, func(v verdict) bool { return v.session == session }) {
						t.Fatalf("seed %d: the inferred session %d has %d turns, or those of the source's", seed, session, n)
					}
				}
			}
			for _, c := range trace.Categories() {
				if seen[c] == 0 {
					t.Errorf("the generated traces have no %s, so they test little", c)
				}
			}
		})
	}
}

func TestAnnotatorLeavesWhatItCannotTell(t *testing.T) {
	row := func(status string, blocks ...uint64) trace.Request {
		return trace.Request{InputTokens: int32(4 * len(blocks)), Blocks: blocks, Status: status, Category: "cold",
			Parents: []int64{0}}
	}
	tests := []struct {
		name string
		size int
		row  trace.Request
	}{
		{"failed", 4, row(trace.StatusFailed, 0, 1)},
		{"without blocks", 4, row("")},
		{"without a block size", 0, row("", 0, 1)},
	}
	for _, test := range tests {
		rows := []trace.Request{test.row}
		annotate(rows, test.size, profile.Options{})
		if r := rows[0]; r.Category != "" || r.Session != nil || r.Turn != nil {
			t.Errorf("%s: the category is %q, the session is null: %v", test.name, r.Category, r.Session == nil)
		}
	}
	rows := []trace.Request{row("", 0, 1), row("", 0, 1, 2)}
	rows[1].ArrivalNS = 1e9
	annotate(rows, 4, profile.Options{})
	if r := rows[1]; *r.Session != 0 || *r.Turn != 1 || r.ThinkNS != nil || len(r.Parents) != 1 {
		t.Errorf("an inferred turn made a causal claim: %+v", r)
	}
}

// A failed row is not known to the rows behind it.
func TestFailedRowsAreNotKnown(t *testing.T) {
	rows := []trace.Request{
		{InputTokens: 8, Blocks: []uint64{0, 1}, Status: trace.StatusFailed},
		{InputTokens: 8, Blocks: []uint64{0, 1}},
		{InputTokens: 8, Blocks: []uint64{0, 1}, Status: trace.StatusCancelled},
		{InputTokens: 12, Blocks: []uint64{0, 1, 2}},
	}
	annotate(rows, 4, profile.Options{})
	for i, want := range []string{"", "cold", "duplicate", "continuation"} {
		if rows[i].Category != want {
			t.Errorf("row %d is %q; want %q", i, rows[i].Category, want)
		}
	}
}

// rename gives every block another id, one to one: dense ones in another order,
// or ids from all over 64 bits.
func rename(rows []trace.Request, far bool) []trace.Request {
	rng := rand.New(rand.NewPCG(9, 9))
	ids := map[uint64]uint64{}
	for _, r := range rows {
		for _, b := range slices.Concat(r.Blocks, r.OutputBlocks) {
			ids[b] = 0
		}
	}
	order := rng.Perm(len(ids))
	for i, b := range slices.Sorted(maps.Keys(ids)) {
		ids[b] = uint64(order[i])
		if far {
			ids[b] = ^uint64(0) - uint64(order[i])*0x9e3779b97f4a7c15
		}
	}
	out := slices.Clone(rows)
	for i := range out {
		r := &out[i]
		r.Blocks, r.OutputBlocks = slices.Clone(r.Blocks), slices.Clone(r.OutputBlocks)
		for _, list := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for j, b := range list {
				list[j] = ids[b]
			}
		}
	}
	return out
}

func TestNamesOfBlocksChangeNothing(t *testing.T) {
	for name, s := range shapes {
		for _, exact := range []int{0, 100} {
			t.Run(fmt.Sprint(name, exact), func(t *testing.T) {
				original := generate(5, 400, s)
				describe := func(rows []trace.Request) (any, any, []profile.HistogramRow) {
					annotate(rows, s.block, profile.Options{})
					opts := profile.ProfilerOptions{ReuseOptions: profile.ReuseOptions{ExactBlocks: exact}}
					p := profileOf(t, rows, trace.Meta{BlockSize: s.block, Sessions: "inferred"}, opts)
					return verdicts(rows), p.Summary(), p.Histograms()
				}
				v, sum, hist := describe(slices.Clone(original))
				for _, far := range []bool{false, true} {
					v2, sum2, hist2 := describe(rename(original, far))
					if !reflect.DeepEqual(v, v2) || !reflect.DeepEqual(sum, sum2) || !reflect.DeepEqual(hist, hist2) {
						t.Errorf("other ids (far: %v) give another description", far)
					}
				}
			})
		}
	}
}
