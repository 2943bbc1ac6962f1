package datasets

import (
	"bufio"
	"strings"

	tokenusage "reprise/trace/usage"
)

// openAILogFields is where a log of OpenAI-style requests has its fields, in
// the words of --map. Gateways differ in the names; what OpenAI's API names is
// as there, and a response may be nested or not. A --map with this format
// overrides a target.
var openAILogFields = []string{
	"time=timestamp|time|created_at|created|ts",
	"user=user",
	"session=session_id|conversation_id|session",
	"model=model",
	"salt=cache_salt",
	"prefix_key=system_prompt_id|prompt_cache_key",
	"messages=messages",
	"tools=tools|functions",
	"prompt=prompt",
	"max_tokens=max_completion_tokens|max_tokens",
	"temperature=temperature",
	"stream=stream",
	"output=response.choices.0.message|response.choices.0.text|choices.0.message|choices.0.text|output|response|completion",
	"finish_reason=response.choices.0.finish_reason|choices.0.finish_reason|finish_reason",
	"input_tokens=usage.prompt_tokens|usage.input_tokens|response.usage.prompt_tokens|response.usage.input_tokens|" +
		"prompt_tokens_count|input_tokens_count|prompt_tokens|input_tokens",
	"output_tokens=usage.completion_tokens|usage.output_tokens|response.usage.completion_tokens|response.usage.output_tokens|" +
		"output_tokens_count|completion_tokens|output_tokens|target_output_tokens",
	"cached_tokens=usage.prompt_tokens_details.cached_tokens|usage.input_tokens_details.cached_tokens|usage.cache_read_input_tokens|" +
		"response.usage.prompt_tokens_details.cached_tokens|response.usage.input_tokens_details.cached_tokens|response.usage.cache_read_input_tokens",
	"reasoning_tokens=usage.completion_tokens_details.reasoning_tokens|usage.output_tokens_details.reasoning_tokens|" +
		"response.usage.completion_tokens_details.reasoning_tokens|response.usage.output_tokens_details.reasoning_tokens",
	"status=status|status_code",
	"error=error|response.error",
	"ttft_ms=ttft_ms",
	"e2e_ms=latency_ms|e2e_ms",
}

// openAILogMapping is the same as a mapping.
func openAILogMapping() Mapping {
	m := Mapping{}
	for _, spec := range openAILogFields {
		target, paths, _ := strings.Cut(spec, "=")
		m[target] = strings.Split(paths, "|")
	}
	return m
}

// openAILogUsage is where the usage objects of a log are.
var openAILogUsage = []string{"usage", "response.usage"}

// openAILogFormat reads JSON lines that carry the messages or the prompt of a
// request to an OpenAI-compatible endpoint, as gateways log them.
func openAILogFormat() Format {
	return Format{
		Name:    "openai-log",
		About:   "JSON lines of requests and responses of OpenAI's API, as gateways log them",
		Example: `{"timestamp":"2026-01-02T03:04:05Z","user":"u1","messages":[{"role":"user","content":"Hello"}],"usage":{"prompt_tokens":8,"completion_tokens":9}}`,
		timed:   true, mapped: true, dated: true, base: openAILogMapping,
		reads: append(usageReads(nil, openAILogUsage), fieldAt("response.content|response.text|response.type|response.tool_calls|response.function_call",
			"output_tokens output_blocks", tokenised)),
		detect: detectObject(func(has func(string) bool) bool { return has("messages") || has("prompt") }),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first := jsonInput(in, head, s)
			return openOpenAILog(all, first, o, s)
		},
	}
}

// openOpenAILog reads the usage of any provider. What a --map names stays as it is.
func openOpenAILog(all, first rows, o Options, s *Source) (decoder, error) {
	counts := newUsageReader(tokenusage.Body, openAILogUsage, nil, o, s)
	show := func(r row, tell *notes) (row, error) {
		model, _ := r.value("model")
		v := newView(r)
		return v, counts.show(v, plain(model), tell)
	}
	read := o.Map.over(openAILogMapping().withUsage()).dotted()
	return openView(all, first, show, read, o, s)
}
