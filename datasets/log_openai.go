package datasets

import (
	"bufio"
	"strings"
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
	"output=response.choices.0.message|response.choices.0.text|choices.0.message|choices.0.text|output|response",
	"finish_reason=response.choices.0.finish_reason|choices.0.finish_reason|finish_reason",
	"input_tokens=usage.prompt_tokens|usage.input_tokens|response.usage.prompt_tokens|response.usage.input_tokens",
	"output_tokens=usage.completion_tokens|usage.output_tokens|response.usage.completion_tokens|response.usage.output_tokens",
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

// openAILogUsage tells what the counts of a log hold, beside these.
var openAILogUsage = Mapping{
	"written_tokens": {"usage.cache_creation_input_tokens", "response.usage.cache_creation_input_tokens"},
	"total_tokens":   {"usage.total_tokens", "response.usage.total_tokens"},
}

// openAILogFormat reads JSON lines that carry the messages or the prompt of a
// request to an OpenAI-compatible endpoint, as gateways log them.
func openAILogFormat() Format {
	return Format{
		Name:    "openai-log",
		About:   "JSON lines of requests and responses of OpenAI's API, as gateways log them",
		Example: `{"timestamp":"2026-01-02T03:04:05Z","user":"u1","messages":[{"role":"user","content":"Hello"}],"usage":{"prompt_tokens":8,"completion_tokens":9}}`,
		timed:   true, mapped: true, dated: true, base: openAILogMapping,
		reads: append(usageReads(openAILogUsage), fieldAt("response.content|response.text|response.type|response.tool_calls|response.function_call",
			"output_tokens output_blocks", tokenised)),
		detect: detectObject(func(has func(string) bool) bool { return has("messages") || has("prompt") }),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first := jsonInput(in, head, s)
			return openOpenAILog(all, first, o, s)
		},
	}
}

// openOpenAILog reads the usage of any provider: Anthropic's names say that its cached
// tokens stand beside the input, of others the records of the model tell. What a --map
// names stays as it is.
func openOpenAILog(all, first rows, o Options, s *Source) (decoder, error) {
	usage := openAILogMapping().over(openAILogUsage)
	relayed, anthropic := newUsageReader(usageRelayed, o, s), newUsageReader(usageRelayed, o, s)
	if anthropic.convention == usageRelayed {
		anthropic.convention = usageExclusive
	}
	show := func(r row, tell *notes) (row, error) {
		found, _ := r.value("usage")
		if found == nil {
			found, _ = r.value("response.usage")
		}
		said, _ := found.(map[string]any)
		aside := said["cache_read_input_tokens"] != nil || said["cache_creation_input_tokens"] != nil
		if !aside && said["input_tokens"] == nil && said["prompt_tokens_details"] == nil {
			return r, nil // its counts are read where they stand
		}
		v, counts := newView(r), relayed
		if aside && said["input_tokens"] != nil {
			counts = anthropic
		}
		return v, counts.showFields(v, usage, tell)
	}
	read := o.Map.over(openAILogMapping().withUsage()).dotted()
	return openView(all, first, show, read, o, s)
}
