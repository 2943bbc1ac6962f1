package engine

import (
	"errors"
	"strings"
	"time"
)

// What becomes of the connection, and of the request before its answer.
var connectionQuirks = []Quirk{
	{"refuse", "DURATION", "the port is closed for that long: connections are refused, and this one is reset",
		"restarts, crashes",
		span(func(m *behaviour, d time.Duration) { m.refuse = d })},
	{"hang", "", "no byte is ever answered", "dead workers behind a live proxy",
		on(func(m *behaviour) { m.hang = true })},
	{"slow-headers", "DURATION",
		"the response headers come byte by byte over that time, the connection closes after the answer",
		"tarpits, congested proxies",
		span(func(m *behaviour, d time.Duration) { m.drip, m.early = d, true })},
	{"early-headers", "", "headers go out as soon as the request is admitted, long before the first token",
		"llama-server",
		on(func(m *behaviour) { m.early = true })},
	{"late-headers", "", "headers go out with the first token; this is how it is unless another quirk says otherwise",
		"llm-d simulator",
		on(func(m *behaviour) { m.early = false })},
	{"close-keep-alive", "", "TCP is closed after each streamed answer, whose headers promise keep-alive",
		"llama-server",
		on(func(m *behaviour) { m.shut = true })},
}

// What is made of the request.
var requestQuirks = []Quirk{
	{"error", "CODE", "an error answers in place of a stream, with this HTTP status; 403 without a body", "all",
		number(-1, 400, 599, func(m *behaviour, n int) { m.status = n })},
	{"error-code", "KIND", "an error's code is a number, string or null; empty leaves out the whole body",
		"vLLM, gateways, ollama",
		word(func(m *behaviour, v string) { m.code = v }, "number", "string", "null", "empty")},
	{"redirect", "", "an answer of 307 leads to the same path of another port", "gateways, http in place of https",
		on(func(m *behaviour) { m.redirected = true })},
	{"not-sse", "", "a request for a stream is answered by one body of JSON, when its last token is due",
		"gateways that switch streams off",
		on(func(m *behaviour) { m.notStreamed = true })},
	{"compressed", "", "the answer is compressed with gzip, though the request did not ask for it", "gateways",
		on(func(m *behaviour) { m.compressed = true })},
	{"retry-after", "SECONDS", "answers of 429 and 503, also from a full queue, have Retry-After",
		"OpenAI, gateways",
		number(-1, 0, 86400, func(m *behaviour, n int) { m.retryAfter = n + 1 })},
	{"model-404", "", "a model of another name is not found; without this it is accepted",
		"vLLM, ollama, llm-d simulator",
		on(func(m *behaviour) { m.modelMust = true })},
	{"local-host-only", "", "403 without a body when the Host header is not localhost or an address of loopback",
		"ollama",
		on(func(m *behaviour) { m.localOnly = true })},
	{"bad-json-500", "", "a body that cannot be read is a server error, 500", "llama-server",
		on(func(m *behaviour) { m.jsonFails = true })},
	{"prompt-cut", "[TOKENS]",
		"only the last tokens of the prompt are taken, silently: so many, or as many as fit the model", "ollama",
		number(0, 0, 1<<30, func(m *behaviour, n int) { m.cutPrompt, m.keepPrompt = true, n })},
	{"more-output", "[TOKENS]", "the answer is longer than asked for, by 1 token or so many", "llama-server",
		number(1, 1, 1<<20, func(m *behaviour, n int) { m.more = n })},
	{"no-ignore-eos", "", "ignore_eos and min_tokens mean nothing: answers end where they like", "ollama, OpenAI",
		on(func(m *behaviour) { m.stops = true })},
}

