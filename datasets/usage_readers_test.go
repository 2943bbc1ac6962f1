package datasets

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/usage/usagetest"
)

// usageColumns are the counts of a dialect that has no names of its own, for formats that
// spell each count in their own way.
type usageColumns struct{ prompt, cached, answer, reasoning, total int }

var (
	plainColumns  = usageColumns{900, 640, 40, 12, 940}
	besideColumns = usageColumns{900, 640, 28, 12, 940} // of xAI: the reasoning stands beside the answer
)

// A usageCarrier makes a source of one call in a format.
type usageCarrier struct {
	object  func(usage string) string // of a usage object as the provider had it; nil where the format has none
	columns func(u usageColumns) string
	beside  bool   // columns tell a total and the reasoning, so that reasoning beside the output shows
	none    string // why the format carries no usage
}

// inCSV writes a record of CSV.
func inCSV(fields ...string) string {
	for i, f := range fields {
		fields[i] = `"` + strings.ReplaceAll(f, `"`, `""`) + `"`
	}
	return strings.Join(fields, ",")
}

const ownLengths = "its lengths are columns of its own, without a total or reasoning"

var usageCarriers = map[string]usageCarrier{
	// The bodies of answers, as they were.
	"openai-log": {object: func(u string) string {
		return `{"timestamp":"2026-01-02T03:04:05Z","model":"m","messages":[{"role":"user","content":"x"}],"response":{"usage":` + u + `}}`
	}},
	"gateway-csv": {object: func(u string) string {
		return "timestamp,request_json,response_json\n" + inCSV("2026-01-02T03:04:05Z", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, `{"usage":`+u+`}`)
	}},
	"openai-batch": {object: func(u string) string {
		return `{"custom_id":"r","response":{"status_code":200,"body":{"model":"m","usage":` + u + `}}}`
	}},
	"sagemaker": {object: func(u string) string {
		return `{"captureData":{"endpointInput":{"data":"{\"model\":\"m\",\"prompt\":\"x\"}","encoding":"JSON"},"endpointOutput":{"encoding":"JSON","data":` + quotedJSON(`{"usage":`+u+`}`) +
			`}},"eventMetadata":{"inferenceTime":"2026-01-02T03:04:05Z"}}`
	}},
	"api-log": {object: func(u string) string {
		return `{"timestamp":"2026-01-02T03:04:05Z","request":{"model":"m","messages":[{"role":"user","content":"x"}]},"response":{"choices":[],"usage":` + u + `}}`
	}},
	"har": {object: func(u string) string {
		return `{"log":{"entries":[{"startedDateTime":"2026-01-02T03:04:05Z","request":{"postData":{"text":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"}},"response":{"content":{"text":` +
			quotedJSON(`{"choices":[],"usage":`+u+`}`) + `}}}]}}`
	}},
	"vertex": {object: func(u string) string {
		return `{"endpoint":"projects/p/models/m","logging_time":"2026-01-02T03:04:07Z","request_id":"7","request_payload":["{}"],"response_payload":[` + quotedJSON(`{"usageMetadata":`+u+`}`) + `]}`
	}},
	"bedrock": {
		object: nil,
		columns: func(u usageColumns) string {
			return fmt.Sprintf(`{"schemaType":"ModelInvocationLog","timestamp":"2026-01-02T03:04:05Z","requestId":"b","modelId":"m",`+
				`"input":{"inputTokenCount":%d,"cacheReadInputTokenCount":%d},"output":{"outputTokenCount":%d}}`, u.prompt-u.cached, u.cached, u.answer)
		},
	},
	"kong": {object: func(u string) string {
		return `{"started_at":1767323045100,"response":{"status":200},"latencies":{},"ai":{"proxy":{"meta":{"request_model":"m"},"usage":` + u + `}}}`
	}},

	// Tools between client and provider, which pass them on.
	"litellm-log": {object: func(u string) string {
		return `{"call_type":"acompletion","startTime":1767323045.5,"endTime":1767323047.0,"model":"m","metadata":{"usage_object":` + u + `}}`
	}},
	"litellm-spend": {object: func(u string) string {
		return "request_id,call_type,startTime,endTime,prompt_tokens,completion_tokens,model,metadata\n" +
			inCSV("r", "acompletion", "2026-01-02 03:04:05.678", "2026-01-02 03:04:07.1", "", "", "m", `{"usage_object":`+u+`}`)
	}},
	"otel-genai": {object: func(u string) string {
		return `{"name":"chat m","start_time":"2026-01-02T03:04:05Z","end_time":"2026-01-02T03:04:07Z","attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"m","gen_ai":{"usage":` + u + `}}}`
	}},
	"langsmith": {object: func(u string) string {
		return `{"id":"r","trace_id":"t","run_type":"llm","start_time":"2026-01-02T03:04:05.1","end_time":"2026-01-02T03:04:07","outputs":{"usage_metadata":` + u + `}}`
	}},
	"mlflow": {object: func(u string) string {
		return `{"info":{"trace_id":"t"},"data":{"spans":[{"span_id":"a","name":"chat","start_time_unix_nano":1767323045000000000,"end_time_unix_nano":1767323047000000000,"attributes":{` +
			`"mlflow.spanType":"\"CHAT_MODEL\"","mlflow.chat.tokenUsage":` + quotedJSON(u) + `}}]}}`
	}},
	"helicone": {object: func(u string) string {
		return `{"request_id":"h","request_created_at":"2026-01-02T03:04:05.100Z","delay_ms":1900,"response_body":{"usage":` + u + `}}`
	}},
	"portkey": {object: func(u string) string {
		return `{"id":"p","created_at":"2026-01-02T03:04:07Z","ai_model":"m","req_units":null,"response":{"usage":` + u + `}}`
	}},
	"langfuse": {beside: true, columns: func(u usageColumns) string {
		within := u.answer + u.prompt - u.total + u.reasoning // of the answer, of which Langfuse takes the reasoning out
		return fmt.Sprintf(`{"id":"o","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:05","end_time":"2026-01-02 03:04:07",`+
			`"usage_details":{"input":%d,"input_cached_tokens":%d,"output":%d,"output_reasoning_tokens":%d,"total":%d}}`, u.prompt-u.cached, u.cached, u.answer-within, u.reasoning, u.total)
	}},

	// Formats that spell each count themselves.
	"cline-cli": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"updated_at":"","agent":"lead","sessionId":"s","messages":[{"role":"assistant","ts":1767323047000,"metrics":`+
			`{"inputTokens":%d,"outputTokens":%d,"cacheReadTokens":%d}}]}`, u.prompt, u.answer, u.cached)
	}},
	"opencode-messages": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"sessionID":"s","role":"assistant","time":{"created":1767323045100},"tokens":{"input":%d,"output":%d,"reasoning":%d,"cache":{"read":%d}}}`,
			u.prompt-u.cached, u.answer-u.reasoning, u.reasoning, u.cached)
	}},
	"agent-otel": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1767323047000000000","attributes":[`+
			`{"key":"event.name","value":{"stringValue":"gemini_cli.api_response"}},{"key":"input_token_count","value":{"intValue":"%d"}},`+
			`{"key":"cached_content_token_count","value":{"intValue":"%d"}},{"key":"output_token_count","value":{"intValue":"%d"}},`+
			`{"key":"thoughts_token_count","value":{"intValue":"%d"}},{"key":"total_token_count","value":{"intValue":"%d"}}]}]}]}]}`,
			u.prompt, u.cached, u.answer, u.reasoning, u.total)
	}},
	"braintrust": {beside: true, columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"id":"b","root_span_id":"s","created":"2026-01-02T03:04:05Z","span_attributes":{"type":"llm"},"metrics":{"start":1767323045.1,"end":1767323047.0,`+
			`"prompt_tokens":%d,"prompt_cached_tokens":%d,"completion_tokens":%d,"completion_reasoning_tokens":%d,"tokens":%d}}`, u.prompt, u.cached, u.answer, u.reasoning, u.total)
	}},
	"envoy-ai-gateway": {beside: true, columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"start_time":"2026-01-02T03:04:05.100Z","duration":"1900","response_code":"200","gen_ai.request.model":"m","gen_ai.usage.input_tokens":"%d",`+
			`"gen_ai.usage.cache_read.input_tokens":"%d","gen_ai.usage.output_tokens":"%d","gen_ai.usage.reasoning_tokens":"%d","gen_ai.usage.total_tokens":"%d"}`,
			u.prompt, u.cached, u.answer, u.reasoning, u.total)
	}},
	"openrouter": {columns: func(u usageColumns) string {
		return fmt.Sprintf("generation_id,created_at,tokens_prompt,tokens_completion,tokens_reasoning,tokens_cached,model_permaslug\n"+
			"g,2026-01-02 03:04:05.100,%d,%d,%d,%d,m", u.prompt, u.answer, u.reasoning, u.cached)
	}},
	"openrouter-api": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"data":{"id":"g","created_at":"2026-01-02T03:04:05.100Z","model":"m","native_tokens_prompt":%d,"native_tokens_cached":%d,`+
			`"native_tokens_completion":%d,"native_tokens_reasoning":%d}}`, u.prompt, u.cached, u.answer, u.reasoning)
	}},
	"sglang": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-02T03:04:07","event":"request.finished","rid":"r","obj":{},"out":{"meta_info":{"prompt_tokens":%d,"cached_tokens":%d,`+
			`"completion_tokens":%d,"reasoning_tokens":%d,"e2e_latency":1.9}}}`, u.prompt, u.cached, u.answer, u.reasoning)
	}},
	"cloudflare": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"id":"c","created_at":"2026-01-02T03:04:07Z","model":"m","tokens_in":%d,"tokens_out":%d,"duration":1900}`, u.prompt, u.answer)
	}},
	"azure-apim": {columns: func(u usageColumns) string {
		return fmt.Sprintf("TimeGenerated,CorrelationId,SequenceNumber,ModelName,PromptTokens,CompletionTokens,TotalTokens\n2026-01-02T03:04:05.1Z,x,0,m,%d,%d,%d", u.prompt, u.answer, u.total)
	}},

	// Session files of agents.
	"claude-code": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"u","parentUuid":"p","isSidechain":false,"sessionId":"s","requestId":"q","timestamp":"2026-06-15T10:00:02.000Z","message":{"id":"i","model":"m",`+
			`"content":[],"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}}}`, u.prompt-u.cached, u.cached, u.answer, u.reasoning)
	}},
	"codex": {beside: true, columns: func(u usageColumns) string {
		counts := fmt.Sprintf(`{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":%d,"total_tokens":%d}`, u.prompt, u.cached, u.answer, u.reasoning, u.total)
		return `{"timestamp":"2026-02-23T12:19:52.689Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":` + counts + `,"last_token_usage":` + counts + `}}}`
	}},
	"gemini-cli": {beside: true, columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"id":"m","timestamp":"2026-08-01T10:00:05Z","type":"gemini","model":"m","tokens":{"input":%d,"output":%d,"cached":%d,"thoughts":%d,"total":%d}}`,
			u.prompt, u.answer, u.cached, u.reasoning, u.total)
	}},
	"qwen-code": {beside: true, columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"uuid":"u","parentUuid":"p","sessionId":"q","timestamp":"2026-02-23T14:24:56.857Z","type":"assistant","model":"m","usageMetadata":{"promptTokenCount":%d,`+
			`"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d}}`, u.prompt, u.cached, u.answer, u.reasoning, u.total)
	}},
	"cline": {columns: func(u usageColumns) string {
		return `[{"ts":1767323045100,"type":"say","say":"api_req_started","text":` +
			quotedJSON(fmt.Sprintf(`{"tokensIn":%d,"tokensOut":%d,"cacheReads":%d}`, u.prompt-u.cached, u.answer, u.cached)) + `}]`
	}},
	"opencode": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"info":{"id":"s"},"messages":[{"info":{"id":"m","role":"assistant","modelID":"m","time":{"created":1767323045000,"completed":1767323047000},`+
			`"tokens":{"input":%d,"output":%d,"reasoning":%d,"cache":{"read":%d,"write":0}}}}]}`, u.prompt-u.cached, u.answer-u.reasoning, u.reasoning, u.cached)
	}},
	"openhands": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"instance_id":"i","instruction":"x","history":[{"id":5,"timestamp":"2026-01-02T16:32:57.821635","source":"agent","action":"run","tool_call_metadata":{"model_response":{"id":"g"}}}],`+
			`"metrics":{"token_usages":[{"model":"m","prompt_tokens":%d,"completion_tokens":%d,"cache_read_tokens":%d,"reasoning_tokens":%d,"response_id":"g"}],"response_latencies":[{"latency":3,"response_id":"g"}]}}`,
			u.prompt, u.answer, u.cached, u.reasoning)
	}},
	"aider": {columns: func(u usageColumns) string {
		return fmt.Sprintf(`{"event":"message_send","properties":{"main_model":"m","prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d},"user_id":"u","time":1767323045}`, u.prompt, u.answer, u.total)
	}},

	// Files without a usage of a provider.
	"jsonl": {none: "--map names its counts"}, "csv": {none: "--map names its counts"}, "parquet": {none: "--map names its counts"},
	"servegen": {none: ownLengths}, "swe-agent": {none: "it has totals of a session, and texts"}, "dynamo-requests": {none: ownLengths}, "aiperf": {none: ownLengths}, "dynamo": {none: ownLengths},
	"bailian": {none: ownLengths}, "mooncake": {none: ownLengths}, "evalscope": {none: ownLengths}, "azure-2025": {none: ownLengths}, "azure-2024": {none: ownLengths}, "azure-2023": {none: ownLengths},
	"burstgpt": {none: ownLengths}, "weka": {none: ownLengths}, "trtllm-trace": {none: ownLengths}, "rl-rollouts": {none: ownLengths}, "trie": {none: ownLengths},
	"vllm-log": {none: "it logs no usage"}, "aibrix": {none: ownLengths}, "lmcache": {none: "it has texts"}, "sharegpt": {none: "it has texts"}, "chats": {none: "it has texts"}, "wildchat": {none: "it has texts"}, "lmsys": {none: "it has texts"},
	"baseten": {none: ownLengths}, "tracelab": {none: ownLengths}, "tracelab-sessions": {none: ownLengths}, "blis": {none: ownLengths},
}

