package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// leadsOf are the codes of the diagnoses.
func leadsOf(t *testing.T, run result.Run, opts Options, results ...result.Result) (codes []string) {
	t.Helper()
	for _, d := range summarise(t, run, opts, results...).Diagnoses {
		codes = append(codes, d.Code)
		if !strings.HasSuffix(d.Text, ".") || d.Confirm == "" || strings.HasSuffix(d.Confirm, ".") || strings.Contains(d.Text+d.Confirm, "%!") || !strings.Contains(d.Text, "(") {
			t.Errorf("%+v", d)
		}
	}
	return codes
}

// Each diagnosis is made of the run that shows its sign, and of no healthy one.
func TestDiagnoses(t *testing.T) {
	load := func(n int, of func(i int64) result.Result) (out []result.Result) {
		for i := range int64(n) {
			out = append(out, of(i))
		}
		return out
	}
	// Five in flight, each with the same gaps.
	healthy := func(i int64) result.Result { return answer(i, i*10, 0, 20+i%5, 30+i%5, 40+i%5, 50+i%5) }
	for want, results := range map[string][]result.Result{
		"": load(400, healthy),
		leadClientWait: load(400, func(i int64) result.Result {
			return answer(i, i*10, i%50/49*20, 20, 30, 40, 50)
		}),
		leadSaturated: load(400, func(i int64) result.Result { return answer(i, i*10, 0, 20+2*i, 30+2*i, 40+2*i, 50+2*i) }),
		leadTail: load(400, func(i int64) result.Result {
			slow := i % 50 / 49 * 200
			return answer(i, i*10, 0, 20+slow, 30+slow, 40+slow, 50+slow)
		}),
		leadPrefill: load(400, func(i int64) result.Result {
			r := answer(i, i*10, 0, 20+i%2*40, 30+i%2*40, 40+i%2*40, 50+i%2*40)
			r.Input = trace.Ptr(int32(100 + i%2*4000))
			return r
		}),
		leadInterference: load(400, func(i int64) result.Result { return answer(i, i*10, 0, 20, 30, 40, 50+i%10/9*50) }),
		leadSingle:       load(50, func(i int64) result.Result { return answer(i, i*100, 0, 20, 30, 40) }),
		leadColdCache: load(400, func(i int64) result.Result {
			r := healthy(i)
			r.Known, r.Cached = trace.Ptr(int32(80)), trace.Ptr(int32(16))
			return r
		}),
		leadNoCache: load(400, func(i int64) result.Result {
			r := healthy(i)
			r.Known, r.Cached = trace.Ptr(int32(80)), trace.Ptr(int32(0))
			return r
		}),
		leadClient: load(400, func(i int64) result.Result { return answer(i, i*10, 30, 20, 30, 40, 50) }),
	} {
		got := strings.Join(leadsOf(t, result.Run{Source: result.Source{ServerBlock: 16}}, Options{}, results...), " ")
		if want == leadSaturated && got == leadSaturated+" "+leadTail { // what saturates has a tail
			continue
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// With one request in flight, no prompt of another can stand between its steps.
	alone := load(400, func(i int64) result.Result { return answer(i, i*1000, 0, 20, 30, 40, 50+i%10/9*50) })
	if got := leadsOf(t, result.Run{Source: result.Source{ServerBlock: 16}}, Options{}, alone...); slices.Contains(got, leadInterference) {
		t.Errorf("one request in flight: %q", got)
	}
	// Requests that take as long as the run all come under way, and none falls behind.
	long := load(400, func(i int64) result.Result { return answer(i, i*10, 0, 20, 30, 1500, 3000) })
	if got := leadsOf(t, result.Run{}, Options{}, long...); slices.Contains(got, leadSaturated) {
		t.Errorf("a run of four seconds with requests of three: %v", got)
	}
	// A batch that grows slows all tokens, and that is no ramp-up.
	slower := load(400, func(i int64) result.Result { return answer(i, i*10, 0, 20, 30+i*4, 40+i*6, 50+i*8) })
	if got := leadsOf(t, result.Run{}, Options{}, slower...); !slices.Contains(got, leadSaturated) {
		t.Errorf("a server whose tokens come ever more slowly: %v", got)
	}
	if got := leadsOf(t, result.Run{Load: result.Load{Timing: result.ClosedLoop}}, Options{}, load(400, func(i int64) result.Result { return answer(i, i*10, 0, 20+2*i, 30+2*i) })...); slices.Contains(got, leadSaturated) {
		t.Error("a closed loop cannot fall behind")
	}
}

// What is behind hits that were not expected, or not found: blocks of another size, slots in
// place of blocks, prefixes that end before a boundary; and what says nothing about caches.
func TestHitsOtherThanExpected(t *testing.T) {
	const input = 3000
	llama := &result.Environment{Servers: []result.ServerModels{{Engine: "llamacpp", Models: []result.ServedModel{{OwnedBy: "llamacpp"}}}}}
	cold := &result.CacheDiscipline{Done: result.CacheNewSeed}
	inBlocks := func(size int32) func(known int32) int32 {
		return func(known int32) int32 { return known / size * size }
	}
	less := func(tokens int32) func(known int32) int32 {
		return func(known int32) int32 { return max(known/128*128-tokens, 0) }
	}
	for name, c := range map[string]struct {
		run    result.Run
		block  int
		cached func(known int32) int32
		other  bool // tokens than were wanted
		code   string
		says   string
	}{
		"larger blocks": {result.Run{}, 16, inBlocks(128), false, leadBlockSize,
			"The server has blocks of another size than was expected: all counts of cached tokens are multiples of 128, and blocks of 128 tokens explain the 32.9 % that were found (measured hit ratio), where blocks of 16 would give 34.6 % (expected hit ratio)."},
		"smaller blocks": {result.Run{}, 128, inBlocks(16), false, leadBlockSize,
			"The server has blocks of another size than was expected: all counts of cached tokens are multiples of 16, and blocks of 16 tokens explain the 34.6 % that were found (measured hit ratio), where blocks of 128 would give 32.9 % (expected hit ratio)."},
		"by the token": {result.Run{}, 128, inBlocks(1), false, leadBlockSize,
			"The server finds prefixes by the token and not in blocks: that explains the 34.9 % that were found (measured hit ratio), where blocks of 128 would give 32.9 % (expected hit ratio)."},
		"slots": {result.Run{Servers: result.Servers{}, Environment: llama}, 1, func(known int32) int32 { return known - known%7*40 }, false, leadSlotCache,
			"llama.cpp keeps the last sequence of each slot and no blocks: a prompt finds a prefix only while a slot holds it. 30.9 % of the prompt tokens came from the slots, and 34.9 % could have from one cache that keeps all (measured and expected hit ratio): that expectation is not of this engine."},
		"one block less": {result.Run{}, 128, less(128), false, leadBoundary,
			"Each prompt that shares a prefix found one block of 128 tokens less than expected (measured and expected hit ratio): what prompts share ends a few tokens before the boundary of a block, as when more of a chat template stands before them than was measured. Eviction would take more."},
		"evicted":                         {result.Run{}, 128, less(384), false, leadColdCache, "Prefixes were computed again: 20.1 % of the prompt tokens came from the cache, and 32.9 % could have with one cache without limit (measured and expected hit ratio)."},
		"of another tokenizer":            {result.Run{Load: result.Load{Tokenizer: "o200k_base"}}, 128, less(384), true, warnTokenizer, ""},
		"many more, of another tokenizer": {result.Run{Load: result.Load{Tokenizer: "o200k_base"}}, 128, func(known int32) int32 { return known/128*128 + 768 }, true, warnTokenizer, ""},
		"more":                            {result.Run{}, 128, less(-256), false, warnForeignHits, "8.53 pt more cache hits than expected (hits: 41.4 %, expected: 32.9 %): the cache was warm from earlier runs. Try --cache salted"},
		"more, though cold":               {result.Run{Servers: result.Servers{Cache: cold}}, 128, less(-256), false, warnForeignHits, "8.53 pt more cache hits than expected (hits: 41.4 %, expected: 32.9 %): no earlier run sent these prompts, so others send them too, or the server counts hits in another way"},
		"more, of real prompts": {result.Run{Load: result.Load{Prompts: result.PromptsVerbatim}}, 128, less(-256), false, warnForeignHits,
			"8.53 pt more cache hits than expected (hits: 41.4 %, expected: 32.9 %): real prompts share more than whole " +
				"blocks of 512 tokens, and generated text, or the cache was warm from earlier runs"},
		"more, of replies": {result.Run{Thread: &result.Threads{Recoded: 3}}, 128, less(-256), false, warnGeneratedHits,
			"8.53 pt more cache hits than expected (hits: 41.4 %, expected: 32.9 %): in 3 prompts the reply may encode to " +
				"other tokens than were generated, and hits after the first such token are not expected"},
		"as expected": {result.Run{}, 128, inBlocks(128), false, "", ""},
	} {
		c.run.ServerBlock, c.run.BlockSize = c.block, 512
		var rows []result.Result
		for i := range int32(40) {
			known := 520 + i*27
			r := hit(int64(i), input, known, c.cached(known))
			if r.WantInput = input; c.other {
				r.WantInput = input - 100 - i%4/3*900
			}
			rows = append(rows, r)
		}
		s := summarise(t, c.run, warningsAlone(), rows...)
		var codes, says []string
		for _, d := range s.Diagnoses {
			if slices.Contains([]string{leadBlockSize, leadSlotCache, leadBoundary, leadColdCache, leadNoCache}, d.Code) {
				codes, says = append(codes, d.Code), append(says, d.Text)
			}
		}
		for _, w := range s.Warnings {
			if w.Code == warnForeignHits || w.Code == warnGeneratedHits || w.Code == warnTokenizer {
				codes, says = append(codes, w.Code), append(says, w.Text)
			}
		}
		if got := strings.Join(codes, " "); got != c.code || c.says != "" && says[0] != c.says {
			t.Errorf("%s: %q, want %q\n%s", name, got, c.code, strings.Join(says, "\n"))
		}
	}
}

// More memory is a hint at caches alone that are on: with one that is off, or finds
// nothing, that is what is said.
func TestCachingOff(t *testing.T) {
	flags := func(f string) result.Run {
		return result.Run{Environment: &result.Environment{Deployment: &result.Deployment{EngineFlags: f}}}
	}
	off, on := result.Run{Simulation: result.Simulation{PrefixCaching: trace.Ptr(false)}}, result.Run{Simulation: result.Simulation{PrefixCaching: trace.Ptr(true)}}
	for _, c := range []struct {
		run    result.Run
		cached int32
		code   string
		says   string
	}{
		{off, 0, leadNoCache, "Prefix caching was off"}, {on, 0, leadColdCache, "computed again"}, {on, 16, leadColdCache, "computed again"},
		{result.Run{}, 0, leadNoCache, "Nothing was found"}, {result.Run{}, 16, leadColdCache, "computed again"},
		{flags("--tp 2 --no-enable-prefix-caching"), 0, leadNoCache, "was off"}, {flags("--disable-radix-cache"), 0, leadNoCache, "was off"},
		{flags("--enable-prefix-caching"), 16, leadColdCache, "computed again"},
	} {
		c.run.ServerBlock = 16
		s := summarise(t, c.run, Options{}, hit(0, 100, 80, c.cached))
		i := slices.IndexFunc(s.Diagnoses, func(d Diagnosis) bool { return d.Code == leadColdCache || d.Code == leadNoCache })
		if i < 0 {
			t.Errorf("%+v: %+v", c, s.Diagnoses)
			continue
		}
		if d := s.Diagnoses[i]; d.Code != c.code || !strings.Contains(d.Text, c.says) || strings.Contains(d.Confirm, "memory") != (c.code == leadColdCache) {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// What an expected hit ratio rests on is said with it.
func TestExpectedFrom(t *testing.T) {
	for want, run := range map[string]result.Run{
		fromPrompts: {}, fromReplies: {Thread: &result.Threads{}}, fromWarmUp: {Servers: result.Servers{Cache: &result.CacheDiscipline{Done: result.CacheWarmPass}}},
	} {
		run.ServerBlock = 16
		s := summarise(t, run, Options{}, hit(0, 100, 80, 16))
		var text strings.Builder
		if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
		if s.Cache.ExpectedFrom != want || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "80 % │ "+expectedFromWords[want]) {
			t.Errorf("%q, want %q:\n%s", s.Cache.ExpectedFrom, want, text.String())
		}
	}
	if s := summarise(t, result.Run{}, Options{}, hit(0, 100, 80, 16)); s.Cache.ExpectedFrom != "" {
		t.Errorf("nothing is expected, from %q", s.Cache.ExpectedFrom)
	}
}

// What servers say of themselves goes before what is guessed from outside.
func TestServerDiagnoses(t *testing.T) {
	s := Summary{Servers: &Servers{Waiting: &Level{3, 9, 100}, GPUUse: &Level{0.2, 0.4, 100}, Preemptions: trace.Ptr(4.0), KVUsage: &Level{0.9, 1, 100}}}
	s.Latency.FromSent.TTFT.TailRatio = trace.Ptr(9.0)
	l := &leads{}
	l.queue(&s)
	l.cache(&s)
	var got []string
	for _, d := range l.out {
		got = append(got, d.Code)
	}
	if want := []string{leadQueueing, leadIdleGPU, leadMemory}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

var digit = regexp.MustCompile(`[0-9]`)

// Every number on the page has its definition at hand: in its column or its row,
// or with its fact or plot. That the definition exists, the page checks itself.
func TestPageDefinesItsNumbers(t *testing.T) {
	run, results, opts := smallRun()
	for i := range results {
		results[i].Class = []string{"", "batch", "interactive"}[i%3]
		results[i].User = trace.Ptr(int64(i % 3))
	}
	s := summarise(t, run, opts, results...)
	s.Servers = &Servers{Running: &Level{1, 2, 100}, Waiting: &Level{1, 2, 100}, KVUsage: &Level{1, 2, 100}, PrefixHits: trace.Ptr(1.0), PrefixQueries: trace.Ptr(2.0), PrefixRatio: trace.Ptr(0.5),
		Preemptions: trace.Ptr(1.0), Generated: trace.Ptr(1.0), GPUUse: &Level{1, 2, 100}, GPUPowerW: &Level{1, 2, 100}, GPUMemoryMiB: &Level{1, 2, 100}, Speculation: &Speculation{Acceptance: trace.Ptr(0.5)}}
	s.Steady = &Steady{Window: &Stretch{}, TTFT: &Stat{Count: 1}, ITLChunk: &Stat{}, TPOT: &Stat{}, E2E: &Stat{}, Reason: "none"}
	holdDefined(t, Page(s))
}

func holdDefined(t *testing.T, p *doc.Document) {
	t.Helper()
	at := func(list []string, i int) bool { return i < len(list) && list[i] != "" }
	for _, f := range p.Facts {
		if f.Term == "" {
			t.Errorf("fact %q has no definition", f.Label)
		}
	}
	for _, sec := range p.Sections {
		for _, table := range sec.Tables {
			for i, row := range table.Rows {
				for col, cell := range row {
					if col > 0 && digit.MatchString(cell) && !at(table.HeadTerms, col) && !at(table.RowTerms, i) {
						t.Errorf("%s, %s: %q in row %q has no definition", sec.Title, table.Caption, cell, row[0])
					}
				}
			}
		}
		for _, plot := range sec.Plots {
			if plot.Term == "" {
				t.Errorf("plot %q has no definition", plot.Title)
			}
		}
	}
	if err := p.Write(&strings.Builder{}); err != nil {
		t.Error(err)
	}
}

// Tokens over time are those of the totals, however they are spread over events
// and whatever the width of the bins.
func TestTokensOverTime(t *testing.T) {
	var results []result.Result
	for i := range int64(3000) {
		r := answer(i, i*700, 0, 20, 30, 170, 171)
		r.Input, r.Output = trace.Ptr(int32(50+i%9)), trace.Ptr(int32(7))
		if i%3 == 0 {
			r.EventTokens = []int32{1, 1, 2, 3}
		}
		results = append(results, r)
	}
	s := summarise(t, result.Run{}, Options{}, results...)
	for _, test := range []struct {
		name string
		of   doc.Series
		want int64
	}{{"prompt", s.Series.PromptPerS, s.Tokens.Prompt}, {"output", s.Series.OutputPerS, s.Tokens.Output}} {
		total := 0.0
		for _, y := range test.of.Y {
			total += y * s.Series.CoarseS
		}
		near(t, test.name+" tokens over time", &total, float64(test.want), 1e-9)
	}
}

// Hit ratios over time have the measured and expected ratio as their weighted mean.
func TestHitsOverTime(t *testing.T) {
	var results []result.Result
	for i := range int64(100) {
		r := answer(i, i*100, 0, 20, 30)
		r.Known, r.Cached = trace.Ptr(int32(i)), trace.Ptr(int32(i/2))
		results = append(results, r)
	}
	s := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, Options{}, results...)
	for name, test := range map[string]struct {
		of   doc.Series
		want *float64
	}{"measured": {s.Series.Hits, s.Cache.Measured}, "expected": {s.Series.HitsAllowed, s.Cache.Expected}} {
		mean := 0.0
		for _, y := range test.of.Y { // every bin has one request of 100 tokens
			mean += y / float64(len(test.of.Y))
		}
		near(t, name, &mean, *test.want, 1e-9)
		if len(test.of.X) != 100 {
			t.Errorf("%s: %d bins", name, len(test.of.X))
		}
	}
}

// Rows with a class get a table of their own; a file of too many classes stays bounded.
func TestClasses(t *testing.T) {
	var results []result.Result
	for i := range int64(300) {
		r := answer(i, i*10, 0, 20+i%3*10, 30+i%3*15)
		r.Class = []string{"batch", "", "interactive"}[i%3]
		results = append(results, r)
	}
	s := summarise(t, result.Run{}, Options{}, results...)
	var got []string
	for _, c := range s.ByClass {
		got = append(got, fmt.Sprintf("%s:%d:%v:%v:%v", c.Class, c.Rows, *c.TTFTP50, *c.TPOTP50, *c.E2EP99))
	}
	if want := ":100:30:15:45 batch:100:20:10:30 interactive:100:40:20:60"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
	if s := summarise(t, result.Run{}, Options{}, answer(0, 0, 0, 1)); s.ByClass != nil {
		t.Error("classes where no row has one")
	}
	for i := range results {
		results[i].Class = fmt.Sprint(i)
	}
	s = summarise(t, result.Run{}, Options{}, results...)
	var rows int64
	for _, c := range s.ByClass {
		rows += c.Rows
	}
	if len(s.ByClass) > maxNames+1 || rows != 300 {
		t.Errorf("%d classes of %d rows", len(s.ByClass), rows)
	}
}
