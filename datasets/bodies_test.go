package datasets

import (
	"encoding/json"
	"reflect"
	"testing"
)

// A raw file has all of a request's body: what entries have no field for is kept as it is, and
// only where it is asked for.
func TestBodies(t *testing.T) {
	const others = `"max_tokens":50,"tool_choice":{"type":"function","function":{"name":"f"}},"stop":["a","b"],"temperature":0.10,"response_format":{"type":"json_object"},"seed":12345678901234567`
	const body = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f"}}],` + others
	for name, c := range map[string]struct {
		in   string
		want string // "" is not known
	}{
		"a batch":                        {`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + body + `,"vendor_field":1}}` + "\n" + batchAnswer, "{" + others + `,"vendor_field":1}`},
		"a log whose records are bodies": {body + `,"vendor_field":1,"timestamp":1767323045,"usage":{"prompt_tokens":9,"completion_tokens":2}}`, "{" + others + "}"},
		"a log of bodies":                {`{"timestamp":"2026-01-02T03:04:05Z","request":` + body + `,"vendor_field":1},"response":{"object":"chat.completion","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}}`, "{" + others + `,"vendor_field":1}`},
		"a gateway's CSV":                {"timestamp,request_json\n" + inCSV("2026-01-02T03:04:05Z", body+`,"vendor_field":1}`), "{" + others + `,"vendor_field":1}`},
		"a gateway's CSV of embeddings":  {"timestamp,request_json,prompt_tokens\n" + inCSV("2026-01-02T03:04:05Z", `{"model":"m","input":"x","dimensions":8}`, "4"), ""},
		"a capture":                      {`{"captureData":{"endpointInput":{"data":` + quotedJSON(body+`,"vendor_field":1}`) + `,"encoding":"JSON"}},"eventMetadata":{"inferenceTime":"2026-01-02T03:04:05Z"}}`, "{" + others + `,"vendor_field":1}`},
		"a capture of TGI":               {`{"captureData":{"endpointInput":{"data":"{\"inputs\":\"x\",\"parameters\":{\"max_new_tokens\":8}}","encoding":"JSON"}},"eventMetadata":{"inferenceTime":"2026-01-02T03:04:05Z"}}`, ""},
		"LiteLLM's log":                  {`{"id":"r1","call_type":"acompletion","startTime":1767323045.678,"endTime":1767323047.1,"prompt_tokens":120,"completion_tokens":40,"model":"m","messages":[{"role":"user","content":"q"}],"model_parameters":{"stream":true,"user_api_key":"k","top_p":null,` + others + `}}`, "{" + others + "}"},
		"LiteLLM's table": {"request_id,call_type,startTime,endTime,prompt_tokens,completion_tokens,model,proxy_server_request\n" +
			inCSV("r1", "acompletion", "2026-01-02 03:04:05.678", "2026-01-02 03:04:07.1", "120", "40", "m", body+`,"metadata":{"user_api_key":"k"}}`), "{" + others + "}"},
		"bodies of another API": {`{"timestamp":"2026-01-02T03:04:05Z",` + anthropicAsked + "," + anthropicAnswer + "}", ""},
		"a log of text":         {`{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"user","content":"q"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, ""}, // whether it had a bound is not known
	} {
		all, _ := mustRead(t, c.in, Options{Bodies: true})
		if len(all) != 1 {
			t.Errorf("%s: %d entries", name, len(all))
			continue
		}
		got := all[0].Fields.Reveal()
		if !sameJSON(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if without, _ := mustRead(t, c.in, Options{}); without[0].Fields.Len() > 0 {
			t.Errorf("%s: kept though nobody asked", name)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y map[string]json.RawMessage
	if a == "" || b == "" {
		return a == b
	}
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
