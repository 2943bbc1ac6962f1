package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A recordedBody is a body as a source had it.
type recordedBody struct {
	words
	fields string // "" is not known
}

func (r recordedBody) Input(_ int64, _ *trace.Request, buf []byte) (string, []byte, []byte, error) {
	var fields []byte
	if r.fields != "" {
		fields = []byte(r.fields)
	}
	return result.APIChat, append(buf, `"messages":[{"role":"user","content":"q"}],"tools":[{"type":"function"}]`...), fields, nil
}

// sentBody is the body of a row's request, decoded.
func sentBody(t *testing.T, o Options, row trace.Request, p result.Prompter) map[string]any {
	t.Helper()
	o.URL, o.Model = "http://127.0.0.1:1", "m"
	h := endpoint(t, o)
	call, err := h.Prepare(0, 0, &row, p)
	if err != nil {
		t.Fatal(err)
	}
	c := call.(*httpCall)
	var body map[string]any
	if err := json.Unmarshal((*c.body)[c.at:], &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func extraOf(t *testing.T, text string) openai.Extra {
	t.Helper()
	e, err := openai.ParseExtra([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What a body had beside its input goes out as it was, and nothing else does but what the
// replay measures with, what was asked for on the command line, and the model.
func TestRecordedBodies(t *testing.T) {
	const all = `{"tool_choice":"required","response_format":{"type":"json_object"},"stop":["\n"],"max_tokens":77,"temperature":0.25,"top_p":0.9,"n":1,"logit_bias":null,"vendor":{"x":[1.50]}}`
	row := trace.Request{InputTokens: 9, OutputTokens: trace.Ptr[int32](5), MaxTokens: trace.Ptr[int32](77), Temperature: trace.Ptr[float32](0.25)}
	short := trace.Request{InputTokens: 9, OutputTokens: trace.Ptr[int32](5)}
	for name, c := range map[string]struct {
		o      Options
		fields string
		row    trace.Request
		want   string // beside model, messages, tools, stream and stream_options
	}{
		"all of it":                   {Options{}, all, row, all},
		"a bound beside the body":     {Options{}, `{"top_k":3}`, row, `{"top_k":3,"max_tokens":77}`},
		"a bound in place of another": {Options{}, `{"max_tokens":9,"n_predict":8}`, row, `{"max_tokens":77}`},
		"the same under another name": {Options{}, `{"max_completion_tokens":77}`, row, `{"max_completion_tokens":77}`},
		"no other member":             {Options{}, `{}`, short, `{}`},
		"an output of unknown length": {Options{}, `{"stop":"x"}`, trace.Request{InputTokens: 9}, `{"stop":"x"}`},
		"extra fields stand above":    {Options{Extra: extraOf(t, `{"max_tokens":8,"seed":1}`)}, `{"max_tokens":77,"top_p":1}`, row, `{"max_tokens":8,"seed":1,"top_p":1}`},
		"lengths that are forced":     {Options{ForceOutput: true}, `{"top_p":1,"max_tokens":9}`, row, `{"top_p":1,"max_tokens":5,"min_tokens":5,"ignore_eos":true}`},
		"an unknown body":             {Options{}, "", row, `{"max_tokens":77,"temperature":0.25}`},
		"an unknown body, no bound":   {Options{}, "", short, `{"max_tokens":5}`},
	} {
		body := sentBody(t, c.o, c.row, recordedBody{fields: c.fields})
		for _, kept := range []string{"messages", "tools", "model", "stream"} {
			if body[kept] == nil {
				t.Errorf("%s: no %s", name, kept)
			}
		}
		maps.DeleteFunc(body, func(k string, _ any) bool {
			return slices.Contains([]string{"messages", "tools", "model", "stream", "stream_options"}, k)
		})
		var want map[string]any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(body, want) {
			t.Errorf("%s: %v, want %v", name, body, want)
		}
	}
}

// A body that forbids ignore_eos does not have it, and no length is forced in another way.
func TestForbidsIgnoreEOS(t *testing.T) {
	row := trace.Request{InputTokens: 9, OutputTokens: trace.Ptr[int32](5)}
	for extra, want := range map[string]string{
		"{}": "5 5 true", `{"ignore_eos":false}`: "5 <nil> <nil>", `{"ignore_eos":null,"top_p":1}`: "5 <nil> <nil>", `{"ignore_eos":true}`: "5 5 true",
		`{"ignore_eos":false,"min_tokens":2}`: "5 2 <nil>",
	} {
		body := sentBody(t, Options{ForceOutput: true, Extra: extraOf(t, extra)}, row, words{})
		if got := fmt.Sprint(body["max_tokens"], " ", body["min_tokens"], " ", body["ignore_eos"]); got != want {
			t.Errorf("--extra-body %s: %s, want %s", extra, got, want)
		}
		if _, sent := body["ignore_eos"]; sent && want != "5 5 true" {
			t.Errorf("--extra-body %s: ignore_eos is sent", extra)
		}
	}
}
