package datasets

import (
	"strings"
	"testing"
)

// A request with tools, as each format has it, and what becomes of it: the keys
// of the definitions stand as the source has them.
const (
	toolsBody = `"messages":[{"role":"user","content":"q"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"z\":1,\"a\":2}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","name":"f","content":[{"type":"text","text":"r"},{"type":"text","text":"s"}]}],` +
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"z":{"type":"string"},"a":1.0}}},{"type":"custom"}]`
	toolsWant = `tools=[{"type":"function","function":{"name":"f","parameters":{"z":{"type":"string"},"a":1.0}}},{"type":"custom"}] ` +
		`user:"q" assistant:"" calls=[{"function":{"arguments":"{\"z\":1,\"a\":2}","name":"f"},"id":"c1","type":"function"}] tool:"r\ns" call=c1 name=f`
	toolsReply = `{"role":"assistant","content":"w","tool_calls":[{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]}`
	replyWant  = ` reply="w" replycalls=[{"function":{"arguments":"{}","name":"g"},"id":"c2","type":"function"}]`
)

func TestToolsAreKept(t *testing.T) {
	quoted := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) }
	csvQuoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	body := "{" + toolsBody + "}"
	for name, c := range map[string][2]string{
		"openai-log":   {`{"timestamp":"2026-01-02T03:04:05Z",` + toolsBody + `,"response":{"choices":[{"message":` + toolsReply + `}]}}`, replyWant},
		"openai-batch": {`{"custom_id":"r","url":"/v1/chat/completions","body":` + body + `}`, ""},
		"litellm-log": {`{"call_type":"acompletion","startTime":1767323045.5,"endTime":1767323047.5,"prompt_tokens":1,"completion_tokens":1,"messages":` +
			between(toolsBody, `"messages":`, `,"tools"`) + `,"model_parameters":{"temperature":1,` + toolsBody[strings.Index(toolsBody, `"tools"`):] + `},"response":{"choices":[{"message":` + toolsReply + `}]}}`, replyWant},
		"litellm-spend": {"call_type,startTime,endTime,prompt_tokens,completion_tokens,proxy_server_request\nacompletion,2026-01-02 03:04:05,2026-01-02 03:04:07,1,1," + csvQuoted(body), ""},
		"gateway-csv":   {"timestamp,request_json\n2026-01-02T03:04:05Z," + csvQuoted(body), ""},
		"sagemaker":     {`{"captureData":{"endpointInput":{"data":"` + quoted(body) + `","encoding":"JSON"}},"eventMetadata":{"inferenceTime":"2026-01-02T03:04:05Z"}}`, ""},
		"langfuse":      {`{"id":"o","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:05","input":` + body + `,"output":` + toolsReply + `}`, replyWant},
		"aiperf":        {`{"payload":` + body + `,"timestamp":1000}`, ""},
		"evalscope":     {`{"body":` + body + `,"timestamp":0.5}`, ""},
		"otel-genai": {`{"name":"chat","start_time":"2026-01-02T03:04:05Z","attributes":{"gen_ai.tool.definitions":"` +
			quoted(toolsBody[strings.Index(toolsBody, "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\""):]) + `","gen_ai.input.messages":` + between(toolsBody, `"messages":`, `,"tools"`) +
			`,"gen_ai.output.messages":[` + toolsReply + `]}}`, replyWant},
	} {
		all, _, err := read(strings.NewReader(c[0]), Options{MaxBad: 1, Format: name})
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %d entries, %v", name, len(all), err)
			continue
		}
		got := summary(&all[0])
		if !strings.Contains(got, toolsWant+c[1]+" ") {
			t.Errorf("%s:\n%s, want in it\n%s", name, got, toolsWant+c[1])
		}
	}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// Older and other shapes become that of OpenAI's API.
func TestShapesOfTools(t *testing.T) {
	for in, want := range map[string]string{
		`"messages":[{"role":"user","content":"q"}],"functions":[{"name":"f","b":1,"a":2}]`:                                                `tools=[{"type":"function","function":{"name":"f","b":1,"a":2}}] user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":"[{\"type\":\"function\",\"function\":{\"z\":1,\"a\":2}}]"`:                    `tools=[{"type":"function","function":{"z":1,"a":2}}] user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":[]`:                                                                            `user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":{}`:                                                                            `user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":null`:                                                                          `user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":""`:                                                                            `user:"q"`,
		`"messages":[{"role":"user","content":"q"}],"tools":"x"`:                                                                           "bad",
		`"messages":[{"role":"user","content":"q"}],"tools":5`:                                                                             "bad",
		`"messages":[{"role":"assistant","content":"c","function_call":{"name":"f","arguments":"{}"}}]`:                                    `assistant:"c" calls=[{"function":{"arguments":"{}","name":"f"},"type":"function"}]`,
		`"messages":[{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}}]}]`: `assistant:"c" calls=[{"function":{"arguments":{"a":1},"name":"f"},"id":"1","type":"function"}]`,
		`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]}]}]`:         `user:"r"`,
		`"messages":[{"role":"function","name":"f","content":"r"}]`:                                                                        `tool:"r" name=f`,
		`"messages":[{"role":"assistant","content":"c","tool_calls":[]}]`:                                                                  `assistant:"c"`,
		`"messages":[{"role":"assistant","content":"c","tool_calls":null}]`:                                                                `assistant:"c"`,
	} {
		all, info, err := read(strings.NewReader(`{"timestamp":"2026-01-02T03:04:05Z",`+in+`}`), Options{MaxBad: 1, Format: "openai-log"})
		if want == "bad" {
			if err != nil || info.Bad != 1 {
				t.Errorf("%s: %v, %d bad", in, err, info.Bad)
			}
			continue
		}
		if err != nil || len(all) != 1 || !strings.Contains(summary(&all[0]), want+" chat") {
			t.Errorf("%s: %v, want %s", in, err, want)
			if len(all) == 1 {
				t.Log(summary(&all[0]))
			}
		}
	}
}