// What stands in the chunks.
var chunkQuirks = []Quirk{
	{"role-first", "", "the first delta holds the role alone; this is how it is unless another quirk says otherwise",
		"vLLM, llama-server, llm-d simulator",
		on(func(m *behaviour) { m.roleEvery = false })},
	{"role-every-delta", "", "every delta holds the role, and none holds it alone", "ollama",
		on(func(m *behaviour) { m.roleEvery = true })},
	{"null-content", "", "the role comes with content null", "llama-server",
		on(func(m *behaviour) { m.nullContent = true })},
	{"empty-deltas", "", "deltas without content, early and between the tokens", "vLLM, chunked prefill",
		on(func(m *behaviour) { m.empties, m.early = true, true })},
	{"progress-events", "", "data events with empty text tell of the prefill, early", "llama-server, return_progress",
		on(func(m *behaviour) { m.progress, m.early = true, true })},
	{"timings", "", "the last chunk holds timings of the server's own", "llama-server",
		on(func(m *behaviour) { m.timings = true })},
	{"multi-token-events", "[TOKENS]", "an event holds 4 tokens or so many",
		"vLLM and SGLang: speculation, stream_interval",
		number(4, 2, 1<<16, func(m *behaviour, n int) { m.perEvent = n })},
	{"tokens-without-event", "[TOKENS]",
		"the last token or so many are swallowed: an empty event stands for them, and usage counts them",
		"llama-server, stop strings",
		number(1, 1, 1<<16, func(m *behaviour, n int) { m.swallowed = n })},
	{"reasoning-only", "[TOKENS]", "all tokens, or the first so many, are reasoning (chat)", "llama-server, vLLM",
		number(0, 0, 1<<20, func(m *behaviour, n int) {
			if m.reasoning = n; n == 0 {
				m.reasoning = 1 << 30
			}
		})},
	{"reasoning-field-name", "[NAME]", "reasoning deltas are called reasoning, not reasoning_content",
		"vLLM, OpenRouter",
		word(func(m *behaviour, v string) { m.reasoningField = v }, "reasoning", "reasoning_content")},
	{"tool-calls", "", "the answer is a tool call in pieces, whose name is null after the first; the finish reason " +
		"rides on the last (chat)", "llm-d simulator, vLLM",
		on(func(m *behaviour) { m.tools = true })},
	{"choices", "[N]", "2 or so many choices interleave, each with its own finish and usage", "llama-server, n=2",
		number(2, 2, 64, func(m *behaviour, n int) { m.choices = n })},
	{"same-id", "", "all answers have one id", "ollama, whose ids are below 1,000",
		on(func(m *behaviour) { m.id = "chatcmpl-379" })},
	{"per-choice-ids", "", "the number of the choice stands behind the id", "llm-d simulator",
		on(func(m *behaviour) { m.choiceIDs = true })},
	{"chat-ids", "", "text completions have the ids of chats", "llama-server",
		on(func(m *behaviour) { m.chatIDs = true })},
}

// Where the tokens are counted.
var usageQuirks = []Quirk{
	{"usage-null", "", "usage is null in all chunks but the last", "llm-d simulator, OpenAI",
		usageIs(usageNull)},
	{"usage-zeros", "[completions]", "usage is all zeros in every chunk but the last", "ollama, completions",
		usageIs(usageZeros, "completions")},
	{"usage-every-chunk", "", "running usage in every chunk, asked for or not", "vLLM, SGLang: continuous_usage_stats",
		usageIs(usageEvery)},
	{"usage-on-finish", "[completions]", "usage stands in the finish chunk, asked for or not, and not behind it",
		"llama-server, completions",
		usageIs(usageOnFinish, "completions")},
	{"usage-missing", "", "no usage at all", "old servers, gateways",
		usageIs(usageMissing)},
	{"no-cached-tokens", "", "usage says nothing of cached tokens", "ollama, vLLM unless told to",
		on(func(m *behaviour) { m.noCached = true })},
}

