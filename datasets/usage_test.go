package datasets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// usageWords puts a usage into words.
func usageWords(u tokenUsage) string {
	var words []string
	for _, part := range []struct {
		name string
		n    *int32
	}{{"in", u.input}, {"cached", u.cached}, {"written", u.written}, {"out", u.output}, {"reasoning", u.reasoning}} {
		if part.n != nil {
			words = append(words, fmt.Sprint(part.name, "=", *part.n))
		}
	}
	return strings.Join(words, " ")
}

func usageOf(t *testing.T, text string) any {
	t.Helper()
	v, _, ok := decodeJSON([]byte(text))
	if !ok {
		t.Fatalf("%s is no JSON", text)
	}
	return v
}

// The usage objects of providers, gateways and tracers: the whole prompt is the input.
func TestUsageOfProviders(t *testing.T) {
	for _, c := range []struct {
		convention usageConvention
		usage      string
		want       string
	}{
		// OpenAI Chat, Responses, DeepSeek
		{usageInclusive, `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_tokens_details":{"cached_tokens":640,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":12}}`,
			"in=900 cached=640 out=40 reasoning=12"},
		{usageInclusive, `{"input_tokens":900,"input_tokens_details":{"cached_tokens":640,"cache_write_tokens":100},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":940}`,
			"in=900 cached=640 written=100 out=40 reasoning=12"},
		{usageInclusive, `{"prompt_tokens":900,"completion_tokens":40,"prompt_cache_hit_tokens":640,"prompt_cache_miss_tokens":260}`, "in=900 cached=640 out=40"},
		// Codex
		{usageInclusive, `{"input_tokens":900,"cached_input_tokens":640,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":20,"total_tokens":940}`,
			"in=900 cached=640 written=0 out=40 reasoning=20"},
		// Anthropic, Claude Code, Bedrock
		{usageExclusive, `{"input_tokens":3,"cache_creation_input_tokens":900,"cache_read_input_tokens":27000,"output_tokens":210,"cache_creation":{"ephemeral_5m_input_tokens":900}}`,
			"in=27903 cached=27000 written=900 out=210"},
		{usageExclusive, `{"inputTokens":20,"outputTokens":40,"totalTokens":940,"cacheReadInputTokens":640,"cacheWriteInputTokens":240}`, "in=900 cached=640 written=240 out=40"},
		{usageExclusive, `{"inputTokenCount":20,"outputTokenCount":40,"cacheReadInputTokenCount":640,"cacheWriteInputTokenCount":240}`, "in=900 cached=640 written=240 out=40"},
		{usageExclusive, `{"input_tokens":20,"output_tokens":40}`, "in=20 out=40"},
		// Gemini: thoughts are beside the candidates, prompts of tools beside the prompt
		{usageInclusive, `{"promptTokenCount":900,"cachedContentTokenCount":640,"candidatesTokenCount":28,"thoughtsTokenCount":12,"toolUsePromptTokenCount":5,"totalTokenCount":945}`,
			"in=905 cached=640 out=40 reasoning=12"},
		{usageInclusive, `{"input":900,"output":28,"cached":640,"thoughts":12,"tool":0,"total":940}`, "in=900 cached=640 out=40 reasoning=12"},
		// OpenCode, Cline, Cloudflare, SGLang, OpenHands
		{usageExclusive, `{"input":20,"output":28,"reasoning":12,"cache":{"read":640,"write":240},"total":940}`, "in=900 cached=640 written=240 out=40 reasoning=12"},
		{usageExclusive, `{"tokensIn":20,"tokensOut":40,"cacheWrites":240,"cacheReads":640,"cost":0.01}`, "in=900 cached=640 written=240 out=40"},
		{usageInclusive, `{"tokens_in":900,"tokens_out":40}`, "in=900 out=40"},
		{usageInclusive, `{"prompt_tokens":900,"cached_tokens":640,"completion_tokens":40,"e2e_latency":1.2}`, "in=900 cached=640 out=40"},
		{usageInclusive, `{"model":"m","prompt_tokens":900,"completion_tokens":40,"cache_read_tokens":640,"cache_write_tokens":0,"reasoning_tokens":12,"response_id":"r"}`,
			"in=900 cached=640 written=0 out=40 reasoning=12"},
		// Tracers: OpenTelemetry old and new, OpenInference flat and nested, LangSmith, Braintrust, Helicone, MLflow
		{usageRelayed, `{"gen_ai.usage.input_tokens":900,"gen_ai.usage.cache_read.input_tokens":640,"gen_ai.usage.output_tokens":40,"gen_ai.usage.reasoning.output_tokens":12,"input":"5","output":"6"}`,
			"in=900 cached=640 out=40 reasoning=12"},
		{usageRelayed, `{"gen_ai":{"usage":{"prompt_tokens":"900","completion_tokens":"40","cache_read_input_tokens":640}},"llm.usage.total_tokens":940}`, "in=900 cached=640 out=40"},
		{usageRelayed, `{"llm.token_count.prompt":900,"llm.token_count.completion":40,"llm.token_count.total":940,"llm.token_count.prompt_details.cache_read":640}`, "in=900 cached=640 out=40"},
		{usageRelayed, `{"llm":{"token_count":{"prompt":900,"completion":40,"completion_details":{"reasoning":12}}}}`, "in=900 out=40 reasoning=12"},
		{usageRelayed, `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_token_details":{"raw":{"cache_read":640}}}`, "in=900 cached=640 out=40"},
		{usageRelayed, `{"start":1.5,"prompt_tokens":900,"prompt_cached_tokens":640,"completion_tokens":40,"tokens":940}`, "in=900 cached=640 out=40"},
		{usageRelayed, `{"input_tokens":260,"output_tokens":40,"total_tokens":940,"cache_read_input_tokens":640}`, "in=900 cached=640 out=40"},
		{usageRelayed, `{"input_tokens":20,"output_tokens":40,"cache_read_input_tokens":640,"cache_creation_input_tokens":240}`, "in=900 cached=640 written=240 out=40"},
		// Counts that are beside, told by the total, and reasoning that is more than the output
		{usageRelayed, `{"input_tokens":900,"output_tokens":28,"total_tokens":940,"cache_read_input_tokens":640,"reasoning_tokens":12}`, "in=900 cached=640 out=40 reasoning=12"},
		{usageRelayed, `{"input_tokens":900,"output_tokens":1,"reasoning_tokens":12}`, "in=900 out=13 reasoning=12"},
		// Nothing, and what is no count
		{usageRelayed, `{}`, ""},
		{usageInclusive, `null`, ""},
		{usageInclusive, `[1,2]`, ""},
		{usageInclusive, `{"prompt_tokens":-1,"completion_tokens":"x","total_tokens":1.5}`, ""},
		{usageInclusive, `{"prompt_tokens":10,"prompt_tokens_details":null}`, "in=10"},
		{usageInclusive, `{"prompt_tokens":10,"cached_tokens":12}`, "in=10 cached=10"},
	} {
		s := &Source{}
		u, err := newUsageReader(c.convention, Options{}, s).read(usageOf(t, c.usage), "m", &s.notes)
		if got := usageWords(u); got != c.want || err != nil {
			t.Errorf("%s\n  %s %v\n  want %s", c.usage, got, err, c.want)
		}
	}
}

