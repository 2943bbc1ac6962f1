package report

import (
	"math"
	"slices"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/ending"
	"reprise/trace/usage"
)

// tokenCounts hold what the tokens of the successful requests say.
type tokenCounts struct {
	tokens        Tokens
	events, timed int64 // token events, and tokens of the rows that have both counts
	cache         reuse
	cachedZero    int64 // rows whose usage says that nothing was cached

	input, output, wanted     lengths
	promptsCut, outputsLonger int64 // what servers do without a word
	impossible                ImpossibleCounts
}

// InputTokens is the length of a prompt: what the server counted, else what was asked for.
func InputTokens(r *result.Result) int32 {
	if r.Input != nil {
		return *r.Input
	}
	return r.WantInput
}

// cut says that a server took so much less of a prompt than was sent that it must have
// left some out: a tokenizer that differs, or a template that was measured too long,
// makes less of a difference.
func cut(got, want int32) bool { return want-got >= 16 && float64(got) < 0.9*float64(want) }

// impossible is the source of an output that the server counts, and that cannot be.
const impossible = "impossible"

// addTokens takes a successful result.
func (t *tokenCounts) addTokens(r *result.Result) {
	t.impossible.add(r)
	input := InputTokens(r)
	t.tokens.Prompt += int64(input)
	t.input.add(input)
	if r.WantOutput != nil {
		t.wanted.add(*r.WantOutput)
	}
	if r.Input != nil {
		t.tokens.PromptFromUsage++
		t.tokens.PromptError.add(*r.Input, r.WantInput)
		if cut(*r.Input, r.WantInput) {
			t.promptsCut++
		}
	}
	if r.FinishReason == ending.Length {
		t.tokens.AtLimit++
	}
	source := "none"
	if r.Contradictions().Refutes(usage.Output) {
		source = impossible
	}
	if r.Output != nil {
		if source = r.OutputFrom; source != result.FromUsage && source != result.FromTokenizer {
			source = "other"
		}
		t.tokens.Output += int64(*r.Output)
		t.output.add(*r.Output)
		if r.WantOutput != nil {
			t.tokens.OutputMiss.add(*r.Output, *r.WantOutput)
			if r.OutputFrom == result.FromUsage && *r.Output > max(*r.WantOutput, 1) {
				// one is the least that is asked for
				t.outputsLonger++
			}
		}
		if r.Events > 0 {
			t.events += int64(r.Events)
			t.timed += int64(*r.Output)
		}
	}
	t.tokens.OutputSources[source]++
	if r.Input != nil && r.Cached != nil && *r.Cached == 0 {
		t.cachedZero++
	}
	t.cache.add(r)
}

// lengths counts token lengths in buckets for the plots, 8 to each doubling.
// They are exact up to a dozen and then of equal width on a logarithmic axis.
// The log-linear buckets of a profile were rejected here: drawn, their counts
// would jump at every power of two, where their width does.
type lengths struct{ counts []int64 }

// lengthEdges are the first lengths of the buckets: 0, then the distinct
// 2^(k/8), rounded, to beyond the largest int32.
var lengthEdges = func() []int64 {
	edges := []int64{0}
	for k := 0; edges[len(edges)-1] <= math.MaxInt32; k++ {
		if e := int64(math.Round(math.Exp2(float64(k) / 8))); e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	return edges
}()

func (l *lengths) add(n int32) {
	b, found := slices.BinarySearch(lengthEdges, int64(n))
	if !found {
		b--
	}
	if len(l.counts) <= b {
		l.counts = append(l.counts, make([]int64, b+1-len(l.counts))...)
	}
	l.counts[b]++
}

// series are the bars of the buckets that hold something.
func (l *lengths) series(name string) doc.Series {
	s := doc.Series{Name: name}
	for b, n := range l.counts {
		if n == 0 {
			continue
		}
		s.X, s.Hi = append(s.X, float64(lengthEdges[b])), append(s.Hi, float64(lengthEdges[b+1]))
		s.Y = append(s.Y, float64(n))
	}
	return s
}