func quotedJSON(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// The usage of one call, in the words of each API, is the same four counts through every reader
// that can carry it.
func TestUsageThroughReaders(t *testing.T) {
	for _, f := range Formats() {
		c, ok := usageCarriers[f.Name]
		if !ok || (c.object == nil && c.columns == nil) != (c.none != "") {
			t.Errorf("%s: say in usageCarriers how it carries the usage of a call, or why it carries none", f.Name)
			continue
		}
		if c.object != nil {
			for _, d := range usagetest.Dialects() {
				wantCounts(t, f.Name, d.Name, c.object(d.Usage), true, d.Cached > 0, d.Reasoning)
			}
		}
		if c.columns != nil {
			wantCounts(t, f.Name, "its own counts", c.columns(plainColumns), false, true, 12)
		}
		if c.beside {
			wantCounts(t, f.Name, "its own counts, with the reasoning beside the output", c.columns(besideColumns), true, true, 12)
		}
	}
	known := map[string]bool{}
	for _, f := range Formats() {
		known[f.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(usageCarriers)) {
		if !known[name] {
			t.Errorf("%s is no format", name)
		}
	}
}

// wantCounts reads the one call of a source. exact says that what the usage tells must come out,
// and else it may be missing.
func wantCounts(t *testing.T, format, dialect, in string, exact, cached bool, reasoning int) {
	t.Helper()
	all, info, err := read(strings.NewReader(in), Options{Format: format})
	if err != nil || len(all) != 1 {
		t.Errorf("%s, %s: %d entries of one call, %v\n%s\n%v", format, dialect, len(all), err, in, info.Notes)
		return
	}
	e := all[0]
	for _, n := range []struct {
		name string
		got  *int32
		want int
		told bool
	}{{"input", e.InputTokens, 900, true}, {"output", e.OutputTokens, 40, true}, {"cached", e.Cached, 640, cached}, {"reasoning", e.Reasoning, reasoning, reasoning > 0}} {
		switch {
		case n.got != nil && int(*n.got) != n.want && (n.told || *n.got != 0), n.got == nil && n.told && (exact || n.name == "input" || n.name == "output"):
			t.Errorf("%s, %s: %s is %s, want %d", format, dialect, n.name, shownCount(n.got), n.want)
		}
	}
}

func shownCount(n *int32) string {
	if n == nil {
		return "not known"
	}
	return fmt.Sprint(*n)
}

// How the usage of one call is read depends on no other call: not on what others of its model
// show, and not on their order. A single request of one user would else change all others, which no
// noise of a release hides.
func TestNoUsageDecidesAnother(t *testing.T) {
	const (
		open   = `{"prompt_tokens":900,"completion_tokens":40,"cache_read_input_tokens":640,"reasoning_tokens":12}`
		beside = `{"prompt_tokens":20,"completion_tokens":40,"cache_read_input_tokens":640}`
		within = `{"prompt_tokens":700,"completion_tokens":40,"total_tokens":740,"cache_read_input_tokens":640}`
		apart  = `{"prompt_tokens":700,"completion_tokens":40,"total_tokens":752,"reasoning_tokens":12}`
	)
	id := regexp.MustCompile(`"(custom_id|id|request_id|requestId|trace_id|span_id)":"\w"|"r"`)
	for name, c := range usageCarriers {
		if c.object == nil || name == "har" { // one list is the whole of a HAR file
			continue
		}
		lines := func(usages ...string) string {
			var all []string
			for i, u := range usages {
				in := id.ReplaceAllStringFunc(c.object(u), func(s string) string { return s[:len(s)-1] + fmt.Sprint(i) + `"` })
				head, line, table := strings.Cut(in, "\n")
				if !table {
					head, line = "", head
				}
				if table && i == 0 {
					all = append(all, head)
				}
				all = append(all, line)
			}
			return strings.Join(all, "\n") + "\n"
		}
		alone, _, err := read(strings.NewReader(lines(open)), Options{Format: name})
		if err != nil || len(alone) != 1 {
			t.Errorf("%s: %d entries, %v", name, len(alone), err)
			continue
		}
		want := shownCounts(&alone[0])
		for _, other := range []string{beside, within, apart} {
			for at, usages := range [][]string{{open, other, other, other}, {other, other, other, open}} {
				all, _, err := read(strings.NewReader(lines(usages...)), Options{Format: name})
				if err != nil || len(all) != 4 {
					t.Errorf("%s: %d entries of 4 calls, %v", name, len(all), err)
					continue
				}
				if got := shownCounts(&all[3*at]); got != want {
					t.Errorf("%s: beside %s it is %s, and alone %s", name, other, got, want)
				}
			}
		}
	}
}

func shownCounts(e *trace.Entry) string {
	return fmt.Sprintf("input %s, output %s, cached %s, reasoning %s", shownCount(e.InputTokens), shownCount(e.OutputTokens), shownCount(e.Cached), shownCount(e.Reasoning))
}