// What a relayed count holds is decided once for each model, and told.
func TestUsageIsDecidedByModel(t *testing.T) {
	const beside, within, open = `{"input_tokens":20,"cache_read_input_tokens":640}`, `{"input_tokens":900,"output_tokens":5,"total_tokens":905,"cache_read_input_tokens":640}`,
		`{"input_tokens":900,"cache_read_input_tokens":640}`
	s := &Source{}
	r := newUsageReader(usageRelayed, Options{}, s)
	read := func(model, usage, want string) {
		t.Helper()
		u, err := r.read(usageOf(t, usage), model, &s.notes)
		got := usageWords(u)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s %s: %s, want %s", model, usage, got, want)
		}
	}
	read("a", beside, "in=660 cached=640")
	read("a", open, "in=1540 cached=640")
	read("b", within, "in=900 cached=640 out=5")
	read("b", open, "in=900 cached=640")
	read("c", `{"input_tokens":900,"output_tokens":3}`, "in=900 out=3") // it shows nothing
	read("c", open, "in=900 cached=640")
	if want := []string{noteCacheBeside + ": 2", noteCacheTaken + ": 1"}; !slices.Equal(s.notes.lines(), want) {
		t.Errorf("%q, want %q", s.notes.lines(), want)
	}
	read("c", within, "in=900 cached=640 out=5")
	read("d", open, "in=900 cached=640")
	read("d", beside, whyCacheDoubt)

	// What the head shows counts for all rows, and nothing is told of it.
	s = &Source{}
	r = newUsageReader(usageRelayed, Options{}, s)
	if _, err := r.read(usageOf(t, beside), "d", new(notes)); err != nil {
		t.Fatal(err)
	}
	read("d", open, "in=1540 cached=640")

	for option, want := range map[string]string{"yes": "in=900 cached=640", "no": "in=1540 cached=640"} {
		s = &Source{}
		r = newUsageReader(usageRelayed, Options{CachedInInput: option}, s)
		read("d", open, want)
		if len(s.notes.lines()) > 0 {
			t.Errorf("%q", s.notes.lines())
		}
	}
	s = &Source{}
	r = newUsageReader(usageExclusive, Options{}, s)
	read("e", `{"input_tokens":2147483647,"cache_read_input_tokens":1}`, whyUsageOverflow)
}

