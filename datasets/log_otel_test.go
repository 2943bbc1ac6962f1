package datasets

import (
	"strings"
	"testing"
)

// span is a flat span with the given attributes.
func span(attributes string) string {
	return `{"name":"chat m","context":{"trace_id":"0x1"},"start_time":"2026-01-02T03:04:05.5Z","end_time":"2026-01-02T03:04:07Z","attributes":{` + attributes + `}}`
}

const lengths = `"gen_ai.usage.input_tokens":12,"gen_ai.usage.output_tokens":3`

func TestOTelSpans(t *testing.T) {
	const when = "490923h4m5.5s e2e=1.5s "
	for attributes, want := range map[string]string{
		lengths: "in=12 out=3",
		`"gen_ai.usage.prompt_tokens":12,"gen_ai.usage.completion_tokens":3`:                                                                                       "in=12 out=3",
		`"gen_ai":{"usage":{"input_tokens":"12","output_tokens":3}}`:                                                                                               "in=12 out=3",
		lengths + `,"gen_ai.operation.name":"text_completion"`:                                                                                                     "in=12 out=3 completion",
		`"gen_ai.usage.input_tokens":5,"gen_ai.operation.name":"embeddings"`:                                                                                       "in=5 embedding",
		lengths + `,"gen_ai.usage.cache_read.input_tokens":4,"gen_ai.conversation.id":"c","gen_ai.request.model":"m","gen_ai.response.model":"n","enduser.id":"u"`: "in=12 out=3 cached=4 session=c model=m user=u",
		// Vercel's AI SDK and OpenLLMetry have more than the conventions.
		lengths + `,"ai.response.finishReason":"tool-calls","ai.response.msToFirstChunk":125.5,"ai.response.text":"a","ai.prompt.messages":"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"}]}]"`: `user:"q" reply="a" in=12 out=3 ttft=125.5ms chat tool_calls`,
		lengths + `,"gen_ai.completion.0.finish_reason":"length"`:                                                                                       "in=12 out=3 length",
		lengths + `,"gen_ai.request.max_tokens":100,"gen_ai.request.temperature":0.25`:                                                                  "in=12 out=3 max=100 temperature=0.25",
		lengths + `,"gen_ai.response.finish_reasons":["length","stop"]`:                                                                                 "in=12 out=3 length",
		lengths + `,"gen_ai.response.finish_reasons":"[\"tool_call\"]"`:                                                                                 "in=12 out=3 tool_calls",
		lengths + `,"gen_ai.response.finish_reasons":"stop"`:                                                                                            "in=12 out=3 stop",
		lengths + `,"gen_ai.output.messages":"[{\"role\":\"assistant\",\"finish_reason\":\"stop\",\"parts\":[{\"type\":\"text\",\"content\":\"a\"}]}]"`: `in=12 out=3 reply="a" stop`,
		lengths + `,"error.type":"timeout"`:                                                                                                             "in=12 out=3 failed",
		lengths + `,"gen_ai.latency.time_to_first_token":0.125`:                                                                                         "in=12 out=3 ttft=125ms",
		lengths + `,"gen_ai.latency.e2e":9.5,"gen_ai.request.id":"r"`:                                                                                   "in=12 out=3", // the span's length counts
		`"gen_ai.input.messages":"[{\"role\":\"user\",\"content\":\"q\"}]"`:                                                                             `user:"q" chat`,
		`"gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"q"},{"type":"blob","modality":"image"}]}],"gen_ai.system_instructions":"[{\"type\":\"text\",\"content\":\"s\"}]"`:                                                                  `system:"s" user:"q" images=1 chat`,
		`"gen_ai.input.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"f"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":{"a":"<"}}]},{"role":"tool","parts":[{"type":"tool_call_response","result":"r"}]}]`: `assistant:"" calls=[{"function":{"name":"f"},"id":"1","type":"function"}] tool:"{\"a\":\"<\"}" call=1 tool:"r" chat`,
	} {
		info := wantEntries(t, span(attributes), Options{}, when+want)
		if !info.HasTimes || info.TimeUnit != "date" {
			t.Errorf("%+v", info)
		}
	}
}

