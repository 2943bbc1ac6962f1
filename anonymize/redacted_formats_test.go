package anonymize_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/datasets"
)

// redactable are records of one call each, of every format that can hold a text beside its
// usage. $SYS, $USER and $REPLY are the texts, as JSON; what stands between ⟦ and ⟧ is
// left out where a log has none. ⟪ and ⟫ are around JSON in a string, ‹ and › around JSON in
// a column of CSV. $IN has the cached tokens $CACHED in it, and $FRESH does not.
var redactable = []struct {
	name, format, head, record string
	counts                     bool // it says how much was cached
}{
	{"openai-log", "openai-log", "", `{"timestamp":"$AT","model":"m"⟦,"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}],"response":{"choices":[{"message":{"role":"assistant","content":$REPLY}}]}⟧⟬,"messages":[]⟭,` +
		`"usage":{"prompt_tokens":$IN,"completion_tokens":$OUT,"prompt_tokens_details":{"cached_tokens":$CACHED}}}` + "\n", true},
	{"openai-batch", "openai-batch", "", `{"custom_id":"c$I","method":"POST","url":"/v1/chat/completions","body":{"model":"m"⟦,"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧⟬,"messages":[]⟭}}` + "\n" +
		`{"id":"x$I","custom_id":"c$I","response":{"status_code":200,"body":{"created":$SECONDS,"model":"m","choices":[⟦{"message":{"role":"assistant","content":$REPLY}}⟧],"usage":{"prompt_tokens":$IN,"completion_tokens":$OUT,"prompt_tokens_details":{"cached_tokens":$CACHED}}}}}` + "\n", true},
	{"otel-genai", "otel-genai", "", `{"name":"chat m","start_time":"$AT","end_time":"$END","attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"m","gen_ai.usage.input_tokens":$IN,"gen_ai.usage.output_tokens":$OUT,"gen_ai.usage.cache_read.input_tokens":$CACHED` +
		`⟦,"gen_ai.system_instructions":[{"type":"text","content":$SYS}],"gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":$USER}]}],"gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"text","content":$REPLY}]}]⟧}}` + "\n", true},
	{"otel-genai, old names", "otel-genai", "", `{"name":"chat m","start_time":"$AT","end_time":"$END","attributes":{"gen_ai.system":"anthropic","gen_ai.request.model":"m","gen_ai.usage.prompt_tokens":$FRESH,"gen_ai.usage.completion_tokens":$OUT,"gen_ai.usage.cache_read_input_tokens":$CACHED,"llm.usage.total_tokens":$TOTAL` +
		`⟦,"gen_ai.prompt.0.role":"system","gen_ai.prompt.0.content":$SYS,"gen_ai.prompt.1.role":"user","gen_ai.prompt.1.content":$USER,"gen_ai.completion.0.role":"assistant","gen_ai.completion.0.content":$REPLY⟧}}` + "\n", true},
	{"openinference", "otel-genai", "", `{"name":"ChatCompletion","context":{"trace_id":"a$I","span_id":"b$I"},"parent_id":null,"start_time":"$AT","end_time":"$END","attributes":{"openinference.span.kind":"LLM","llm.model_name":"m","llm.token_count.prompt":$IN,"llm.token_count.completion":$OUT,"llm.token_count.prompt_details.cache_read":$CACHED` +
		`⟦,"llm.input_messages.0.message.role":"system","llm.input_messages.0.message.content":$SYS,"llm.input_messages.1.message.role":"user","llm.input_messages.1.message.content":$USER,"llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":$REPLY⟧}}` + "\n", true},
	{"langfuse", "langfuse", "", `{"id":"o$I","trace_id":"t$I","type":"GENERATION","start_time":"$AT","end_time":"$END","model":"m"⟦,"input":[{"role":"system","content":$SYS},{"role":"user","content":$USER}],"output":{"role":"assistant","content":$REPLY}⟧,"usage_details":{"input":$FRESH,"input_cached_tokens":$CACHED,"output":$OUT,"total":$TOTAL}}` + "\n", true},
	{"litellm-log", "litellm-log", "", `{"id":"r$I","call_type":"acompletion","startTime":$SECONDS,"endTime":$SECONDS.5,"prompt_tokens":$IN,"completion_tokens":$OUT,"model":"m","metadata":{"usage_object":{"prompt_tokens_details":{"cached_tokens":$CACHED}}},` +
		`"messages":⟦[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧⟬{}⟭,"response":{⟦"choices":[{"message":{"role":"assistant","content":$REPLY}}]⟧}}` + "\n", true},
	{"litellm-log, Anthropic", "litellm-log", "", `{"id":"r$I","call_type":"anthropic_messages","startTime":$SECONDS,"endTime":$SECONDS.5,"prompt_tokens":$FRESH,"completion_tokens":$OUT,"total_tokens":$TOTAL,"model":"m","metadata":{"usage_object":{"prompt_tokens":$FRESH,"completion_tokens":$OUT,"total_tokens":$TOTAL,"cache_read_input_tokens":$CACHED,"prompt_tokens_details":{"cached_tokens":$CACHED}}},` +
		`"messages":⟦[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧⟬{}⟭,"response":{⟦"choices":[{"message":{"role":"assistant","content":$REPLY}}]⟧}}` + "\n", true},
	{"litellm-spend", "litellm-spend", "request_id,call_type,startTime,endTime,prompt_tokens,completion_tokens,model,messages,response,metadata\n",
		`r$I,acompletion,$DATE,$DATE.5,$IN,$OUT,m,⟦‹[{"role":"system","content":$SYS},{"role":"user","content":$USER}]›⟧⟬{}⟭,⟦‹{"choices":[{"message":{"role":"assistant","content":$REPLY}}]}›⟧⟬{}⟭,‹{"usage_object":{"prompt_tokens_details":{"cached_tokens":$CACHED}}}›` + "\n", true},
	{"gateway-csv", "gateway-csv", "timestamp,request_json,response_json\n",
		`$AT,‹{"model":"m"⟦,"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧}›,‹{"choices":[⟦{"message":{"role":"assistant","content":$REPLY}}⟧],"usage":{"prompt_tokens":$IN,"completion_tokens":$OUT,"prompt_tokens_details":{"cached_tokens":$CACHED}}}›` + "\n", true},
	{"sagemaker", "sagemaker", "", `{"captureData":{"endpointInput":{"observedContentType":"application/json","mode":"INPUT","encoding":"JSON","data":⟪{"model":"m"⟦,"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧⟬,"messages":[]⟭}⟫},` +
		`"endpointOutput":{"observedContentType":"application/json","mode":"OUTPUT","encoding":"JSON","data":⟪{"choices":[⟦{"message":{"role":"assistant","content":$REPLY}}⟧],"usage":{"prompt_tokens":$IN,"completion_tokens":$OUT,"prompt_tokens_details":{"cached_tokens":$CACHED}}}⟫}},"eventMetadata":{"eventId":"e$I","inferenceTime":"$AT"}}` + "\n", true},
	{"api-log, Anthropic", "api-log", "", `{"timestamp":"$AT","request":{"model":"m"⟦,"system":$SYS,"messages":[{"role":"user","content":$USER}]⟧},"response":{"type":"message","role":"assistant","content":[⟦{"type":"text","text":$REPLY}⟧],"usage":{"input_tokens":$FRESH,"cache_read_input_tokens":$CACHED,"output_tokens":$OUT}}}` + "\n", true},
	{"api-log, Responses", "api-log", "", `{"timestamp":"$AT","request":{"model":"m"⟦,"instructions":$SYS,"input":[{"role":"user","content":$USER}]⟧},"response":{"object":"response","model":"m","output":[⟦{"type":"message","role":"assistant","content":[{"type":"output_text","text":$REPLY}]}⟧],"usage":{"input_tokens":$IN,"input_tokens_details":{"cached_tokens":$CACHED},"output_tokens":$OUT}}}` + "\n", true},
	{"api-log, Chat", "api-log", "", `{"timestamp":"$AT","request":{"model":"m","messages":[⟦{"role":"system","content":$SYS},{"role":"user","content":$USER}⟧]},"response":{"object":"chat.completion","choices":[⟦{"message":{"role":"assistant","content":$REPLY}}⟧],"usage":{"prompt_tokens":$IN,"completion_tokens":$OUT,"prompt_tokens_details":{"cached_tokens":$CACHED}}}}` + "\n", true},
	{"langsmith", "langsmith", "", `{"id":"r$I","trace_id":"t$I","run_type":"llm","start_time":"$AT","end_time":"$END","prompt_tokens":$IN,"completion_tokens":$OUT,"total_tokens":$TOTAL,"prompt_token_details":{"raw":{"cache_read":$CACHED}},"inputs":{⟦"messages":[[{"id":["langchain","schema","SystemMessage"],"kwargs":{"content":$SYS}},{"id":["langchain","schema","HumanMessage"],"kwargs":{"content":$USER}}]]⟧},` +
		`"outputs":{⟦"generations":[[{"message":{"kwargs":{"content":$REPLY,"type":"ai"}}}]]⟧}}` + "\n", true},
	{"braintrust", "braintrust", "", `{"id":"b$I","span_id":"s$I","root_span_id":"s$I","created":"$AT","span_attributes":{"type":"llm"},"metadata":{"model":"m"},"metrics":{"start":$SECONDS.0,"end":$SECONDS.5,"prompt_tokens":$IN,"prompt_cached_tokens":$CACHED,"completion_tokens":$OUT,"tokens":$TOTAL},"input":⟦[{"role":"system","content":$SYS},{"role":"user","content":$USER}]⟧⟬null⟭,"output":⟦[{"message":{"role":"assistant","content":$REPLY}}]⟧⟬null⟭}` + "\n", true},
	{"mlflow", "mlflow", "", `{"info":{"trace_id":"t$I"},"data":{"spans":[{"span_id":"a$I","parent_id":null,"name":"chat","start_time_unix_nano":$SECONDS000000000,"end_time_unix_nano":$SECONDS500000000,"attributes":{"mlflow.spanType":"\"CHAT_MODEL\"","mlflow.llm.model":"m","mlflow.chat.tokenUsage":"{\"input_tokens\":$IN,\"output_tokens\":$OUT,\"total_tokens\":$TOTAL,\"cache_read_input_tokens\":$CACHED}"` +
		`⟦,"mlflow.spanInputs":⟪{"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]}⟫,"mlflow.spanOutputs":⟪{"choices":[{"message":{"role":"assistant","content":$REPLY}}]}⟫⟧}}]}}` + "\n", true},
	{"helicone", "helicone", "", `{"request_id":"h$I","request_created_at":"$AT","response_status":200,"request_model":"m","delay_ms":900,"prompt_tokens":$IN,"prompt_cache_read_tokens":$CACHED,"completion_tokens":$OUT⟦,"request_body":{"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]},"response_body":{"choices":[{"message":{"role":"assistant","content":$REPLY}}]}⟧}` + "\n", true},
	{"portkey", "portkey", "", `{"id":"p$I","trace_id":"t$I","created_at":"$END","ai_model":"m","req_units":$IN,"res_units":$OUT,"total_units":$TOTAL,"response_time":500,"response_status_code":200⟦,"request":{"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]}⟧,"response":{⟦"choices":[{"message":{"role":"assistant","content":$REPLY}}],⟧"usage":{"prompt_tokens_details":{"cached_tokens":$CACHED}}}}` + "\n", true},
	{"kong", "kong", "", `{"started_at":$SECONDS000,"response":{"status":200},"latencies":{"request":900},"ai":{"proxy":{"meta":{"request_model":"m","llm_latency":900},"usage":{"prompt_tokens":$IN,"prompt_tokens_details":{"cached_tokens":$CACHED},"completion_tokens":$OUT,"total_tokens":$TOTAL}` +
		`⟦,"payload":{"request":⟪{"messages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}]}⟫,"response":⟪{"choices":[{"message":{"role":"assistant","content":$REPLY}}]}⟫}⟧}}}` + "\n", true},
	{"bedrock", "bedrock", "", `{"schemaType":"ModelInvocationLog","schemaVersion":"1.0","timestamp":"$AT","requestId":"b$I","operation":"Converse","modelId":"m","input":{"inputTokenCount":$FRESH,"cacheReadInputTokenCount":$CACHED,"cacheWriteInputTokenCount":0⟦,"inputBodyJson":{"system":[{"text":$SYS}],"messages":[{"role":"user","content":[{"text":$USER}]}]}⟧},` +
		`"output":{"outputTokenCount":$OUT⟦,"outputBodyJson":{"output":{"message":{"role":"assistant","content":[{"text":$REPLY}]}}}⟧}}` + "\n", true},
	{"vertex", "vertex", "", `{"endpoint":"projects/p/locations/l/publishers/google/models/m","logging_time":"$END","request_id":"$I","request_payload":[⟪{"contents":[⟦{"role":"user","parts":[{"text":$USER}]}⟧]⟦,"systemInstruction":{"parts":[{"text":$SYS}]}⟧}⟫],` +
		`"response_payload":[⟪{"candidates":[⟦{"content":{"role":"model","parts":[{"text":$REPLY}]}}⟧],"usageMetadata":{"promptTokenCount":$IN,"cachedContentTokenCount":$CACHED,"candidatesTokenCount":$OUT}}⟫]}` + "\n", true},
	{"sglang", "sglang", "", `{"timestamp":"$END","event":"request.finished","rid":"r$I","obj":{"model":"m"⟦,"text":$USER⟧},"out":{⟦"text":$REPLY,⟧"meta_info":{"prompt_tokens":$IN,"cached_tokens":$CACHED,"completion_tokens":$OUT,"e2e_latency":0.5}}}` + "\n", true},
	{"azure-apim", "azure-apim", "", `{"TimeGenerated":"$AT","CorrelationId":"x$I","SequenceNumber":0,"ModelName":"m","PromptTokens":$IN,"CompletionTokens":$OUT,"TotalTokens":$TOTAL⟦,"RequestMessages":[{"role":"system","content":$SYS},{"role":"user","content":$USER}],"ResponseMessages":[{"role":"assistant","content":$REPLY}]⟧}` + "\n", false},
	{"aibrix", "aibrix", "", `{"timestamp":$SECONDS000,"requests":[{"Prompt Length":$IN,"Output Length":$OUT,"model":"m"⟦,"prompt":$USER⟧}]}` + "\n", false},
	{"jsonl", "jsonl", "", `{"t":"$AT","counted":{"in":$IN,"out":$OUT,"found":$CACHED}⟦,"chat":[{"role":"system","content":$SYS},{"role":"user","content":$USER}],"said":$REPLY⟧}` + "\n", true},
}

