package openai

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func randomChunk(r *rand.Rand) *Chunk {
	text := func() string { return string(randomText(r)) }
	maybe := func() *string {
		if r.IntN(2) == 0 {
			return nil
		}
		return ptr(text())
	}
	delta := func() *Delta {
		d := &Delta{Role: []string{"", "assistant"}[r.IntN(2)], Content: maybe(), ReasoningContent: maybe()}
		for range r.IntN(3) {
			d.ToolCalls = append(d.ToolCalls, ToolCall{Index: r.IntN(3), ID: text(), Type: text(), Function: Function{maybe(), text()}})
		}
		return d
	}
	c := &Chunk{ID: text(), Object: ObjectChatChunk, Created: r.Int64(), Model: text(), Choices: []Choice{}}
	for range r.IntN(3) {
		choice := Choice{Index: r.IntN(4), Text: maybe(), FinishReason: maybe()}
		switch r.IntN(3) {
		case 0:
			choice.Delta = delta()
		case 1:
			choice.Message = delta()
		}
		c.Choices = append(c.Choices, choice)
	}
	if r.IntN(2) == 0 {
		c.Usage = &Usage{PromptTokens: r.IntN(9), CompletionTokens: r.IntN(9), TotalTokens: r.IntN(9)}
		if r.IntN(2) == 0 {
			c.Usage.PromptTokensDetails = &PromptTokensDetails{CachedTokens: r.IntN(9)}
		}
	}
	return c
}

func TestAppendChunkEqualsEncodingJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		c := randomChunk(r)
		ref, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendChunk(nil, c); !reflect.DeepEqual(parse(t, got), parse(t, ref)) {
			t.Fatalf("got  %s\nwant %s", got, ref)
		}
	}
}

func TestAppendError(t *testing.T) {
	for _, row := range []struct {
		code any
		want string
	}{
		{400, `{"error":{"message":"m","type":"t","param":"p","code":400}}`},
		{"c", `{"error":{"message":"m","type":"t","param":"p","code":"c"}}`},
		{nil, `{"error":{"message":"m","type":"t","param":"p","code":null}}`},
		{make(chan int), `{"error":{"message":"m","type":"t","param":"p","code":null}}`},
	} {
		if got := string(AppendError(nil, ErrorDetail{"m", "t", ptr("p"), row.code})); got != row.want {
			t.Errorf("%v: %s", row.code, got)
		}
	}
}

// What any framing writes, the Scanner reads.
func TestFramingRoundTrip(t *testing.T) {
	chunk := &Chunk{Choices: []Choice{{Text: ptr("a\nb")}}}
	for _, f := range []Framing{{}, {EOL: "\r\n"}, {EOL: "\r"}, {NoSpace: true}, {"\r\n", true}} {
		var wire []byte
		wire = f.AppendComment(wire, "")
		wire = f.AppendComment(wire, "ping")
		wire = f.AppendChunk(wire, chunk)
		wire = f.AppendEvent(wire, []byte("two\nlines"))
		wire = f.AppendEvent(wire, nil)
		wire = f.AppendDone(wire)
		got, _ := show(NewScanner(strings.NewReader(string(wire)), noClock, 0))
		ping := "# ping"
		if f.NoSpace {
			ping = "#ping"
		}
		want := []string{"#", ping, "|" + string(AppendChunk(nil, chunk)), "|two\nlines", "|", "|[DONE]"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", f, got, want)
		}
	}
	if got := string(Framing{}.AppendDone(nil)); got != "data: [DONE]\n\n" {
		t.Errorf("%q", got)
	}
}