// How events become bytes, and bytes writes.
var framingQuirks = []Quirk{
	{"crlf", "", "lines end in \\r\\n", "gateways",
		on(func(m *behaviour) { m.frame.EOL = "\r\n" })},
	{"cr", "", "lines end in \\r", "the standard allows it",
		on(func(m *behaviour) { m.frame.EOL = "\r" })},
	{"no-space", "", "no space behind data:", "gateways",
		on(func(m *behaviour) { m.frame.NoSpace = true })},
	{"multi-line-data", "", "a chunk stands on two data lines", "the standard allows it",
		on(func(m *behaviour) { m.lines = true })},
	{"comments", "", "keep-alives of four kinds, early and before every token: a bare colon, ': ping', 'data: : " +
		"keepalive', empty data", "llama-server, OpenRouter, gateways",
		on(func(m *behaviour) { m.comments, m.early = true, true })},
	{"pings", "", "events of type ping, early and before every token", "Anthropic, sse-starlette",
		on(func(m *behaviour) { m.pings, m.early = true, true })},
	{"several-events-per-write", "[EVENTS]", "2 token events or so many leave in one write, when the last is due",
		"llama-server, buffering proxies",
		number(2, 2, 1<<16, func(m *behaviour, n int) { m.perWrite = n })},
	{"split-writes", "[BYTES]", "every event leaves byte by byte, or in pieces of so many bytes",
		"small packets, proxies",
		number(1, 1, 1<<16, func(m *behaviour, n int) { m.perByte = n })},
}

// How it ends. What strikes in mid-stream does so after half of the tokens.
var endQuirks = []Quirk{
	{"stall", "DURATION", "the stream pauses in the middle; tokens due meanwhile come at once", "overload, proxies",
		span(func(m *behaviour, d time.Duration) { m.stall = d })},
	{"error-mid-stream", "[THEN]", "an error event in the middle, then done: [DONE], or close: the end",
		"vLLM; llama-server closes",
		word(func(m *behaviour, v string) { m.errorThen = v }, "done", "close")},
	{"reset", "", "the connection is reset in the middle (RST)", "crashes, balancers",
		on(func(m *behaviour) { m.reset = true })},
	{"cut", "", "the connection is closed in the middle, its chunked body unfinished (FIN)", "crashes, proxies",
		on(func(m *behaviour) { m.cut = true })},
	{"finish-reason", "NAME", "a finish reason of the server's own", "llm-d simulator: cache_threshold, remote_decode",
		func(m *behaviour, v string) error {
			if v == "" || len(v) > 64 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyz_") != "" {
				return errors.New("its value may only have a to z and _")
			}
			m.finish = v
			return nil
		}},
	{"no-finish-reason", "", "no choice says that it is finished", "LiteLLM, gateways",
		on(func(m *behaviour) { m.noFinish = true })},
	{"no-done", "", "[DONE] is missing", "vLLM until 2023, gateways",
		on(func(m *behaviour) { m.doneMarks = 0 })},
	{"done-twice", "", "[DONE] comes twice", "gateways",
		on(func(m *behaviour) { m.doneMarks = 2 })},
}

func usageIs(u usageMode, values ...string) func(*behaviour, string) error {
	return func(m *behaviour, value string) error {
		if value != "" && (len(values) == 0 || value != values[0]) {
			return errors.New("unknown value")
		}
		m.usage, m.usageOf = u, value
		return nil
	}
}

// imitations are the quirks seen together.
var imitations = []struct{ name, quirks string }{
	{"vllm", "role-first,model-404"},
	{"llm-d", "role-first,late-headers,usage-null,model-404,per-choice-ids"},
	{"llama-server", "early-headers,null-content,usage-on-finish=completions,timings,chat-ids,close-keep-alive,bad-json-500"},
	{"ollama", "role-every-delta,usage-zeros=completions,no-cached-tokens,same-id,prompt-cut,model-404,local-host-only,no-ignore-eos"},
}

// Imitations names the servers whose quirks [ServerConfig].Imitate knows.
func Imitations() []string {
	var names []string
	for _, i := range imitations {
		names = append(names, i.name)
	}
	return names
}

// Imitation is the list of quirks of a server that is imitated, "" for one that
// is not.
func Imitation(name string) string {
	for _, i := range imitations {
		if i.name == name {
			return i.quirks
		}
	}
	return ""
}
