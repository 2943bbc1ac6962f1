package audit

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// partnerOutput is a release with such a card and such rows.
func partnerOutput(t *testing.T, card anonymize.PartnerCard, meta trace.Meta, rows ...trace.Request) *Output {
	t.Helper()
	c := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Partner, Partner: &card}
	text, hash, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	meta.Tier = anonymize.Partner
	return &Output{Kind: kindTrace, Trace: linkTrace(t, meta, rows), Meta: map[string]string{"tier": anonymize.Partner, "card": text, "card_sha256": hash}}
}

// oneBucket is the card of a release with one bucket an octave and a quantum of a
// second.
var oneBucket = anonymize.PartnerCard{Unit: anonymize.UnitUser, KShare: 5, KClass: 11, PerOctave: 1, QuantumNS: 1e9, Classes: 1}

// Lengths that a release may have, by hand: with two buckets an octave the edges are
// ⌈√2⌉, 2, ⌈2√2⌉, 4 …, that is 2, 3, 4, 6, 8, 12, 16, 23, 32.
func TestMiddles(t *testing.T) {
	below := func(all map[int64]bool, n int64) (out []int64) {
		for m := range all {
			if m < n {
				out = append(out, m)
			}
		}
		slices.Sort(out)
		return out
	}
	two := middles(2)
	if got := below(two, 30); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 6, 9, 13, 19, 27}) {
		t.Errorf("two an octave: %v", got)
	}
	one := middles(1)
	if got := below(one, 50); !slices.Equal(got, []int64{0, 1, 2, 5, 11, 23, 47}) || len(one) != 32 {
		t.Errorf("one an octave: %v, %d in all", got, len(one))
	}
	if !one[(1<<30+1<<31-1)/2] || !two[(1518500250+1<<31-1)/2] { // ⌈2^30.5⌉ is 1,518,500,250
		t.Error("the last bucket ends at 2^31")
	}
}

// Every rule of the card is broken by the row that is named, and by no other.
func TestRulesOfTheCard(t *testing.T) {
	ns := func(d time.Duration) *int64 { return trace.Ptr(int64(d)) }
	for name, c := range map[string]struct {
		change func(r *trace.Request)
		want   []string
	}{
		"as it says":              {func(*trace.Request) {}, nil},
		"no blocks":               {func(r *trace.Request) { r.Blocks = nil }, nil},
		"no pauses":               {func(r *trace.Request) { r.ThinkNS, r.ToolNS = nil, nil }, nil},
		"no tokens":               {func(r *trace.Request) { r.InputTokens, r.OutputTokens, r.Blocks = 0, 0, nil }, nil},
		"input":                   {func(r *trace.Request) { r.InputTokens = 24 }, []string{"input_tokens"}},
		"output":                  {func(r *trace.Request) { r.OutputTokens = 6 }, []string{"output_tokens"}},
		"think":                   {func(r *trace.Request) { r.ThinkNS = ns(1500 * time.Millisecond) }, []string{"think_ns"}},
		"think, no middle":        {func(r *trace.Request) { r.ThinkNS = ns(4 * time.Second) }, []string{"think_ns"}},
		"think, none":             {func(r *trace.Request) { r.ThinkNS = ns(0) }, []string{"think_ns"}},
		"think, negative":         {func(r *trace.Request) { r.ThinkNS = ns(-time.Second) }, []string{"think_ns"}},
		"tool":                    {func(r *trace.Request) { r.ToolNS = ns(3 * time.Second) }, []string{"tool_ns"}},
		"a block is missing":      {func(r *trace.Request) { r.Blocks = r.Blocks[:1] }, []string{"blocks"}},
		"a block too many":        {func(r *trace.Request) { r.Blocks = []uint64{0, 1, 2} }, []string{"blocks"}},
		"blocks of tier internal": {func(r *trace.Request) { r.Blocks = []uint64{0, 2} }, []string{"blocks, which are numbered from 0"}},
		"the last number":         {func(r *trace.Request) { r.Blocks = []uint64{0, 1<<64 - 1} }, []string{"blocks, which are numbered from 0"}},
		"user":                    {func(r *trace.Request) { r.User = trace.Ptr(int64(0)) }, []string{"user, which is dropped"}},
		"replica":                 {func(r *trace.Request) { r.Replica = trace.Ptr("replica-0") }, []string{"replica, which is dropped"}},
		"output blocks":           {func(r *trace.Request) { r.OutputBlocks = []uint64{0} }, []string{"output_blocks, which are dropped"}},
		"finish":                  {func(r *trace.Request) { r.FinishReason = "stop" }, []string{"finish_reason, which is dropped"}},
		"reasoning":               {func(r *trace.Request) { r.ReasoningTokens = trace.Ptr(int32(0)) }, []string{"counts, which are dropped"}},
		"cached":                  {func(r *trace.Request) { r.CachedTokens = trace.Ptr(int32(0)) }, []string{"counts, which are dropped"}},
		"image tokens":            {func(r *trace.Request) { r.ImageTokens = trace.Ptr(int32(0)) }, []string{"counts, which are dropped"}},
		"images":                  {func(r *trace.Request) { r.Images = trace.Ptr(int32(0)) }, []string{"counts, which are dropped"}},
		"max_tokens":              {func(r *trace.Request) { r.MaxTokens = trace.Ptr(int32(0)) }, []string{"counts, which are dropped"}},
		"temperature":             {func(r *trace.Request) { r.Temperature = trace.Ptr(float32(0)) }, []string{"settings, which are dropped"}},
		"stream":                  {func(r *trace.Request) { r.Stream = trace.Ptr(false) }, []string{"settings, which are dropped"}},
		"TTFT":                    {func(r *trace.Request) { r.TTFTNS = ns(0) }, []string{"latencies, which are dropped"}},
		"E2E":                     {func(r *trace.Request) { r.E2ENS = ns(0) }, []string{"latencies, which are dropped"}},
		"two of them": {func(r *trace.Request) { r.E2ENS, r.OutputTokens = ns(0), 6 },
			[]string{"latencies, which are dropped", "output_tokens"}},
	} {
		r := trace.Request{InputTokens: 23, OutputTokens: 5, ThinkNS: ns(500 * time.Millisecond), ToolNS: ns(2 * time.Second), Blocks: []uint64{0, 1}}
		c.change(&r)
		f := rules(t.Context(), &Case{Output: partnerOutput(t, oneBucket, trace.Meta{BlockSize: 16}, r)})
		want := passed(Figures{"rows": 1, "pairs_of_lengths": 1}, "lengths and pauses are of public buckets, what the card says is dropped is not there, and no block follows two others")
		if c.want != nil {
			words := c.want[0]
			if len(c.want) > 1 {
				words += ", " + c.want[1]
			}
			want = failed(Figures{"rows": 1, "pairs_of_lengths": 1, "not_as_the_card_says": c.want}, "rows are not as the card says: %s", words)
		}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("%s: %+v, want %+v", name, f, want)
		}
	}
}

