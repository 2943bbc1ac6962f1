// Package usagetest has the usage objects that every reader of usage is tested with.
package usagetest

// A Dialect is the usage object of one call, in the words of one API, and what it says. A count
// that it does not tell is 0.
type Dialect struct {
	Name  string
	Usage string // JSON

	Input, Cached, Output, Reasoning int
}

// Dialects lists them: the same 900 tokens of prompt and 40 of output in the words of each API.
func Dialects() []Dialect {
	return []Dialect{
		{"openai chat", `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_tokens_details":{"cached_tokens":640},"completion_tokens_details":{"reasoning_tokens":12}}`, 900, 640, 40, 12},
		{"openai responses", `{"input_tokens":900,"input_tokens_details":{"cached_tokens":640},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":940}`, 900, 640, 40, 12},
		{"anthropic", `{"input_tokens":20,"cache_read_input_tokens":640,"cache_creation_input_tokens":240,"output_tokens":40}`, 900, 640, 40, 0},
		{"bedrock", `{"inputTokens":20,"outputTokens":40,"totalTokens":940,"cacheReadInputTokens":640,"cacheWriteInputTokens":240}`, 900, 640, 40, 0},
		{"deepseek", `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"prompt_cache_hit_tokens":640,"prompt_cache_miss_tokens":260}`, 900, 640, 40, 0},
		{"moonshot", `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"cached_tokens":640}`, 900, 640,
			40, 0},
		{"xai", `{"prompt_tokens":900,"completion_tokens":28,"total_tokens":940,"prompt_tokens_details":{"cached_tokens":640},"completion_tokens_details":{"reasoning_tokens":12}}`, 900, 640, 40, 12},
		{"xai, reasoning alone",
			`{"prompt_tokens":900,"completion_tokens":0,"total_tokens":940,"completion_tokens_details":{"reasoning_tokens":40}}`, 900, 0, 40, 40},
		{"watsonx", `{"input_token_count":900,"generated_token_count":40}`, 900, 0, 40, 0},
		{"gemini", `{"promptTokenCount":700,"toolUsePromptTokenCount":200,"cachedContentTokenCount":640,"candidatesTokenCount":28,"thoughtsTokenCount":12,"totalTokenCount":940}`, 900, 640, 40, 12},
	}
}

// Broken are usage objects that cannot be: whoever reads one says what it found.
func Broken() []Dialect {
	return []Dialect{
		{Name: "a total that no sum gives", Usage: `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":1500}`},
		{Name: "more cached than input",
			Usage: `{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140,"prompt_tokens_details":{"cached_tokens":640}}`},
		{Name: "more reasoning than output",
			Usage: `{"prompt_tokens":900,"completion_tokens":40,"total_tokens":940,"completion_tokens_details":{"reasoning_tokens":70}}`},
	}
}
