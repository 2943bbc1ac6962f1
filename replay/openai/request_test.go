package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func ptr[T any](v T) *T { return &v }

// refBody makes what a request must decode to, through encoding/json alone.
func refBody(t testing.TB, r *Request) any {
	body := map[string]any{"model": r.Model}
	switch {
	case r.Messages != nil:
		list := []any{}
		for _, m := range r.Messages {
			var content any
			if m.Content != nil {
				content = string(m.Content)
			}
			list = append(list, map[string]any{"role": m.Role, "content": content})
		}
		body["messages"] = list
	case r.PromptIDs != nil:
		body["prompt"] = r.PromptIDs
	default:
		body["prompt"] = string(r.Prompt)
	}
	if r.Stream {
		body["stream"] = true
		options := map[string]any{}
		if r.IncludeUsage {
			options["include_usage"] = true
		}
		if r.ContinuousUsage {
			options["continuous_usage_stats"] = true
		}
		if len(options) > 0 {
			body["stream_options"] = options
		}
	}
	if r.IgnoreEOS {
		body["ignore_eos"] = true
	}
	for name, v := range map[string]any{"max_tokens": r.MaxTokens, "min_tokens": r.MinTokens, "temperature": r.Temperature, "seed": r.Seed} {
		if !reflect.ValueOf(v).IsNil() {
			body[name] = v
		}
	}
	for name, v := range r.Extra.fields {
		body[name] = v
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

func parse(t testing.TB, text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %.200q", err, text)
	}
	return normal(v)
}

// normal makes numbers comparable that are written differently.
func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	}
	return v
}

// randomText has all that an encoder can trip over, long runs of plain text included.
func randomText(r *rand.Rand) []byte {
	pieces := []string{"plain text of some length, longer than a word of eight bytes", "a", `"`, `\`, "\n", "\r", "\t", "\x00", "\x1f", "\x7f", "<&>", "é", "中文", "😀", "\u2028", "\ufffd", "\xff", "\xc3", "\xed\xa0\x80", "\xf0\x9f"}
	text := []byte{}
	for range r.IntN(12) {
		text = append(text, pieces[r.IntN(len(pieces))]...)
	}
	return text
}

func randomRequest(t testing.TB, r *rand.Rand) *Request {
	req := &Request{Model: string(bytes.ToValidUTF8(randomText(r), nil)), Stream: r.IntN(2) == 0, IgnoreEOS: r.IntN(2) == 0}
	if req.Stream {
		req.IncludeUsage, req.ContinuousUsage = r.IntN(2) == 0, r.IntN(2) == 0
	}
	switch r.IntN(3) {
	case 0:
		for range 1 + r.IntN(4) {
			m := Message{Role: "user", Content: randomText(r)}
			if r.IntN(5) == 0 {
				m.Content = nil
			}
			req.Messages = append(req.Messages, m)
		}
	case 1:
		for range 1 + r.IntN(20) {
			req.PromptIDs = append(req.PromptIDs, r.Uint32())
		}
	default:
		req.Prompt = randomText(r)
	}
	maybe := func(f func()) {
		if r.IntN(2) == 0 {
			f()
		}
	}
	maybe(func() { req.MaxTokens = ptr(r.IntN(1000)) })
	maybe(func() { req.MinTokens = ptr(r.IntN(1000)) })
	maybe(func() { req.Temperature = ptr(math.Float64frombits(r.Uint64()>>2) * 1e-3) })
	maybe(func() { req.Seed = ptr(r.Int64() - r.Int64()) })
	maybe(func() {
		extra, err := ParseExtra([]byte(`{"top_p": 0.5, "cache_salt": "a\"b", "nested": {"a": [1, 2]}, "é": null}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Extra = extra
	})
	return req
}

func TestAppendRequestEqualsEncodingJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		req := randomRequest(t, r)
		text := AppendRequest([]byte("before"), req)
		if !bytes.HasPrefix(text, []byte("before")) {
			t.Fatal("dst was overwritten")
		}
		if got, want := parse(t, text[len("before"):]), refBody(t, req); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
		}
	}
}