// redactedTexts are what may stand in place of the three texts of a call, by what is said of
// the prompts; the system prompt of all calls is the same.
var redactedTexts = map[string]func(i int) (system, user, reply string){
	"marker": func(int) (string, string, string) { return "[REDACTED]", "[REDACTED]", "[REDACTED]" },
	"empty":  func(int) (string, string, string) { return "", "", "" },
	"hashed": func(i int) (string, string, string) {
		return fmt.Sprintf("%x", sha256.Sum256([]byte("rules"))), fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, i))), fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, -i)))
	},
	"partly": func(i int) (string, string, string) {
		return strings.Repeat("You answer briefly and in the words of the field. ", 300), "<redacted>", fmt.Sprint("What the answer says ", i)
	},
	"whole fields": func(int) (string, string, string) { return "[REDACTED]", "[REDACTED]", "[REDACTED]" },
	"empty lists":  func(int) (string, string, string) { return "", "", "" },
	"masked alike": func(int) (string, string, string) {
		return "This prompt was taken out", "Text on request", "Text on request"
	},
	"no text": nil,
}

// maskedList is a list of messages in a record, or one with its role.
var maskedList = regexp.MustCompile(`\[\{"role":[^\]]*?\$USER\}\](?:\}\])?`)

// redactedLog writes calls of a format and returns what they count together.
func redactedLog(t *testing.T, format int, variant string, texts func(i int) (system, user, reply string), calls int) (name string, input, output, cached int64) {
	t.Helper()
	var log strings.Builder
	log.WriteString(redactable[format].head)
	for i := range calls {
		in, out, found := 5000+37*i, 200+i, 1024
		if i == 0 {
			found = 0
		}
		input, output, cached = input+int64(in), output+int64(out), cached+int64(found)
		record := redactable[format].record
		var system, user, reply string
		if texts == nil {
			record = cutBetween(record, "⟦", "⟧", func(string) string { return "" })
			record = strings.NewReplacer("⟬", "", "⟭", "").Replace(record)
		} else {
			system, user, reply = texts(i)
			record = strings.NewReplacer("⟦", "", "⟧", "").Replace(cutBetween(record, "⟬", "⟭", func(string) string { return "" }))
			if in := map[string]string{"whole fields": `"[REDACTED]"`, "empty lists": `[]`}[variant]; in != "" {
				record = maskedList.ReplaceAllString(record, in)
			}
		}
		quoted := func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		record = strings.NewReplacer("$SYS", quoted(system), "$USER", quoted(user), "$REPLY", quoted(reply),
			"$AT", at(1000*i).Format("2006-01-02T15:04:05Z"), "$END", at(1000*i+500).Format("2006-01-02T15:04:05.9Z"), "$DATE", at(1000*i).Format("2006-01-02 15:04:05"),
			"$SECONDS", fmt.Sprint(at(1000*i).Unix()), "$IN", fmt.Sprint(in), "$OUT", fmt.Sprint(out), "$CACHED", fmt.Sprint(found),
			"$FRESH", fmt.Sprint(in-found), "$TOTAL", fmt.Sprint(in+out), "$I", fmt.Sprint(i)).Replace(record)
		record = cutBetween(record, "⟪", "⟫", func(s string) string { return quoted(s) })
		record = cutBetween(record, "‹", "›", func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` })
		log.WriteString(record)
	}
	name = filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, input, output, cached
}

// cutBetween replaces what stands between two marks.
func cutBetween(s, begin, end string, by func(string) string) string {
	for {
		before, rest, found := strings.Cut(s, begin)
		inner, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return s
		}
		s = before + by(inner) + after
	}
}

// Whatever stands in place of the text, the lengths are those of usage to the token, and
// prompts that only look alike share nothing.
func TestRedactedFormats(t *testing.T) {
	const calls = 24
	for format := range redactable {
		f := &redactable[format]
		t.Run(f.name, func(t *testing.T) {
			for variant, texts := range redactedTexts {
				name, input, output, cached := redactedLog(t, format, variant, texts, calls)
				files, err := datasets.Expand(name)
				if err != nil {
					t.Fatal(err)
				}
				o := datasets.Options{}
				if f.format == "jsonl" {
					o.Map = datasets.Mapping{"time": {"t"}, "input_tokens": {"counted.in"}, "output_tokens": {"counted.out"}, "cached_tokens": {"counted.found"}}
					if texts != nil {
						o.Map["messages"], o.Map["output"] = []string{"chat"}, []string{"said"}
					}
				}
				src, err := datasets.OpenFiles(files, o)
				if err != nil {
					t.Errorf("%s: %v", variant, err)
					continue
				}
				p := policy(t)
				if variant == "masked alike" {
					p.Lengths = anonymize.LengthsUsage // what only looks like text must be said to be none
				}
				var rows keep
				card, err := anonymize.Run(context.Background(), p, src, &rows)
				src.Close()
				if err != nil && err != io.EOF {
					t.Errorf("%s: %v", variant, err)
					continue
				}
				if got := src.Info(); got.Format != f.format || got.Records != calls || got.Bad > 0 {
					t.Errorf("%s: %d records read as %s, %d bad", variant, got.Records, got.Format, got.Bad)
				}
				var in, out, found int64
				for i := range rows {
					in, out = in+int64(rows[i].InputTokens), out+int64(*rows[i].OutputTokens)
					if n := rows[i].CachedTokens; n != nil {
						found += int64(*n)
					}
				}
				if len(rows) != calls || in != input || out != output || f.counts && found != cached {
					t.Errorf("%s: %d rows of %d and %d tokens, %d cached; usage says %d of %d and %d, %d", variant, len(rows), in, out, found, calls, input, output, cached)
				}
				// All that the calls share is what the server found, or less than half of it all.
				ratio := hitRatio(rows, p.BlockSize)
				switch s := card.Totals.Sources; {
				case ratio > 0.6 || s.FromText > 0:
					t.Errorf("%s: hit ratio %.2f, %+v", variant, ratio, s)
				case f.counts && variant != "hashed" && (s.Estimated != calls || ratio < 0.1 || ratio > 0.25):
					t.Errorf("%s: hit ratio %.2f, %+v", variant, ratio, s)
				case !f.counts && variant != "hashed" && (s.Estimated != 0 || ratio != 0):
					t.Errorf("%s: hit ratio %.2f, %+v", variant, ratio, s)
				}
				if s := card.Totals.Sources; variant == "hashed" {
					if s.Usage != calls || s.FromHashes != calls {
						t.Errorf("%s: %+v, %+v", variant, s, card.Totals.InputGaps)
					}
				} else if s.Usage != calls || texts != nil && card.Totals.InputGaps.Total() != calls && variant != "whole fields" && variant != "empty lists" {
					t.Errorf("%s: %+v, %+v", variant, s, card.Totals.InputGaps)
				}
			}
		})
	}
}
