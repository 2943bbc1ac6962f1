package openai

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"reprise/trace/usage"
)

// refChunk is a chunk as encoding/json sees it: the oracle of the hand-written scan.
type refChunk struct {
	ID      any `json:"id"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   any   `json:"content"`
			Reasoning any   `json:"reasoning_content"`
			ToolCalls []any `json:"tool_calls"`
		} `json:"delta"`
		Text   any     `json:"text"`
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// gen writes random JSON with the members that matter among others that do not, in any
// order, with white space anywhere.
type gen struct {
	*rand.Rand
	b bytes.Buffer
}

func (g *gen) space() {
	for g.IntN(4) == 0 {
		g.b.WriteByte(" \t\n\r"[g.IntN(4)])
	}
}

func (g *gen) str() {
	pieces := []string{"", "a", "é", "😀", `"`, `\`, "\n", "\x01", "{", "}", "[", ",", ":", "\u2028", "choices"}
	var s strings.Builder
	for range g.IntN(4) {
		s.WriteString(pieces[g.IntN(len(pieces))])
	}
	text, _ := json.Marshal(s.String())
	if g.IntN(2) == 0 {
		text = appendString(nil, s.String())
	}
	g.b.Write(text)
}

func (g *gen) oneOf(makers ...func()) { makers[g.IntN(len(makers))]() }
func (g *gen) raw(s string) func()    { return func() { g.b.WriteString(s) } }
func (g *gen) number()                { g.b.WriteString(strconv.Itoa(g.IntN(5))) }

// object writes each member with probability 2/3, and strangers between them.
func (g *gen) object(members map[string]func()) {
	names := make([]string, 0, len(members))
	for name := range members {
		if g.IntN(3) > 0 {
			names = append(names, name)
		}
	}
	for i := range g.IntN(3) {
		names = append(names, "stranger"+strconv.Itoa(i))
	}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	g.b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			g.b.WriteByte(',')
		}
		g.space()
		g.b.WriteString(strconv.Quote(name))
		g.space()
		g.b.WriteByte(':')
		g.space()
		if write := members[name]; write != nil {
			write()
		} else {
			g.oneOf(g.str, g.number, g.raw("null"), g.raw("true"), g.raw("-1.5e+3"), g.raw(`[]`), g.raw(`[{"choices":[1,"]"]} , {}]`), g.raw(`{"usage":{"prompt_tokens":9}}`))
		}
		g.space()
	}
	g.b.WriteByte('}')
}

func (g *gen) choice() {
	text := func() { g.oneOf(g.str, g.str, g.raw("null")) }
	g.object(map[string]func(){
		"index":         g.number,
		"text":          text,
		"finish_reason": func() { g.oneOf(g.raw("null"), g.raw(`"stop"`)) },
		"delta": func() {
			g.object(map[string]func(){
				"role": g.raw(`"assistant"`), "content": text, "reasoning_content": text,
				"tool_calls": func() { g.oneOf(g.raw("null"), g.raw("[]"), g.raw(`[{"index":0}]`)) },
			})
		},
	})
}

func (g *gen) chunk() []byte {
	g.b.Reset()
	g.object(map[string]func(){
		"id": g.str,
		"choices": func() {
			g.b.WriteByte('[')
			for i := range g.IntN(4) {
				if i > 0 {
					g.b.WriteByte(',')
				}
				g.space()
				g.choice()
				g.space()
			}
			g.b.WriteByte(']')
		},
		"usage": func() {
			g.oneOf(g.raw("null"), func() {
				g.object(map[string]func(){
					"prompt_tokens": g.number, "completion_tokens": g.number,
					"prompt_tokens_details": func() {
						g.oneOf(g.raw("null"), func() { g.object(map[string]func(){"cached_tokens": g.number}) })
					},
				})
			})
		},
	})
	return g.b.Bytes()
}

func asText(v any) string { s, _ := v.(string); return s }

func TestChunkViewEqualsEncodingJSON(t *testing.T) {
	g := &gen{Rand: rand.New(rand.NewPCG(1, 2))}
	var v chunkView
	content := 0
	for range 20_000 {
		data := g.chunk()
		var want refChunk
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("generator: %v: %s", err, data)
		}
		if !v.read(data) || v.err != nil || len(v.choices) != len(want.Choices) || v.hasUsage != (want.Usage != nil) {
			t.Fatalf("%s\nread as %+v", data, v)
		}
		if got := string(appendUnquoted(nil, v.id)); got != asText(want.ID) {
			t.Fatalf("%s\nid %q", data, got)
		}
		hasContent := false
		for i, c := range want.Choices {
			got := v.choices[i]
			d := c.Delta
			hasText := asText(d.Content) != "" || asText(c.Text) != "" || len(d.ToolCalls) > 0
			hasContent = hasContent || hasText || asText(d.Reasoning) != ""
			if got.index != c.Index || got.content != hasText || (got.finish != nil) != (c.Finish != nil) ||
				string(appendUnquoted(nil, got.reasoning)) != asText(d.Reasoning) {
				t.Fatalf("%s\nchoice %d: %+v", data, i, got)
			}
		}
		if v.hasContent != hasContent {
			t.Fatalf("%s\ncontent %v", data, v.hasContent)
		}
		if hasContent {
			content++
		}
		if u := want.Usage; u != nil {
			hasCached := u.Details != nil && u.Details.Cached != nil
			input, _ := v.counts.Get(usage.Input)
			output, _ := v.counts.Get(usage.Output)
			cached, told := v.counts.Get(usage.Cached)
			if int(input) != u.Prompt || int(output) != u.Completion || told != hasCached || hasCached && int(cached) != *u.Details.Cached {
				t.Fatalf("%s\nusage %+v", data, v)
			}
		}
	}
	if content < 5000 {
		t.Errorf("only %d chunks with content: the generator is weak", content)
	}
}

// FuzzCursor: on valid JSON the cursor skips exactly one value and unquotes what
// encoding/json does; on the rest it stays in bounds and ends.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"\ud83d\ude00\u00e9\ud800x\\"}],"c":null}`, `"\u12"`, `[`, `"\`, "\"\xff\"", `{"a":}`, ` [ ] `, `-1e9`, `{"a" 1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := cursor{b: data}
		raw := c.value()
		new(chunkView).read(data)
		new(StreamError).describe(data)
		var want any
		if json.Unmarshal(data, &want) != nil {
			appendUnquoted(nil, jsonString{data, true})
			return
		}
		if c.bad || c.peek() != 0 || !bytes.Equal(raw, bytes.Trim(data, " \t\r\n")) {
			t.Fatalf("%q: value %q, bad %v", data, raw, c.bad)
		}
		if s, ok := want.(string); ok {
			c := cursor{b: data}
			if got := string(appendUnquoted(nil, c.str())); got != s {
				t.Fatalf("%q: got %q, want %q", data, got, s)
			}
		}
	})
}