// What cannot be used of the messages leaves the lengths.
func TestOTelMessagesInPart(t *testing.T) {
	const when = "490923h4m5.5s e2e=1.5s in=12 out=3"
	for attributes, note := range map[string]string{
		`"gen_ai.input.messages":"[{\"role\":\"user\",\"cont"`:                                      noteCutAttribute + ": 1",
		`"gen_ai.input.messages":{"role":"user"}`:                                                   noteCutAttribute + ": 1",
		`"gen_ai.input.messages":"[{\"role\":\"alien\"}]"`:                                          noteNoMessages + ": 1",
		`"gen_ai.input.messages":[{"role":"user","content":"q"}],"gen_ai.system_instructions":"[{"`: noteCutAttribute + ": 1",
	} {
		wantNote(t, wantEntries(t, span(lengths+","+attributes), Options{}, when), note)
	}
}

func TestOTelSpansThatAreNoCalls(t *testing.T) {
	in := span(lengths) + "\n" +
		span(lengths+`,"gen_ai.operation.name":"invoke_agent"`) + "\n" +
		span(`"gen_ai.operation.name":"execute_tool"`) + "\n" +
		span(`"http.method":"POST"`) + "\n" +
		strings.Replace(span(`"gen_ai.operation.name":"chat"`), `"name"`, `"status":{"status_code":"ERROR"},"name"`, 1) + "\n"
	info := wantEntries(t, in, Options{}, "490923h4m5.5s in=12 out=3 e2e=1.5s")
	wantNote(t, info, noteOtherSpans+": 3")
	wantNote(t, info, noteFailedSpans+": 1")
}