// What is of the whole release and of no one row.
func TestRulesOfTheRelease(t *testing.T) {
	row := func(in, out int32, blocks ...uint64) trace.Request {
		return trace.Request{InputTokens: in, OutputTokens: out, Blocks: blocks}
	}
	behind := []trace.Request{row(23, 5, 0, 1), row(23, 5, 2, 1)}
	fig := Figures{"rows": 2, "pairs_of_lengths": 1}
	for name, c := range map[string]struct {
		meta trace.Meta
		rows []trace.Request
		want Finding
	}{
		"more pairs than the card says": {trace.Meta{BlockSize: 16}, []trace.Request{row(23, 5), row(23, 2)},
			failed(Figures{"rows": 2, "pairs_of_lengths": 2, "not_as_the_card_says": []string{"2 pairs of lengths, and the card says 1"}},
				"rows are not as the card says: 2 pairs of lengths, and the card says 1")},
		"behind two others, of text": {trace.Meta{BlockSize: 16, Tokenizer: "o200k_base"}, behind,
			failed(fig, "some blocks stand behind different ones, as filling that is the same for all: their number is the length")},
		"behind two others, of ids": {trace.Meta{BlockSize: 16}, behind,
			inconclusive(fig, "some blocks stand behind different ones: either the source's own ids are not chained, or what fills lists up is the same for all")},
		"made of a trace": {trace.Meta{BlockSize: 16, Seed: "1"}, behind,
			skipped("the workload was made of a trace, and its lengths and times of a seed")},
	} {
		if f := rules(t.Context(), &Case{Output: partnerOutput(t, oneBucket, c.meta, c.rows...)}); !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
	house := &Output{Kind: kindTrace, Trace: linkTrace(t, trace.Meta{}, nil), Meta: map[string]string{"tier": anonymize.Internal}}
	if f := rules(t.Context(), &Case{Output: house}); !reflect.DeepEqual(f, skipped("it is of tier partner: others keep what they have")) {
		t.Errorf("tier internal: %+v", f)
	}
	house.Meta["tier"] = anonymize.Partner
	if f := rules(t.Context(), &Case{Output: house}); f.Status != Inconclusive || f.Why != "it could not be run to its end: the privacy card does not match its hash: the file was changed" {
		t.Errorf("without a card: %+v", f)
	}
}
