package datasets

import (
	"strings"
	"testing"
)

const inferenceFlat = `"openinference.span.kind":"LLM","llm.model_name":"m","llm.token_count.prompt":900,"llm.token_count.completion":40,"llm.token_count.total":940,` +
	`"llm.token_count.prompt_details.cache_read":640,"llm.token_count.completion_details.reasoning":12,"session.id":"s","user.id":"u",` +
	`"llm.invocation_parameters":"{\"max_tokens\":100,\"temperature\":0.5}","llm.finish_reason":"stop",` +
	`"llm.input_messages.1.message.role":"user","llm.input_messages.1.message.content":"q","llm.input_messages.0.message.role":"system",` +
	`"llm.input_messages.0.message.contents.0.message_content.type":"text","llm.input_messages.0.message.contents.0.message_content.text":"s",` +
	`"llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.content":"a"`

// The encodings of OpenInference are read alike: flat, nested, OTLP, and columns.
func TestOpenInference(t *testing.T) {
	const want = `490923h4m5.5s session=s user=u model=m in=900 out=40 cached=640 reasoning=12 max=100 temperature=0.5 system:"s" user:"q" reply="a" chat stop e2e=1.5s`
	wantEntries(t, span(inferenceFlat), Options{}, want)
	nested := `"openinference":{"span":{"kind":"LLM"}},"llm":{"model_name":"m","token_count":{"prompt":900,"completion":40,"total":940,"prompt_details":{"cache_read":640},"completion_details":{"reasoning":12}},` +
		`"invocation_parameters":"{\"max_tokens\":100,\"temperature\":0.5}","finish_reason":"stop",` +
		`"input_messages":[{"message":{"role":"system","contents":[{"message_content":{"type":"text","text":"s"}}]}},{"message":{"role":"user","content":"q"}}],` +
		`"output_messages":[{"message":{"role":"assistant","content":"a"}}]},"session":{"id":"s"},"user":{"id":"u"}`
	wantEntries(t, span(nested), Options{}, want)
	columns := `{"name":"x","context.trace_id":"t","start_time":"2026-01-02T03:04:05.5Z","end_time":"2026-01-02T03:04:07Z","attributes.` +
		strings.ReplaceAll(inferenceFlat[1:], `,"llm.`, `,"attributes.llm.`) + "}"
	columns = strings.NewReplacer(`"session.id"`, `"attributes.session.id"`, `"user.id"`, `"attributes.user.id"`).Replace(columns)
	wantEntries(t, columns, Options{}, want)
	// As Phoenix's API returns spans, with its kind beside the attributes.
	rest := strings.Replace(span(strings.TrimPrefix(inferenceFlat, `"openinference.span.kind":"LLM",`)), `"name"`, `"span_kind":"LLM","name"`, 1)
	wantEntries(t, `{"data":[`+rest+`],"next_cursor":null}`, Options{}, want)
	otlp := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x","startTimeUnixNano":"1767323045500000000","endTimeUnixNano":"1767323047000000000","attributes":[` +
		`{"key":"openinference.span.kind","value":{"stringValue":"LLM"}},{"key":"llm.token_count.prompt","value":{"intValue":"900"}},{"key":"llm.input_messages.0.message.role","value":{"stringValue":"user"}},` +
		`{"key":"llm.input_messages.0.message.content","value":{"stringValue":"q"}}],"events":[{"name":"First Token Stream Event","timeUnixNano":"1767323046000000000"}]}]}]}]}`
	wantEntries(t, otlp, Options{}, `490923h4m5.5s in=900 user:"q" chat ttft=500ms e2e=1.5s`)
	for _, kind := range []string{"CHAIN", "AGENT", "TOOL", "RETRIEVER"} {
		wantNote(t, wantEntries(t, span(strings.Replace(inferenceFlat, "LLM", kind, 1)), Options{}), noteOtherSpans+": 1")
	}
	wantEntries(t, span(`"openinference.span.kind":"EMBEDDING","llm.token_count.prompt":9`), Options{}, "490923h4m5.5s in=9 embedding e2e=1.5s")
	// Calls of tools, and their definitions.
	wantEntries(t, span(`"openinference.span.kind":"LLM","llm.token_count.prompt":9,"llm.input_messages.0.message.role":"assistant","llm.input_messages.0.message.tool_calls.0.tool_call.function.name":"f",`+
		`"llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments":"{}","llm.tools.0.tool.json_schema":"{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"`), Options{},
		`490923h4m5.5s in=9 assistant:"" calls=[{"function":{"arguments":"{}","name":"f"},"type":"function"}] tools=[{"function":{"name":"f"},"type":"function"}] chat e2e=1.5s`)
}

func TestOpenInferenceParquet(t *testing.T) {
	type spanned struct {
		Name    string `parquet:"name"`
		Start   string `parquet:"start_time"`
		End     string `parquet:"end_time"`
		Kind    string `parquet:"attributes.openinference.span.kind"`
		Prompt  int64  `parquet:"attributes.llm.token_count.prompt"`
		Answer  int64  `parquet:"attributes.llm.token_count.completion"`
		Session string `parquet:"attributes.session.id"`
	}
	in := toParquet(t, spanned{"x", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:07Z", "LLM", 900, 40, "s"}, spanned{Start: "2026-01-02T03:04:05.5Z", Kind: "CHAIN"})
	info := wantEntries(t, in, Options{}, "490923h4m5.5s session=s in=900 out=40 e2e=1.5s")
	if info.Format != "otel-genai" {
		t.Errorf("read as %s", info.Format)
	}
}

// The names of the conventions' newest version, and those of older instrumentations.
func TestOTelNames(t *testing.T) {
	const when = "490923h4m5.5s e2e=1.5s in=12 out=3 "
	for attributes, want := range map[string]string{
		lengths + `,"gen_ai.operation.name":"chat","gen_ai.provider.name":"openai","gen_ai.response.time_to_first_chunk":0.25,"gen_ai.usage.cache_read.input_tokens":4,"gen_ai.usage.reasoning.output_tokens":2`: "cached=4 reasoning=2 ttft=250ms chat",
		lengths + `,"gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"q","gen_ai.completion.0.role":"assistant","gen_ai.completion.0.content":"a"`:                                                        `user:"q" reply="a" chat`,
		lengths + `,"ai.operationId":"ai.streamText.doStream"`: "",
	} {
		wantEntries(t, span(attributes), Options{}, strings.TrimSpace(when+want))
	}
	wantNote(t, wantEntries(t, span(lengths+`,"ai.operationId":"ai.streamText"`), Options{}), noteOtherSpans+": 1")
	// The messages may stand in an event of the span.
	in := strings.Replace(span(lengths), `"attributes"`, `"events":[{"name":"gen_ai.client.inference.operation.details","attributes":{"gen_ai.input.messages":"[{\"role\":\"user\",\"content\":\"q\"}]"}}],"attributes"`, 1)
	wantEntries(t, in, Options{}, when+`user:"q" chat`)
	// A row of a data set of traces: the session is that of the row.
	wantEntries(t, `{"session_id":"x","harness":"h","spans":[`+span(lengths+`,"gen_ai.operation.name":"chat"`)+`]}`, Options{}, when+"session=x chat")
}