// Spans of a model whose instrumentation passes on Anthropic's counts.
func TestOTelExclusiveUsage(t *testing.T) {
	const when = "490923h4m5.5s e2e=1.5s model="
	of := func(model string, input, cached int) string {
		return span(fmt.Sprintf(`"gen_ai.request.model":"%s","gen_ai.usage.input_tokens":%d,"gen_ai.usage.output_tokens":3,"gen_ai.usage.cache_read.input_tokens":%d`, model, input, cached))
	}
	in := of("a", 900, 640) + "\n" + of("a", 20, 640) + "\n" + of("o", 900, 640) + "\n"
	info := wantEntries(t, in, Options{}, when+"a in=1540 cached=640 out=3", when+"a in=660 cached=640 out=3", when+"o in=900 cached=640 out=3")
	wantNote(t, info, noteCacheBeside+": 2")
	wantNote(t, info, noteCacheTaken+": 1")
	wantEntries(t, in, Options{CachedInInput: "no"}, when+"a in=1540 cached=640 out=3", when+"a in=660 cached=640 out=3", when+"o in=1540 cached=640 out=3")
	wantBad(t, of("a", 900, 640), Options{CachedInInput: "maybe"}, "--cached-in-input: want yes or no")
}

func FuzzUsage(f *testing.F) {
	for _, s := range []string{`{"prompt_tokens":900,"prompt_tokens_details":{"cached_tokens":640},"total_tokens":940}`,
		`{"input_tokens":3,"cache_read_input_tokens":27000,"output_tokens":210,"reasoning_tokens":500}`, `{"llm":{"token_count":{"prompt":"9"}}}`} {
		f.Add([]byte(s), uint8(usageRelayed))
	}
	f.Fuzz(func(t *testing.T, in []byte, convention uint8) {
		var v any
		if json.Unmarshal(in, &v) != nil {
			return
		}
		v, _, _ = decodeJSON(in)
		s := &Source{}
		u, err := newUsageReader(usageConvention(convention%3), Options{}, s).read(v, "m", &s.notes)
		if err != nil {
			return
		}
		if u.input != nil && u.cached != nil && *u.cached > *u.input || u.output != nil && u.reasoning != nil && *u.reasoning > *u.output && *u.reasoning > 0 {
			t.Fatalf("%s: %s", in, usageWords(u))
		}
		for _, n := range []*int32{u.input, u.cached, u.written, u.output, u.reasoning} {
			if n != nil && *n < 0 {
				t.Fatalf("%s: %s", in, usageWords(u))
			}
		}
	})
}

// Logs in OpenAI's form and LiteLLM's have the usage of any provider.
func TestUsageOfLogs(t *testing.T) {
	const (
		openAI  = `{"timestamp":"2026-01-02T03:04:05Z","model":"m","prompt":"p",`
		said    = `490923h4m5s model=m user:"p" completion `
		litellm = `{"call_type":"anthropic_messages","startTime":1767323045.5,"endTime":1767323047.0,"model":"m","completion_tokens":3,`
		called  = "490923h4m5.5s model=m out=3 chat e2e=1.5s "
	)
	for in, want := range map[string]string{
		openAI + `"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":6}}}`:                                  said + "in=9 out=3 cached=6",
		openAI + `"usage":{"input_tokens":9,"output_tokens":3,"input_tokens_details":{"cached_tokens":6}}}`:                                        said + "in=9 out=3 cached=6",
		openAI + `"usage":{"input_tokens":9,"output_tokens":3,"cache_read_input_tokens":6,"cache_creation_input_tokens":2}}`:                       said + "in=17 out=3 cached=6",
		openAI + `"response":{"usage":{"input_tokens":9,"output_tokens":3,"cache_read_input_tokens":0}}}`:                                          said + "in=9 out=3 cached=0",
		openAI + `"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":18,"cache_read_input_tokens":6}}`:                                said + "in=15 out=3 cached=6",
		litellm + `"prompt_tokens":9,"metadata":{"usage_object":{"prompt_tokens_details":{"cached_tokens":6}}}}`:                                   called + "in=9 cached=6",
		litellm + `"prompt_tokens":9,"total_tokens":20,"metadata":{"usage_object":{"cache_read_input_tokens":6,"cache_creation_input_tokens":2}}}`: called + "in=17 cached=6",
		litellm + `"prompt_tokens":4,"metadata":{"usage_object":{"cache_read_input_tokens":6}}}`:                                                   called + "in=10 cached=6",
	} {
		wantEntries(t, in, Options{}, want)
	}
	for option, want := range map[string]string{"yes": "in=9 cached=6", "no": "in=15 cached=6"} {
		wantEntries(t, litellm+`"prompt_tokens":9,"metadata":{"usage_object":{"cache_read_input_tokens":6}}}`, Options{CachedInInput: option}, called+want)
	}
	// What --map names is taken as it stands.
	wantEntries(t, openAI+`"n":7,"usage":{"input_tokens":9,"cache_read_input_tokens":6}}`, Options{Format: "openai-log", Map: Mapping{"input_tokens": {"n"}}}, said+"in=7 cached=6")
	wantBad(t, openAI+`"usage":{"prompt_tokens":"zqx"}}`, Options{}, "log:1:87: input_tokens: want a whole number")
}
