package fidelity

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/synth"
	"reprise/trace"
)

var judgedMeta = trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Sessions: "inferred"}

// A text is a prompt as parts, each an id with so many tokens: prompts share what they begin with alike.
type text []struct{ id, tokens int }

func (x text) and(id, tokens int) text {
	return append(slices.Clip(x), struct{ id, tokens int }{id, tokens})
}

// promptsOf makes rows of texts that come so many seconds one after the other.
func promptsOf(rng *rand.Rand, texts []text, gap float64) []trace.Request {
	var rows []trace.Request
	ids, at := map[[3]int]uint64{}, 0.0
	for i, x := range texts {
		r := trace.Request{ArrivalNS: int64(at * 1e9), OutputTokens: trace.Ptr(int32(20 + rng.IntN(200)))}
		above := 0
		for _, part := range x {
			r.InputTokens += int32(part.tokens)
		}
		at += rng.ExpFloat64() * gap
		end, k := 0, -1
		for from := 0; from < int(r.InputTokens); from += 512 {
			key := [3]int{-1 - i, from, 0} // the last, which is partial, is nobody else's
			if to := from + 512; to <= int(r.InputTokens) {
				for end < to {
					k++
					end += x[k].tokens
				}
				key = [3]int{x[k].id, from, above}
			}
			id, known := ids[key]
			if !known {
				id = uint64(len(ids))
				ids[key] = id
			}
			above = int(id) + 1
			r.Blocks = append(r.Blocks, id)
		}
		rows = append(rows, r)
	}
	return rows
}

// templated are single requests on some templates, as of a classifier.
func templated(rng *rand.Rand, n int) []trace.Request {
	templates := make([]text, 9)
	for i := range templates {
		templates[i] = text{}.and(i, 1500+rng.IntN(4000))
	}
	texts := make([]text, n)
	for i := range texts {
		texts[i] = templates[rng.IntN(len(templates))].and(100+i, 20+rng.IntN(400))
	}
	return promptsOf(rng, texts, .3)
}

// replaced are requests on one prompt, which has a new version each hundred requests.
func replaced(rng *rand.Rand, n int) []trace.Request {
	texts := make([]text, n)
	for i := range texts {
		texts[i] = text{}.and(i/100, 3000+i/100*70).and(1000+i, 30+rng.IntN(900))
	}
	return promptsOf(rng, texts, .5)
}

