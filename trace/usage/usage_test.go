package usage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// usageWords puts a usage into words.
func usageWords(u Tokens) string {
	var words []string
	for _, part := range []struct {
		name string
		n    *int32
	}{{"in", u.Input}, {"cached", u.Cached}, {"written", u.Written}, {"out", u.Output}, {"reasoning", u.Reasoning}} {
		if part.n != nil {
			words = append(words, fmt.Sprint(part.name, "=", *part.n))
		}
	}
	return strings.Join(words, " ")
}

func countsOf(t *testing.T, text string) *Counts {
	t.Helper()
	c := &Counts{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// The usage objects of providers, gateways and tracers: the whole prompt is the input.
func TestUsageOfProviders(t *testing.T) {
	for _, c := range []struct {
		convention Dialect
		usage      string
		want       string
	}{
		// OpenAI Chat, Responses, DeepSeek
		{Inclusive, `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_tokens_details":{"cached_tokens":640,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":12}}`,
			"in=900 cached=640 out=40 reasoning=12"},
		{Inclusive, `{"input_tokens":900,"input_tokens_details":{"cached_tokens":640,"cache_write_tokens":100},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":940}`,
			"in=900 cached=640 written=100 out=40 reasoning=12"},
		{Inclusive, `{"prompt_tokens":900,"completion_tokens":40,"prompt_cache_hit_tokens":640,"prompt_cache_miss_tokens":260}`, "in=900 cached=640 out=40"},
		// Codex
		{Inclusive, `{"input_tokens":900,"cached_input_tokens":640,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":20,"total_tokens":940}`,
			"in=900 cached=640 written=0 out=40 reasoning=20"},
		// Anthropic, Claude Code, Bedrock
		{Exclusive, `{"input_tokens":3,"cache_creation_input_tokens":900,"cache_read_input_tokens":27000,"output_tokens":210,"cache_creation":{"ephemeral_5m_input_tokens":900}}`,
			"in=27903 cached=27000 written=900 out=210"},
		{Exclusive, `{"inputTokens":20,"outputTokens":40,"totalTokens":940,"cacheReadInputTokens":640,"cacheWriteInputTokens":240}`, "in=900 cached=640 written=240 out=40"},
		{Exclusive, `{"inputTokenCount":20,"outputTokenCount":40,"cacheReadInputTokenCount":640,"cacheWriteInputTokenCount":240}`, "in=900 cached=640 written=240 out=40"},
		{Exclusive, `{"input_tokens":20,"output_tokens":40}`, "in=20 out=40"},
		// Gemini: thoughts are beside the candidates, prompts of tools beside the prompt
		{Inclusive, `{"promptTokenCount":900,"cachedContentTokenCount":640,"candidatesTokenCount":28,"thoughtsTokenCount":12,"toolUsePromptTokenCount":5,"totalTokenCount":945}`,
			"in=905 cached=640 out=40 reasoning=12"},
		{Inclusive, `{"input":900,"output":28,"cached":640,"thoughts":12,"tool":0,"total":940}`, "in=900 cached=640 out=40 reasoning=12"},
		// OpenCode, Cline, Cloudflare, SGLang, OpenHands
		{Exclusive, `{"input":20,"output":28,"reasoning":12,"cache":{"read":640,"write":240},"total":940}`, "in=900 cached=640 written=240 out=40 reasoning=12"},
		{Exclusive, `{"tokensIn":20,"tokensOut":40,"cacheWrites":240,"cacheReads":640,"cost":0.01}`, "in=900 cached=640 written=240 out=40"},
		{Inclusive, `{"tokens_in":900,"tokens_out":40}`, "in=900 out=40"},
		// Cohere, whose billed units leave the template out; Kong before 3.9; Higress
		{Body, `{"billed_units":{"input_tokens":5,"output_tokens":30},"tokens":{"input_tokens":71,"output_tokens":40},"cached_tokens":16}`, "in=71 cached=16 out=40"},
		{Relayed, `{"prompt_token":28,"total_tokens":48,"completion_token":20,"time_per_token":133}`, "in=28 out=20"},
		{Relayed, `{"model":"m","input_token":"21","output_token":"17","duration":"1590"}`, "in=21 out=17"},
		{Inclusive, `{"prompt_tokens":900,"cached_tokens":640,"completion_tokens":40,"e2e_latency":1.2}`, "in=900 cached=640 out=40"},
		{Inclusive, `{"model":"m","prompt_tokens":900,"completion_tokens":40,"cache_read_tokens":640,"cache_write_tokens":0,"reasoning_tokens":12,"response_id":"r"}`,
			"in=900 cached=640 written=0 out=40 reasoning=12"},
		// Tracers: OpenTelemetry old and new, OpenInference flat and nested, LangSmith, Braintrust, Helicone, MLflow
		{Relayed, `{"gen_ai.usage.input_tokens":900,"gen_ai.usage.cache_read.input_tokens":640,"gen_ai.usage.output_tokens":40,"gen_ai.usage.reasoning.output_tokens":12,"input":"5","output":"6"}`,
			"in=900 cached=640 out=40 reasoning=12"},
		{Relayed, `{"gen_ai":{"usage":{"prompt_tokens":"900","completion_tokens":"40","cache_read_input_tokens":640}},"llm.usage.total_tokens":940}`, "in=900 cached=640 out=40"},
		{Relayed, `{"llm.token_count.prompt":900,"llm.token_count.completion":40,"llm.token_count.total":940,"llm.token_count.prompt_details.cache_read":640}`, "in=900 cached=640 out=40"},
		{Relayed, `{"llm":{"token_count":{"prompt":900,"completion":40,"completion_details":{"reasoning":12}}}}`, "in=900 out=40 reasoning=12"},
		{Relayed, `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_token_details":{"raw":{"cache_read":640}}}`, "in=900 cached=640 out=40"},
		{Relayed, `{"start":1.5,"prompt_tokens":900,"prompt_cached_tokens":640,"completion_tokens":40,"tokens":940}`, "in=900 cached=640 out=40"},
		{Relayed, `{"input_tokens":260,"output_tokens":40,"total_tokens":940,"cache_read_input_tokens":640}`, "in=900 cached=640 out=40"},
		{Relayed, `{"input_tokens":20,"output_tokens":40,"cache_read_input_tokens":640,"cache_creation_input_tokens":240}`, "in=900 cached=640 written=240 out=40"},
		// Counts that are beside, told by the total, and reasoning that is more than the output
		{Relayed, `{"input_tokens":900,"output_tokens":28,"total_tokens":940,"cache_read_input_tokens":640,"reasoning_tokens":12}`, "in=900 cached=640 out=40 reasoning=12"},
		{Relayed, `{"input_tokens":900,"output_tokens":1,"reasoning_tokens":12}`, "in=900 out=13 reasoning=12"},
		// xAI: reasoning beside the output, also alone; and the same within it
		{Body, `{"prompt_tokens":100,"completion_tokens":15,"total_tokens":143,"completion_tokens_details":{"reasoning_tokens":28}}`, "in=100 out=43 reasoning=28"},
		{Body, `{"prompt_tokens":21,"completion_tokens":0,"total_tokens":81,"completion_tokens_details":{"reasoning_tokens":60}}`, "in=21 out=60 reasoning=60"},
		{Body, `{"prompt_tokens":100,"completion_tokens":43,"total_tokens":143,"completion_tokens_details":{"reasoning_tokens":28}}`, "in=100 out=43 reasoning=28"},
		// Vertex: the total says that prompts of tools stand beside the prompt, or within it
		{Inclusive, `{"promptTokenCount":200,"toolUsePromptTokenCount":161,"candidatesTokenCount":30,"thoughtsTokenCount":137,"totalTokenCount":528}`, "in=361 out=167 reasoning=137"},
		{Inclusive, `{"promptTokenCount":361,"toolUsePromptTokenCount":161,"candidatesTokenCount":30,"thoughtsTokenCount":137,"totalTokenCount":528}`, "in=361 out=167 reasoning=137"},
		{Inclusive, `{"promptTokenCount":361,"candidatesTokenCount":167,"thoughtsTokenCount":137,"totalTokenCount":528}`, "in=361 out=167 reasoning=137"},
		// The names of an answer say whether cached tokens are beside, whatever their size
		{Body, `{"input_tokens":900,"cache_read_input_tokens":64,"cache_creation_input_tokens":6,"output_tokens":40}`, "in=970 cached=64 written=6 out=40"},
		{Body, `{"prompt_tokens":900,"cache_read_input_tokens":64,"completion_tokens":40,"total_tokens":940}`, "in=900 cached=64 out=40"},
		{Body, `{"prompt_tokens":900,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":836,"completion_tokens":40}`, "in=900 cached=64 out=40"},
		// A total tells the one count that is not there
		{Body, `{"prompt_tokens":21,"total_tokens":81}`, "in=21 out=60"},
		{Body, `{"completion_tokens":60,"total_tokens":81}`, "in=21 out=60"},
		{Body, `{"prompt_tokens":21,"total_tokens":21}`, "in=21"},
		// Nothing, and what is no count
		{Relayed, `{}`, ""},
		{Inclusive, `null`, ""},
		{Inclusive, `[1,2]`, ""},
		{Inclusive, `{"prompt_tokens":-1,"completion_tokens":"x","total_tokens":1.5}`, ""},
		{Inclusive, `{"prompt_tokens":10,"prompt_tokens_details":null}`, "in=10"},
		{Inclusive, `{"prompt_tokens":10,"cached_tokens":12}`, "in=10 cached=10"},
	} {
		u, _, err := countsOf(t, c.usage).Settle(c.convention)
		if got := usageWords(u); got != c.want || err != nil {
			t.Errorf("%s\n  %s %v\n  want %s", c.usage, got, err, c.want)
		}
	}
}

// What a relayed count holds is decided by its record alone: in any order, and whatever others
// of its model show.
func TestUsageIsDecidedByRecord(t *testing.T) {
	const beside, within, open = `{"input_tokens":20,"cache_read_input_tokens":640}`, `{"input_tokens":900,"output_tokens":5,"total_tokens":905,"cache_read_input_tokens":640}`,
		`{"input_tokens":900,"cache_read_input_tokens":640}`
	records := []struct{ usage, want, yes, no string }{
		{beside, "in=660 cached=640", "in=20 cached=20", "in=660 cached=640"},
		{within, "in=900 cached=640 out=5", "in=900 cached=640 out=5", "in=1540 cached=640 out=5"},
		{open, "in=900 cached=640", "in=900 cached=640", "in=1540 cached=640"},
		{`{"prompt_tokens":100,"completion_tokens":15,"total_tokens":143,"reasoning_tokens":28}`, "in=100 out=43 reasoning=28", "in=100 out=43 reasoning=28", "in=100 out=43 reasoning=28"},
		{`{"prompt_tokens":100,"completion_tokens":30,"reasoning_tokens":28}`, "in=100 out=30 reasoning=28", "in=100 out=30 reasoning=28", "in=100 out=30 reasoning=28"},
	}
	for seed := range uint64(8) {
		readers := map[string]*Reader{"": NewReader(Relayed, ""), "yes": NewReader(Relayed, "yes"), "no": NewReader(Relayed, "no")}
		noted := map[Finding]int{}
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(records)) {
			r := records[i]
			for option, want := range map[string]string{"": r.want, "yes": r.yes, "no": r.no} {
				u, found, err := readers[option].Settle(countsOf(t, r.usage))
				if usageWords(u) != want || err != nil {
					t.Errorf("%s, --cached-in-input %q: %s %v, want %s", r.usage, option, usageWords(u), err, want)
				}
				if option != "" {
					continue
				}
				for _, one := range found.All() {
					noted[one]++
				}
			}
		}
		if want := map[Finding]int{CacheAdded: 1, CacheTaken: 1, ReasoningAdded: 1}; !maps.Equal(noted, want) {
			t.Errorf("%v, want %v", noted, want)
		}
	}
	if _, _, err := countsOf(t, `{"input_tokens":2147483647,"cache_read_input_tokens":1}`).Settle(Exclusive); err != errRange {
		t.Error(err)
	}
}

// What breaks the invariant is told, and what comes out keeps it.
func TestFindings(t *testing.T) {
	for usage, want := range map[string]Findings{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`:                                                                    0,
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}`:                                                                    1 << TotalOff,
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":50}}`:                1<<ReasoningAdded | 1<<ReasoningBeyond,
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":4}}`:                 1 << ReasoningAdded,
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cached_tokens":30}`:                                                 1 << CacheAdded,
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`:                                                                      0,
		`{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":4,"totalTokenCount":19,"cachedContentTokenCount":4}`:        0,
		`{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":30,"cache_creation_input_tokens":2,"total_tokens":15}`:            0,
		`{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":30,"cache_creation_input_tokens":2,"total_tokens":47}`:            0,
		`{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}`: 0,
		`{"prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":4}`:                                                          1 << CacheTaken,
	} {
		_, found, err := countsOf(t, usage).Settle(Body)
		if found != want || err != nil {
			t.Errorf("%s: %v %v, want %v", usage, found.All(), err, want.All())
		}
	}
	if _, found, _ := countsOf(t, `{"prompt_tokens":10,"cached_tokens":12}`).Settle(Inclusive); found != 1<<CacheOver {
		t.Errorf("%v", found.All())
	}
	for one := range findings {
		if one.String() == "" {
			t.Errorf("finding %d has no words", one)
		}
	}
}

// Langfuse's details are taken out of input and output.
func TestGatherParts(t *testing.T) {
	for usage, want := range map[string]string{
		`{"input":179,"output":35,"output_reasoning":64,"total":278}`:                                 "in=179 out=99 reasoning=64",
		`{"input":260,"input_cached_tokens":640,"input_cache_creation":100,"output":40,"total":1040}`: "in=1000 cached=640 out=40",
		`{"input":900,"prompt_details.cache_read":640,"output":40,"total":940}`:                       "in=900 cached=640 out=40",
		`{"input":900,"input_cached_tokens":640,"output":40,"total":940}`:                             "in=900 cached=640 out=40",
		`{"promptTokens":9,"completionTokens":3,"totalTokens":12}`:                                    "in=9 out=3",
	} {
		var v any
		decoder := json.NewDecoder(strings.NewReader(usage))
		decoder.UseNumber()
		if err := decoder.Decode(&v); err != nil {
			t.Fatal(err)
		}
		c := GatherParts(v)
		u, _, err := c.Settle(Inclusive)
		if got := usageWords(u); got != want || err != nil {
			t.Errorf("%s: %s %v, want %s", usage, got, err, want)
		}
	}
}

// Counts that come one by one, as a stream has them.
func TestTake(t *testing.T) {
	var c Counts
	for path, n := range map[string]int64{"prompt_tokens": 100, "completion_tokens": 15, "total_tokens": 143, "completion_tokens_details.reasoning_tokens": 28} {
		if !c.Take([]byte(path), n) {
			t.Errorf("%s is not known", path)
		}
	}
	if c.Take([]byte("queue_time"), 5) || c.Take([]byte(strings.Repeat("x", 1000)), 5) {
		t.Error("it takes what is no count")
	}
	if u, _, _ := c.Settle(Body); usageWords(u) != "in=100 out=43 reasoning=28" {
		t.Error(usageWords(u))
	}
	path := []byte("completion_tokens_details.reasoning_tokens")
	if n := testing.AllocsPerRun(10, func() { c.Take(path, 28) }); n != 0 {
		t.Errorf("%v allocations", n)
	}

	// Later counts win; a zero of OpenAI's streams holds a place.
	var last Counts
	last.Take([]byte("completion_tokens"), 0)
	last.Take([]byte("prompt_tokens"), 101)
	c.Add(&last, false)
	if n, _ := c.Get(Output); n != 15 {
		t.Errorf("a placeholder became the output: %d", n)
	}
	c.Add(&last, true)
	if n, _ := c.Get(Output); n != 0 {
		t.Errorf("a zero that was meant was not taken: %d", n)
	}
}

func FuzzUsage(f *testing.F) {
	for _, s := range []string{`{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":640},"total_tokens":940}`,
		`{"input_tokens":3,"cache_read_input_tokens":27000,"output_tokens":210,"reasoning_tokens":500}`, `{"llm":{"token_count":{"prompt":"9"}}}`,
		`{"input":179,"output":35,"output_reasoning":64,"total":278}`} {
		f.Add([]byte(s), uint8(Relayed))
	}
	f.Fuzz(func(t *testing.T, in []byte, dialect uint8) {
		var c Counts
		if json.Unmarshal(in, &c) != nil {
			return
		}
		var v any
		decoder := json.NewDecoder(strings.NewReader(string(in)))
		decoder.UseNumber()
		if decoder.Decode(&v) != nil {
			return
		}
		for _, counts := range []Counts{c, GatherParts(v)} {
			u, _, err := counts.Settle(Dialect(dialect % 4))
			if err != nil {
				return
			}
			if u.Input != nil && u.Cached != nil && *u.Cached > *u.Input || u.Output != nil && u.Reasoning != nil && *u.Reasoning > *u.Output {
				t.Fatalf("%s: %s", in, usageWords(u))
			}
			for _, n := range []*int32{u.Input, u.Cached, u.Written, u.Output, u.Reasoning} {
				if n != nil && *n < 0 {
					t.Fatalf("%s: %s", in, usageWords(u))
				}
			}
		}
	})
}