// The escaper equals encoding/json at every place of a word of eight bytes.
func TestAppendStringEveryByte(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			text := bytes.Repeat([]byte{'x'}, 17)
			text[at] = byte(c)
			var got string
			if err := json.Unmarshal(appendText(nil, text), &got); err != nil {
				t.Fatalf("byte %#x at %d: %v", c, at, err)
			}
			ref, _ := json.Marshal(string(text))
			var want string
			json.Unmarshal(ref, &want)
			if got != want || !bytes.Equal(appendText(nil, text), appendString(nil, string(text))) {
				t.Fatalf("byte %#x at %d: %q, want %q", c, at, got, want)
			}
		}
	}
}

func TestRequestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		req := randomRequest(t, r)
		for i := range req.Messages { // invalid UTF-8 does not survive, by definition
			if m := &req.Messages[i]; m.Content != nil {
				m.Content = append([]byte{}, bytes.ToValidUTF8(m.Content, nil)...)
			}
		}
		if req.Prompt != nil {
			req.Prompt = append([]byte{}, bytes.ToValidUTF8(req.Prompt, nil)...)
		}
		text := AppendRequest(nil, req)
		got, err := DecodeRequest(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		// Null counts as absent.
		if want := bytes.Replace(req.Extra.encoded, []byte(`,"é":null`), nil, 1); !bytes.Equal(got.Extra.encoded, want) {
			t.Fatalf("extra %s, want %s", got.Extra.encoded, want)
		}
		got.Extra, req.Extra = Extra{}, Extra{}
		if !reflect.DeepEqual(got, req) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, req)
		}
	}
}