func judgeOf(t *testing.T, rows []trace.Request) *judge {
	t.Helper()
	j, err := newJudge(judgedMeta, copied(rows))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A judge finds what a comparison of the two files finds, as often as it is asked: a mirror holds, and a
// workload with other outputs does not, which is said in a sentence.
func TestJudge(t *testing.T) {
	for name, shape := range map[string]func(*rand.Rand, int) []trace.Request{"templated": templated, "replaced": replaced} {
		t.Run(name, func(t *testing.T) {
			rows := shape(rand.New(rand.NewPCG(uint64(len(name)), 1)), 400)
			j := judgeOf(t, rows)
			for seed := range uint64(2) {
				checks, err := j.measure(judgedMeta, copied(freshIDs(t, rows, seed)), true, func() {})
				if err != nil || len(Failures(checks)) > 0 || Off(checks) != "" {
					t.Errorf("a mirror: %v, %v", err, Failures(checks))
				}
			}
			checks, err := j.measure(judgedMeta, copied(freshIDs(t, rows, 3)), false, func() {})
			if err != nil || len(Failures(checks)) == 0 {
				t.Errorf("a mirror repeats the lengths of the trace, and that is not found: %v", err)
			}

			m, err := synth.Fit(t.Context(), copied(rows), judgedMeta, synth.FitOptions{Entropy: rand.NewChaCha8([32]byte{1})})
			if err != nil {
				t.Fatal(err)
			}
			w, err := m.Generate(t.Context(), synth.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			var other []trace.Request
			if err := trace.Each(w.Reader(), func(_ int64, r *trace.Request) error {
				other = append(other, *r)
				other[len(other)-1].OutputTokens = trace.Ptr(1 + *r.OutputTokens*2)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			checks, err = j.measure(w.Meta(), copied(other), false, func() {})
			if err != nil {
				t.Fatal(err)
			}
			want := comparedFiles(t, rows, w.Meta(), copied(other))
			if !slices.EqualFunc(checks, want, func(a, b Check) bool { return a.Name == b.Name && a.Failed() == b.Failed() }) {
				t.Errorf("the judge finds\n%+v\nand a comparison\n%+v", checks, want)
			}
			off, first := Off(checks), nearestLimit(checks)[0]
			if !strings.Contains(off, ": "+first.Name+" ") || strings.Contains(off, "\n") {
				t.Errorf("it is said: %s", off)
			}
		})
	}
}

// comparedFiles holds a workload against rows as the command fidelity does.
func comparedFiles(t *testing.T, rows []trace.Request, meta trace.Meta, w trace.Reader[trace.Request]) []Check {
	t.Helper()
	ref, cand := NewSignature(judgedMeta, Options{}), NewSignature(meta, Options{})
	if _, err := trace.Copy(ref, copied(rows)); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Copy(cand, w); err != nil {
		t.Fatal(err)
	}
	f, err := Compare(ref, cand)
	if err != nil {
		t.Fatal(err)
	}
	return f.Gate(DefaultThresholds(int64(len(rows))))
}

// What a judge calls closer: fewer copies, then fewer limits broken, then these by less.
func TestCloser(t *testing.T) {
	check := func(name string, value float64) Check {
		limit := aboutMeasure(name).limit
		ok := value <= limit
		return Check{Name: name, Value: &value, Limit: limit, OK: &ok}
	}
	missing := Check{Name: "turns_ks", Limit: .05, OK: new(bool)}
	inOrder := [][]Check{
		{check("input_ks", .01), check("mrc_mae", .004)},
		{check("input_ks", .04), check("mrc_mae", .004)},
		{check("input_ks", .2), check("mrc_mae", .004)},
		{check("input_ks", .01), missing},
		{check("input_ks", .04), check("mrc_mae", .006)},
		{check("input_ks", .01), check("pair_match", .006)},
		{check("input_ks", .01), check("pair_match", .006), check("chain3_exact", .1)},
	}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if closer(a, b) != (i < j) {
				t.Errorf("%q is closer than %q: %t", Off(a), Off(b), !(i < j))
			}
		}
	}
	for i, want := range []bool{true, true, false, false, true, true, false} {
		if byChance(inOrder[i]) != want {
			t.Errorf("%q is by chance: %t", Off(inOrder[i]), !want)
		}
	}
	for i, want := range map[int]string{
		0: "",
		1: "1 of 2 figures is beyond its limit: input_ks 0.04 (limit 0.035)",
		3: "1 of 2 figures is beyond its limit: turns_ks missing (limit 0.05)",
		4: "2 of 2 figures are beyond their limits: mrc_mae 0.006 (limit 0.005), input_ks 0.04 (limit 0.035)",
	} {
		if got := Off(inOrder[i]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A workload is held against the hit ratio that a model states, which is that of the trace.
func TestJudgeHits(t *testing.T) {
	rows := templated(rand.New(rand.NewPCG(1, 1)), 300)
	m, err := synth.Fit(t.Context(), copied(rows), judgedMeta, synth.FitOptions{KSwap: 1})
	if err != nil {
		t.Fatal(err)
	}
	hits, stated := m.StatedHits()
	seen, known, all := map[uint64]bool{}, 0.0, 0.0
	for _, r := range rows {
		for _, b := range r.Blocks {
			if all++; seen[b] {
				known++
			}
			seen[b] = true
		}
	}
	if !stated || math.Abs(hits-known/all) > 1e-12 {
		t.Errorf("the model states %g, %t; it is %g", hits, stated, known/all)
	}
	for _, c := range []struct {
		stated float64
		off    bool
	}{{hits, false}, {hits + .009, false}, {hits + .011, true}, {hits - .011, true}} {
		checks, err := JudgeHits(c.stated, 512, copied(rows))
		if err != nil || len(Failures(checks)) > 0 != c.off || (Off(checks) != "") != c.off {
			t.Errorf("%g stated: %v, %s", c.stated, err, Off(checks))
		}
	}
}
