package profile_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/profile"
)

// trueCategories are those of traffic whose sessions are known: what ends in no block that its session had is of
// a template. early tells of which rows this is so though no two others had it before, which no rule could know by
// then, and where sessions build on another's own part that is all of it; and shared, of which next turns the blocks
// show nothing that their session alone had.
func trueCategories(rows []trace.Request, whose []int) (out []string, early, shared []bool) {
	known := map[uint64]map[int]bool{}
	for i, r := range rows {
		hit := 0
		for hit < len(r.Blocks) && known[r.Blocks[hit]] != nil {
			hit++
		}
		category, users := trace.Template, 0
		if hit > 0 {
			users = len(known[r.Blocks[hit-1]])
		}
		switch {
		case hit == 0:
			category = trace.Cold
		case hit == len(r.Blocks):
			category = trace.Duplicate
		case known[r.Blocks[hit-1]][whose[i]]:
			category = trace.Continuation
		}
		out, early, shared = append(out, category), append(early, category == trace.Template && users < 2), append(shared, category == trace.Continuation && users > 1)
		for _, b := range r.Blocks {
			if known[b] == nil {
				known[b] = map[int]bool{}
			}
			known[b][whose[i]] = true
		}
	}
	return out, early, shared
}

// TestCategoriesOfShapes measures categories on traffic that a script writes, see [TestSessionsOfShapes].
func TestCategoriesOfShapes(t *testing.T) {
	script := bytes.Fields([]byte(os.Getenv("REPRISE_TEST_SHAPES")))
	if len(script) < 2 {
		t.Skip("REPRISE_TEST_SHAPES names no script and shapes")
	}
	const seeds = 5
	for _, shape := range script[1:] {
		for _, n := range []int{1000, 4000} {
			least := map[bool]float64{true: 1, false: 1}
			of := map[bool]map[string]int{true: {}, false: {}}
			var says [2]string
			for seed := 1; seed <= seeds; seed++ {
				rows, whose := shapeRows(t, string(script[0]), string(shape), n, seed)
				want, early, shared := trueCategories(rows, whose)
				for _, ids := range []bool{true, false} {
					for i := range rows {
						rows[i].Session, rows[i].Turn = nil, nil
						if ids {
							rows[i].Session = trace.Ptr(int64(whose[i]))
						}
					}
					annotate(rows, 512, profile.Options{KeepSessions: ids})
					right := 0
					for i := range rows {
						switch got := rows[i].Category; {
						case got == want[i]:
							right++
						case early[i] && got == trace.Branch:
							of[ids]["second"]++
						case shared[i] && !ids:
							of[ids]["shared"]++
						default:
							of[ids]["wrong"]++
						}
					}
					least[ids] = min(least[ids], float64(right)/float64(n))
				}
			}
			for i, ids := range []bool{true, false} {
				share := func(name string) float64 { return float64(of[ids][name]) / float64(seeds*n) }
				says[i] = fmt.Sprintf(" %.3f | %.1f %% |", least[ids], 100*share("second"))
				if !ids {
					says[i] += fmt.Sprintf(" %.1f %% | %.2f %% |", 100*share("shared"), 100*share("wrong"))
				}
				if wrong := share("wrong"); ids && wrong > 0 || wrong > .02 {
					t.Errorf("%s, %d rows, ids %v: %.4f are wrong", shape, n, ids, wrong)
				}
			}
			t.Logf("| %s | %d |%s%s", shape, n, says[0], says[1])
		}
	}
}

// A profile of a trace of an earlier version, or of one put together of such, has the categories that the
// rows have, under their own definitions, and says so.
func TestEarlierCategories(t *testing.T) {
	rows := generate(3, 200, shape{block: 4, system: true})
	annotate(rows, 4, profile.Options{})
	for i := range rows {
		if rows[i].Category == trace.Template {
			rows[i].Category = trace.Global
		}
	}
	for rule, want := range map[string]string{
		"":    "cold global duplicate continuation branch",
		"1":   "cold global duplicate continuation branch",
		"2,1": "cold duplicate continuation template branch global",
	} {
		p := profile.NewProfiler(trace.Meta{BlockSize: 4, Categories: rule}, profile.ProfilerOptions{})
		if _, err := p.Write(rows); err != nil {
			t.Fatal(err)
		}
		s := p.Summary()
		of := profile.Page(s, p.Histograms())
		var shares []string
		for _, c := range s.Categories {
			if shares = append(shares, c.Category); c.Category == trace.Global && c.Requests == 0 {
				t.Errorf("rule %q: no request is global", rule)
			}
		}
		slices.Sort(shares)
		names := strings.Fields(want)
		slices.Sort(names)
		if !slices.Equal(shares, names) {
			t.Errorf("rule %q: %v, want %s", rule, shares, want)
		}
		var defined []string
		for _, term := range of.Terms {
			if term.Unit == "category" {
				defined = append(defined, term.Name)
			}
		}
		if got := strings.Join(defined, " "); got != want {
			t.Errorf("rule %q: defined are %s, want %s", rule, got, want)
		}
		if !slices.ContainsFunc(s.Warnings, func(w profile.Warning) bool { return w.Code == "earlier_categories" }) {
			t.Errorf("rule %q: no warning", rule)
		}
	}
}