func TestAppendRequestDetails(t *testing.T) {
	extra, err := ParseExtra([]byte(`{"temperature": 0.2, "model": "mine", "max_tokens": null}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		req  Request
		want string
	}{
		{"extra fields replace ours", Request{Model: "m", Temperature: ptr(1.0), MaxTokens: ptr(5), Seed: ptr(int64(1)), Extra: extra},
			`{"prompt":"","seed":1,"max_tokens":null,"model":"mine","temperature":0.2}`},
		{"usage only in streams", Request{IncludeUsage: true}, `{"model":"","prompt":""}`},
		{"no ids is not no prompt", Request{PromptIDs: []uint32{}}, `{"model":"","prompt":[]}`},
		{"no messages is a chat", Request{Messages: []Message{}}, `{"model":"","messages":[]}`},
		{"null content, empty content", Request{Messages: []Message{{Role: "a"}, {Role: "b", Content: []byte{}}}},
			`{"model":"","messages":[{"role":"a","content":null},{"role":"b","content":""}]}`},
		{"not a number", Request{Temperature: ptr(math.NaN())}, `{"model":"","prompt":"","temperature":null}`},
		{"zeros are sent", Request{Temperature: ptr(0.0), Seed: ptr(int64(0)), MaxTokens: ptr(0)}, `{"model":"","prompt":"","max_tokens":0,"temperature":0,"seed":0}`},
	} {
		if got := string(AppendRequest(nil, &row.req)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

func TestParseExtra(t *testing.T) {
	for _, row := range []struct{ object, want string }{
		{`{}`, ""},
		{`{"b":1, "a" : [ 1 , "x y" ]}`, `"a":[1,"x y"],"b":1`},
		{`{"stream":false}`, `error: extra request fields: "stream" is set by the replay itself`},
		{`{"messages":["secret"]}`, `error: extra request fields: "messages" is set by the replay itself`},
		{`["secret"]`, `error: extra request fields: must be a JSON object`},
		{`{"a":secret}`, `error: extra request fields: not valid JSON at byte 6`},
		{``, `error: extra request fields: not valid JSON at byte 0`},
	} {
		extra, err := ParseExtra([]byte(row.object))
		got := string(extra.encoded)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != row.want {
			t.Errorf("%s: got %s, want %s", row.object, got, row.want)
		}
	}
	extra, _ := ParseExtra([]byte(`{"a":1}`))
	if v, ok := extra.Get("a"); !ok || string(v) != "1" {
		t.Errorf("a: %s, %v", v, ok)
	}
	if _, ok := extra.Get("b"); ok {
		t.Error("b is not there")
	}
}

func TestDecodeRequest(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       Request
	}{
		{"content as text", `{"model":"m","messages":[{"role":"user","content":"a\nb"}]}`, Request{Model: "m", Messages: []Message{{Role: "user", Content: []byte("a\nb")}}}},
		{"content as parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}]}`, Request{Messages: []Message{{Role: "user", Content: []byte("ab")}}}},
		{"content null, other members", `{"messages":[{"role":"assistant","content":null,"tool_calls":[{}]},{"role":"tool","tool_call_id":"x","content":"r"}]}`, Request{Messages: []Message{{Role: "assistant", Content: nil}, {Role: "tool", Content: []byte("r")}}}},
		{"prompt as text", `{"prompt":"p"}`, Request{Prompt: []byte("p")}},
		{"prompt as a list of one text", `{"prompt":[ "p" ]}`, Request{Prompt: []byte("p")}},
		{"prompt as ids", `{"prompt":[1,2,4294967295]}`, Request{PromptIDs: []uint32{1, 2, math.MaxUint32}}},
		{"null is absent", `{"prompt":"p","messages":null,"max_tokens":null,"seed":null,"x":null,"stream_options":null}`, Request{Prompt: []byte("p")}},
		{"options", `{"prompt":"p","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":null,"x":[]},"max_tokens":5,"min_tokens":2,"ignore_eos":true,"temperature":0,"seed":-3}`,
			Request{Prompt: []byte("p"), Stream: true, IncludeUsage: true, MaxTokens: ptr(5), MinTokens: ptr(2), IgnoreEOS: true, Temperature: ptr(0.0), Seed: ptr(int64(-3))}},
		{"new name of max_tokens", `{"prompt":"p","max_completion_tokens":7}`, Request{Prompt: []byte("p"), MaxTokens: ptr(7)}},
		{"the last of two counts", `{"prompt":[1],"prompt":"p"}`, Request{Prompt: []byte("p")}},
		{"invalid UTF-8", "{\"prompt\":\"a\xffb\"}", Request{Prompt: []byte("a\ufffdb")}},
	} {
		got, err := DecodeRequest(iotest.OneByteReader(strings.NewReader(row.body)), 1<<20)
		if err != nil || !reflect.DeepEqual(*got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", row.name, got, err, row.want)
		}
	}
	got, err := DecodeRequest(strings.NewReader(`{"prompt":"p","cache_salt":"s","n":2}`), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if salt, _ := got.Extra.Get("cache_salt"); string(salt) != `"s"` {
		t.Errorf("cache_salt %s", salt)
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for _, row := range []struct{ body, want string }{
		{``, "request body: byte 0: not valid JSON"},
		{`{"prompt":"SECRET"`, "request body: byte 18: not valid JSON"},
		{`{"prompt":"p"} SECRET`, "request body: byte 16: not valid JSON"},
		{`["SECRET"]`, "request body: byte 0: must be a JSON object"},
		{`{}`, "request body: byte 2: must have either messages or a prompt"},
		{`{"prompt":"SECRET","messages":[{"role":"user","content":"SECRET"}]}`, "request body: byte 67: must have either messages or a prompt"},
		{`{"model":7,"prompt":"SECRET"}`, "request body: byte 9: model: must be a string"},
		{`{"messages":"SECRET"}`, "request body: byte 12: messages: must be a list"},
		{`{"messages":[]}`, "request body: byte 14: messages: must not be empty"},
		{`{"messages":["SECRET"]}`, "request body: byte 13: messages[0]: must be an object"},
		{`{"messages":[{"role":"user","content":"a"},{"content":"SECRET"}]}`, "request body: byte 63: messages[1].role: is missing"},
		{`{"messages":[{"role":"user","content":{"SECRET":1}}]}`, "request body: byte 38: messages[0].content: must be a string or a list of text parts"},
		{`{"messages":[{"role":"user","content":["SECRET"]}]}`, "request body: byte 39: messages[0].content[0]: must be an object"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"SECRET"}]}]}`, "request body: byte 80: messages[0].content[0].image_url: is missing"},
		{`{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "request body: byte 61: messages[0].content[0].type: only parts of type text and image_url are supported"},
		{`{"prompt":{"a":"SECRET"}}`, "request body: byte 10: prompt: must be a string, a list of one string, or a list of token ids"},
		{`{"prompt":[]}`, "request body: byte 12: prompt: must not be empty"},
		{`{"prompt":["a","SECRET"]}`, "request body: byte 15: prompt: only one prompt in a request is supported"},
		{`{"prompt":[1,"SECRET"]}`, "request body: byte 13: prompt: only one prompt in a request is supported"},
		{`{"prompt":[1,-5]}`, "request body: byte 15: prompt[1]: must be a token id"},
		{`{"prompt":[[1,2]]}`, "request body: byte 16: prompt[0]: must be a token id"},
		{`{"prompt":[4294967296]}`, "request body: byte 21: prompt[0]: must be a token id"},
		{`{"prompt":"p","max_tokens":-1}`, "request body: byte 29: max_tokens: must be a whole number, not negative"},
		{`{"prompt":"p","max_tokens":1.5}`, "request body: byte 30: max_tokens: must be a whole number, not negative"},
		{`{"prompt":"p","temperature":"SECRET"}`, "request body: byte 36: temperature: must be a number"},
		{`{"prompt":"p","seed":1e400}`, "request body: byte 26: seed: must be a whole number of at most 64 bits"},
		{`{"prompt":"p","stream":"SECRET"}`, "request body: byte 31: stream: must be true or false"},
		{`{"prompt":"p","stream_options":"SECRET"}`, "request body: byte 31: stream_options: must be an object"},
		{`{"prompt":"p","stream_options":{"include_usage":"SECRET"}}`, "request body: byte 56: stream_options.include_usage: must be true or false"},
	} {
		req, err := DecodeRequest(strings.NewReader(row.body), 1<<20)
		if _, ok := errors.AsType[*badRequest](err); !ok || req != nil || err.Error() != row.want {
			t.Errorf("%s:\ngot  %v\nwant %s", row.body, err, row.want)
		}
	}
	body := `{"prompt":"p"}`
	if _, err := DecodeRequest(strings.NewReader(body), int64(len(body)-1)); err != ErrTooLarge {
		t.Errorf("too large: %v", err)
	}
	broken := errors.New("broken")
	if _, err := DecodeRequest(iotest.ErrReader(broken), 1<<20); !errors.Is(err, broken) {
		t.Errorf("broken reader: %v", err)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}]}`,
		`{"prompt":[1,2,3],"max_tokens":5,"seed":1,"temperature":0.5,"top_p":1}`, `{"prompt":["p"]}`, `{"prompt":"\ud800"}`, "{\"prompt\":\"p\",\"\x80b\":1,\"\u01c9a\":2,\"\xfe\":3}", `[`, `{"prompt":1e5}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := DecodeRequest(bytes.NewReader(body), 1<<16)
		if (req == nil) == (err == nil) {
			t.Fatalf("%v, %v", req, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted invalid JSON: %q", body)
		}
		if !req.Stream {
			req.IncludeUsage, req.ContinuousUsage = false, false // not written
		}
		text := AppendRequest(nil, req)
		again, err := DecodeRequest(bytes.NewReader(text), 1<<20)
		if err != nil {
			t.Fatalf("%q\nwritten as %q: %v", body, text, err)
		}
		if twice := AppendRequest(nil, again); !bytes.Equal(text, twice) {
			t.Fatalf("%q\nthen %q", text, twice)
		}
	})
}

