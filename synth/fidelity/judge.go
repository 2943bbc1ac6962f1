package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
)

// A judge holds workloads against one trace, with the measures and the limits of a comparison of
// the two files.
type judge struct{ ref *Signature }

// newJudge measures the trace that meta describes. Its memory is that of a [Signature].
func newJudge(meta trace.Meta, rows trace.Reader[trace.Request]) (*judge, error) {
	s := NewSignature(meta, Options{})
	_, err := trace.Copy(s, rows)
	if err == nil {
		s.End() // before there is a workload, which takes memory too
	}
	return &judge{s}, err
}

// measure holds a workload that is as long as the trace. With copies, it may repeat the lengths
// of the trace, as one does that keeps the rows. read is called when the rows were read.
func (j *judge) measure(meta trace.Meta, rows trace.Reader[trace.Request], copies bool, read func()) ([]Check, error) {
	s := NewSignature(meta, Options{})
	if _, err := trace.Copy(s, rows); err != nil {
		return nil, err
	}
	read()
	found, err := Compare(j.ref, s)
	if err != nil {
		return nil, err
	}
	limits := DefaultThresholds(found.Reference.Requests)
	if copies {
		for _, name := range copyMeasures {
			delete(limits, name)
		}
	}
	return found.Gate(limits), nil
}

// JudgeHits measures rows by the hit ratio of a cache without limit alone: the share of their
// blocks, of so many tokens, that hits in the trace. It is for a model whose trace is not at hand.
func JudgeHits(hits float64, blockSize int, rows trace.Reader[trace.Request]) ([]Check, error) {
	reuse := profile.NewReuse(blockSize, profile.ReuseOptions{})
	err := trace.Each(rows, func(_ int64, r *trace.Request) error {
		reuse.Add(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s := reuse.Summary()
	found := float64(s.HitBlocks) / float64(max(1, s.ReferencesBlocks))
	m := Measure{Name: "hit_by_block", Ref: &hits, Cand: &found, Distance: difference(&hits, &found)}
	return Report{Measures: []Measure{m}}.Gate(Thresholds{m.Name: aboutMeasure(m.Name).limit}), nil
}

// closer tells whether a workload with checks a is closer to its trace than one with checks b: it
// repeats less of what is particular to the trace, or else breaks fewer limits, or breaks as many
// by less.
func closer(a, b []Check) bool { return slices.Compare(missed(a), missed(b)) < 0 }

// missed says by how much checks fail, the most important first.
func missed(checks []Check) []float64 {
	const most = 1000 // of what has no value, or a limit of 0
	by := make([]float64, 3)
	for _, c := range Failures(checks) {
		if slices.Contains(copyMeasures, c.Name) {
			by[0]++
		}
		by[1]++
		by[2] += math.Log(min(c.ofLimit(), most))
	}
	return by
}

// chanceReach is how many times its limit a measure is off at most where other draws of one process
// may be within it.
const chanceReach = 2

// byChance tells whether what fails is so near to its limit that another draw may keep it.
func byChance(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return c.Failed() && c.ofLimit() > chanceReach })
}

// Off says in a sentence which checks do not hold, the farthest off first, and by how much. It is
// empty when all hold.
func Off(checks []Check) string {
	failed, applied := Failures(checks), nearestLimit(checks)
	if len(failed) == 0 {
		return ""
	}
	slices.SortStableFunc(failed, func(a, b Check) int { return cmp.Compare(b.ofLimit(), a.ofLimit()) })
	const named = 5
	var said []string
	for i, c := range failed {
		if i == named && len(failed) > named+1 {
			said = append(said, fmt.Sprintf("and %d more", len(failed)-named))
			break
		}
		off := "missing"
		if c.Value != nil {
			off = doc.Beside(*c.Value, c.Limit)
		}
		said = append(said, fmt.Sprintf("%s %s (limit %s)", c.Name, off, strconv.FormatFloat(c.Limit, 'g', -1, 64)))
	}
	return fmt.Sprintf("%d of %s %s beyond %s: %s", len(failed), doc.Many(int64(len(applied)), "figure"),
		agree(len(failed), "is", "are"), agree(len(failed), "its limit", "their limits"), strings.Join(said, ", "))
}

// TooAlike names the checks that do not hold since the candidate repeats the reference, which a mirror of it does more.
func TooAlike(checks []Check) (names []string) {
	for _, c := range Failures(checks) {
		if slices.Contains(copyMeasures, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

func agree(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