// The glossary has the definitions, and its picture is what a categorizer says.
func TestCategoriesOfTheGlossary(t *testing.T) {
	text, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Reuse categories")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, d := range trace.CategoryDefinitions(trace.CategoryRule) {
		if !strings.Contains(section, "\n| "+d.Name+" | "+d.Text+" |\n") {
			t.Errorf("docs/glossary.md lacks the definition of %s", d.Name)
		}
	}
	c, seen, known := profile.NewCategorizer(4, false), map[string]bool{}, map[uint64]bool{}
	for line := range strings.Lines(strings.Split(section, "```")[1]) {
		words := strings.Fields(line)
		at := slices.IndexFunc(words, func(w string) bool { return slices.Contains(trace.Categories(), w) })
		if at < 0 {
			continue
		}
		category := words[at]
		seen[category] = true
		r := trace.Request{Session: trace.Ptr(int64(line[0]))}
		open := false
		for _, b := range strings.Join(words[1:at], "") {
			if b == '[' || b == ']' {
				open = b == '['
				continue
			}
			r.Blocks = append(r.Blocks, uint64(b))
			if known[uint64(b)] != open {
				t.Errorf("%q: %c is drawn as known: %v", strings.TrimSpace(line), b, open)
			}
		}
		r.InputTokens = int32(4 * len(r.Blocks))
		if got := c.Category(&r); got != category {
			t.Errorf("%q is %s", strings.TrimSpace(line), got)
		}
		for _, b := range r.Blocks {
			known[b] = true
		}
	}
	if len(seen) != len(trace.Categories()) {
		t.Errorf("the picture has %v", seen)
	}
}

// Categories of traffic whose sessions are given are those of its generator, but for a template that comes the
// second time, which nobody could know by then; and single requests are never next turns.
func TestCategoriesOfScenes(t *testing.T) {
	longtest.Skip(t)
	for name, kind := range scenes {
		for _, size := range []int{16, 512} {
			for seed := range uint64(2) {
				rows, whose := play(seed, 1000, size, kind.begin)
				want, early, _ := trueCategories(rows, whose)
				c, wrong := profile.NewCategorizer(size, seed == 0), map[string]int{}
				for i := range rows {
					rows[i].Session = trace.Ptr(int64(whose[i]))
					if early[i] {
						want[i] = trace.Branch
					}
					got := c.Category(&rows[i])
					if got != want[i] {
						wrong[want[i]+" as "+got]++
					}
					if kind.single && got == trace.Continuation {
						t.Errorf("%s: a single request is a next turn", name)
					}
				}
				if len(wrong) > 0 {
					t.Errorf("%s, blocks of %d: %v of %d", name, size, wrong, len(rows))
				}
			}
		}
	}
}

// Each letter is a block, and a last one behind a point a partial one; a session of - is none.
func TestCategoriesByHand(t *testing.T) {
	for name, lines := range map[string][]string{
		"two sessions that take turns make no template":  {"A Sa cold", "B Sb branch", "A Sc continuation", "B Sd continuation", "A Se continuation", "B Sf continuation"},
		"one session makes none, however often it comes": {"A Sa cold", "A Sb continuation", "A Sc continuation", "A Sd continuation", "B Se branch"},
		"nor does a row twice":                           {"A Sa cold", "A Sa duplicate", "A Sa duplicate", "B Sb branch"},
		"the third session is on a template":             {"A Sa cold", "B Sb branch", "C Sc template", "D Sd template"},
		"requests without a session are each of one":     {"- Sa cold", "- Sb branch", "- Sc template", "- Sc duplicate", "A Sd template"},
		"short turns on a template that others use": {"A S.a cold", "B S.b branch", "C S.c template", "D S.d template", "C S.e continuation", "E S.f template",
			"D S.g continuation", "A S.h continuation", "B S.i continuation", "C S.j continuation", "F S.k template"},
		"a document is replaced":                        {"A SDa cold", "B SDb branch", "C SDc template", "D SEd template", "E SEe branch", "F SEf template", "F SEfg continuation", "G SDh template"},
		"a conversation forks":                          {"A Sab cold", "A Sabc continuation", "B Sabd branch", "C Sabe template"},
		"and forks elsewhere":                           {"A Sabcd cold", "B Sabce branch", "C Sabf template", "D Sabce duplicate", "E Sabcdg branch"},
		"what is cold again":                            {"A Sa cold", "A Tb cold", "B Tc branch", "A Td continuation"},
		"what failed had nothing":                       {"A Sa failed", "A Sb cold", "B Sc failed", "C Sd branch"},
		"a window slides over the history of a session": {"A Sab cold", "B Sx branch", "C Sy template", "D Spq template", "E Sz template", "D Spqr continuation", "D Suv continuation", "A Sw continuation"},
	} {
		for _, counting := range []bool{false, true} {
			c := profile.NewCategorizer(4, counting)
			for i, line := range lines {
				words := strings.Fields(line)
				r := trace.Request{}
				if words[0] != "-" {
					r.Session = trace.Ptr(int64(words[0][0]))
				}
				for _, b := range strings.Replace(words[1], ".", "", 1) {
					r.Blocks = append(r.Blocks, uint64(b))
				}
				r.InputTokens = int32(4 * len(r.Blocks))
				if strings.Contains(words[1], ".") {
					r.InputTokens -= 2
				}
				want := words[2]
				if want == trace.StatusFailed {
					r.Status, want = want, ""
				}
				if got := c.Category(&r); got != want {
					t.Errorf("%s: row %d, %s, is %q", name, i, line, got)
				}
			}
		}
	}
}
