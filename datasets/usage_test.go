package datasets

import (
	"fmt"
	"testing"

	tokenusage "reprise/trace/usage"
)

// Spans of a model whose instrumentation passes on Anthropic's counts.
func TestOTelExclusiveUsage(t *testing.T) {
	const when = "490923h4m5.5s e2e=1.5s model="
	of := func(model string, input, cached int) string {
		return span(fmt.Sprintf(`"gen_ai.request.model":"%s","gen_ai.usage.input_tokens":%d,"gen_ai.usage.output_tokens":3,"gen_ai.usage.cache_read.input_tokens":%d`, model, input, cached))
	}
	in := of("a", 900, 640) + "\n" + of("a", 20, 640) + "\n" + of("o", 900, 640) + "\n"
	info := wantEntries(t, in, Options{}, when+"a in=900 cached=640 out=3", when+"a in=660 cached=640 out=3", when+"o in=900 cached=640 out=3")
	wantNote(t, info, tokenusage.CacheAdded.String()+": 1")
	wantNote(t, info, tokenusage.CacheTaken.String()+": 2")
	wantEntries(t, in, Options{CachedInInput: "no"}, when+"a in=1540 cached=640 out=3", when+"a in=660 cached=640 out=3", when+"o in=1540 cached=640 out=3")
	wantBad(t, of("a", 900, 640), Options{CachedInInput: "maybe"}, "--cached-in-input: want yes or no")
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