// The shapes in which spans are written: OTLP, lists, over several lines, and the
// spellings of their status and their times.
func TestOTelShapes(t *testing.T) {
	const otlp = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[]},{"spans":[SPAN,SPAN]}]},{"scopeSpans":[{"spans":[SPAN]}]}]}`
	const typed = `{"name":"x","startTimeUnixNano":"1767323045000000000","endTimeUnixNano":"1767323046000000000","status":{"code":2},"attributes":[` +
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"12"}},{"key":"gen_ai.request.temperature","value":{"doubleValue":0.5}},` +
		`{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"stop"}]}}},` +
		`{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"content","value":{"stringValue":"q"}}]}}]}}},` +
		`{"key":"x","value":{"boolValue":true}},{"key":"y","value":{"bytesValue":"AA=="}},{"key":5},"odd"]}`
	const want = `490923h4m5s user:"q" in=12 temperature=0.5 chat failed stop e2e=1s`
	wantEntries(t, strings.ReplaceAll(otlp, "SPAN", typed), Options{}, want, want, want)
	wantEntries(t, `{"resource":{},"scopeSpans":[{"scope":{},"spans":[`+typed+`]}],"schemaUrl":""}`, Options{}, want) // without the outer key
	clock := strings.NewReplacer(`"2026-01-02T03:04:05.5Z"`, "[1767323045,500000000]", `"2026-01-02T03:04:07Z"`, "[1767323047,0]").Replace(span(lengths))
	wantEntries(t, clock, Options{}, "490923h4m5.5s in=12 out=3 e2e=1.5s")
	if _, info := mustRead(t, `{"type":"span","traceId":"t","startTime":[1,0],`+clock[1:], Options{}); info.Format != "otel-genai" {
		t.Errorf("a span of Node is taken for %s", info.Format)
	}
	flat := span(lengths)
	const flatWant = "490923h4m5.5s in=12 out=3 e2e=1.5s"
	wantEntries(t, `{"spans":[`+flat+`,`+flat+`]}`, Options{}, flatWant, flatWant)
	wantEntries(t, `[`+flat+`,`+flat+`]`, Options{}, flatWant, flatWant)
	spread := strings.ReplaceAll(flat, ",", ",\n  ")
	wantEntries(t, "{\n"+spread[1:]+"\n"+spread, Options{}, flatWant, flatWant)
	epoch := strings.NewReplacer(`"2026-01-02T03:04:05.5Z"`, "1767323045.5", `"2026-01-02T03:04:07Z"`, "1767323047").Replace(flat)
	wantEntries(t, epoch, Options{}, flatWant)
	relative := strings.NewReplacer(`"2026-01-02T03:04:05.5Z"`, "5500", `"2026-01-02T03:04:07Z"`, "7000").Replace(flat)
	wantEntries(t, relative, Options{TimeUnit: "ms"}, "5.5s in=12 out=3 e2e=1.5s")
	for _, status := range []string{`{"status_code":"ERROR"}`, `{"code":"STATUS_CODE_ERROR"}`, `"ERROR"`, `{"status_code":"StatusCode.ERROR"}`} {
		wantEntries(t, strings.Replace(flat, `"name"`, `"status":`+status+`,"name"`, 1), Options{}, flatWant+" failed")
	}
	// What Jaeger's page downloads.
	const jaeger = `{"data":[{"traceID":"t","spans":[SPAN,SPAN],"processes":{"p1":{"serviceName":"s"}},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}`
	const tagged = `{"traceID":"t","operationName":"chat m","references":[],"startTime":1767323045500000,"duration":1500000,"tags":[{"key":"gen_ai.usage.input_tokens","type":"int64","value":12},{"key":"gen_ai.usage.output_tokens","type":"int64","value":3},{"key":"error","type":"bool","value":false}],"logs":[],"processID":"p1"}`
	in := strings.Replace(strings.Replace(jaeger, "SPAN", tagged, 1), "SPAN", strings.Replace(tagged, "false",
		"true", 1), 1)
	wantEntries(t, in, Options{}, flatWant, flatWant+" failed")
	all, _, err := readTogether(textFiles(flat, spread), Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all, []string{flatWant, flatWant})
}

func TestOTelFaults(t *testing.T) {
	wantBad(t, span(`"gen_ai.usage.input_tokens":"zqx"`), Options{}, "log:1:161: input_tokens: want a whole number")
	wantBad(t, span(`"gen_ai.operation.name":"chat"`), Options{}, "log:1:1: it has neither a prompt nor the length of one")
	wantBad(t, `{"spans":[`+span(lengths)+`,{"name":"x","attributes":{`+lengths+`}}]}`, Options{}, "log:1:207: it has no time")
	wantBad(t, "{\n\"name\":5,\n\"attributes\":{},\"start_time\"", Options{}, "log:3:29: unexpected end of file: the last record is not whole")
	wantBad(t, "{\n\"name\":5,\n\"attributes\":{},\"start_time\":1}\n[", Options{}, "log:4:1: want a JSON object")
	wantNote(t, wantEntries(t, strings.Replace(span(lengths), "03:04:07Z", "03:04:05Z", 1), Options{},
		"490923h4m5.5s in=12 out=3"), "records that end before they start: their latencies are left out: 1")
}

// Definitions of tools stand as the source writes them, also where a span is one of
// several and where its attributes are keys with typed values.
func TestOTelToolsAsTheyStand(t *testing.T) {
	const tools = `[{"type":"function","function":{"name":"f","z":1.0,"a":2}}]`
	const asked = `"gen_ai.input.messages":[{"role":"user","content":"q"}],"gen_ai.tool.definitions":` + tools
	const want = `490923h4m5.5s tools=` + tools + ` user:"q" chat e2e=1.5s`
	wantEntries(t, span(asked), Options{}, want)
	wantEntries(t, `{"spans":[`+span(lengths)+`,`+span(asked)+`]}`, Options{}, "490923h4m5.5s in=12 out=3 e2e=1.5s", want)
	wantEntries(t, `{"resourceSpans":[{"scopeSpans":[{"spans":[`+span(lengths)+`]},{"spans":[`+span(asked)+`]}]}]}`, Options{}, "490923h4m5.5s in=12 out=3 e2e=1.5s", want)
}