// largePrompt is 500 KB of English with a line end for every line and some quotes.
var largePrompt = bytes.Repeat([]byte("The quick brown fox jumps over the \"lazy\" dog, and the benchmark goes on for a while.\n"), 500_000/87)

func BenchmarkAppendRequest(b *testing.B) {
	ids := make([]uint32, 100_000)
	for i := range ids {
		ids[i] = uint32(i * 2)
	}
	for _, row := range []struct {
		name string
		req  Request
	}{
		{"text-500KB", Request{Model: "m", Stream: true, Messages: []Message{{Role: "user", Content: largePrompt}}}},
		{"chinese-500KB", Request{Model: "m", Stream: true, Prompt: bytes.Repeat([]byte("中文的提示文本"), 500_000/21)}},
		{"ids-100k", Request{Model: "m", Stream: true, PromptIDs: ids}},
	} {
		b.Run(row.name, func(b *testing.B) {
			dst := AppendRequest(nil, &row.req)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendRequest(dst[:0], &row.req)
			}
		})
	}
	b.Run("text-500KB-encoding/json", func(b *testing.B) {
		text := string(largePrompt)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}})
		}
	})
}

// Images follow the text of a message, as a list of parts, and are read as they were
// written.
func TestImages(t *testing.T) {
	req := Request{Model: "m", Messages: []Message{{Role: "user", Content: []byte("a\"b"), Images: [][]byte{[]byte("data:image/png;base64,AA=="), []byte("data:x")}}}}
	text := AppendRequest(nil, &req)
	want := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a\"b"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"data:x"}}]}]}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
	again, err := DecodeRequest(bytes.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Messages, req.Messages) {
		t.Errorf("%q", again.Messages)
	}
}
