package anonymize_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/token"
)

// one is a request of a model whose source says a count, unless it is 0.
func one(i int, model, content string, source int32) trace.Entry {
	e := trace.Entry{Time: at(i), Messages: []trace.Message{{Role: trace.User, Content: trace.NewText(content)}}, Model: trace.NewText(model)}
	if source > 0 {
		e.InputTokens = &source
	}
	return e
}

// The counts of each model stand under the name that it has in the rows.
func TestCountsByModel(t *testing.T) {
	src := []trace.Entry{one(0, "b", "Hello", 0), one(1, "qwen3", "Hello", 10), one(2, "b", "Hello", 2), one(3, "qwen3", "Hello Hello", 10), one(4, "", "Hello", 1)}
	p := policy(t)
	p.Template = mustTemplate(t, "auto")
	rows, card := run(t, p, src)
	want := []anonymize.ModelCount{
		{Model: "model-1", Template: "qwen3", Requests: 2, Counted: 19, Source: 20},
		{Model: "", Template: "none", Requests: 1, Counted: 1, Source: 1},
		{Model: "model-0", Template: "none", Requests: 1, Counted: 1, Source: 2},
	}
	if !reflect.DeepEqual(card.Totals.Models, want) {
		t.Errorf("%+v, want %+v", card.Totals.Models, want)
	}
	if want := map[string]int64{"qwen3": 2, "none": 3}; !reflect.DeepEqual(card.Totals.Templates, want) {
		t.Errorf("%v, want %v", card.Totals.Templates, want)
	}
	if rows[1].Model != "model-1" || rows[2].Model != "model-0" || card.Template != "auto" {
		t.Errorf("%s, %s, %s", rows[1].Model, rows[2].Model, card.Template)
	}
	p.KeepModel = true
	if _, card = run(t, p, src); card.Totals.Models[0].Model != "qwen3" {
		t.Errorf("%+v", card.Totals.Models)
	}
	for _, c := range []struct {
		counted, source int64
		apart           bool
	}{{1000, 1000, false}, {1010, 1000, false}, {1011, 1000, true}, {989, 1000, true}, {0, 0, false}, {1, 0, true}} {
		if m := (anonymize.ModelCount{Counted: c.counted, Source: c.source}); m.Apart() != c.apart {
			t.Errorf("%+v", c)
		}
	}
}

// Only so many models are told apart, and nothing of the others is lost.
func TestCountsOfManyModels(t *testing.T) {
	var src []trace.Entry
	for i := range 3 * anonymize.MaxModels {
		src = append(src, one(i, fmt.Sprint("m", i), "Hello", 2), one(i, fmt.Sprint("m", i%10), "Hello", 2))
	}
	_, card := run(t, policy(t), src)
	models := card.Totals.Models
	if len(models) != anonymize.MaxModels+1 || !models[0].Others || models[0].Requests != 2*anonymize.MaxModels {
		t.Fatalf("%d models, the first %+v", len(models), models[0])
	}
	var requests, counted int64
	for _, m := range models {
		requests, counted = requests+m.Requests, counted+m.Counted
	}
	if requests != int64(len(src)) || counted != card.Totals.TextInputComparable {
		t.Errorf("%d requests and %d tokens of %d and %d", requests, counted, len(src), card.Totals.TextInputComparable)
	}
}

// A chat that the template refuses is counted without it; any other error ends
// the import, and quotes nothing.
func TestRefusedChats(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jinja")
	source := `{% if messages[0].content == "hunter2" %}{{ raise_exception(messages[0].content) }}{% endif %}<{{ messages[0].content }}>`
	p := policy(t)
	for _, c := range []struct{ source, err string }{{source, ""}, {source + "{{ messages[0].content + 1 }}", "request 1 of the source: the chat template: line 1"}} {
		if err := os.WriteFile(file, []byte(c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if p.Template, err = token.OpenTemplateAny(file); err != nil {
			t.Fatal(err)
		}
		src := entries{one(0, "m", "Hello", 0), one(1, "m", "hunter2", 0)}
		var out keep
		card, err := anonymize.Run(t.Context(), p, &src, &out)
		switch {
		case c.err == "" && (err != nil || card.Totals.Refused != 1 || out[1].InputTokens != 2 || out[0].InputTokens != 3):
			t.Errorf("%v, %+v, %+v", err, card.Totals, out)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "Hello")):
			t.Errorf("%v, want %s", err, c.err)
		}
	}
}

// Definitions and calls of tools are tokens of the prompt under every template.
func TestToolsAreCounted(t *testing.T) {
	plain := one(0, "m", "Hello", 0)
	tools, calls := plain, plain
	tools.Tools = trace.NewText(`[{"type":"function","function":{"name":"f","description":"d"}}]`)
	calls.Messages = append(calls.Messages[:1:1], trace.Message{Role: trace.Assistant, Calls: trace.NewText(`[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`)})
	p := policy(t)
	for _, name := range token.TemplateNames() {
		p.Template = mustTemplate(t, name)
		var n [3]int32
		for i, e := range []trace.Entry{plain, tools, calls} {
			rows, _ := run(t, p, []trace.Entry{e})
			n[i] = rows[0].InputTokens
		}
		if n[1] < n[0]+10 || n[2] < n[0]+8 {
			t.Errorf("%s: %d tokens, %d with tools, %d with a call", name, n[0], n[1], n[2])
		}
	}
}

// A prompt that is no chat reaches the model as it is, whatever the template.
func TestTemplateIsForChats(t *testing.T) {
	p := policy(t)
	p.Template = mustTemplate(t, "qwen3")
	for kind, want := range map[string]int32{"chat": 9, "": 9, "responses": 9, "completion": 1, "embedding": 1} {
		e := one(0, "m", "Hello", 0)
		e.Kind = kind
		rows, card := run(t, p, []trace.Entry{e})
		if rows[0].InputTokens != want || (card.Totals.Templates["qwen3"] == 1) != (want > 1) {
			t.Errorf("%s: %d tokens, want %d; %v", kind, rows[0].InputTokens, want, card.Totals.Templates)
		}
	}
}
