package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// Strings that are not the tool's own are found in whatever metadata and column,
// and never quoted.
func TestFreeText(t *testing.T) {
	longtest.Skip(t)
	good := trace.Meta{Tier: "partner", SourceFormat: "mooncake", TimeUnit: "ms", Tokenizer: "o200k_base", Template: "llama3",
		Timing: "made up: sessions poisson:2, service lognormal:5s,1, think lognormal:30s,1.5, seed 1", Sessions: "source"}
	row := trace.Request{Kind: "chat", Status: "ok", Model: "model-3", Category: "cold", Class: trace.Ptr("class-0"), Adapter: "other"}
	for name, c := range map[string]struct {
		change func(*trace.Meta, *trace.Request)
		where  string
	}{
		"nothing":     {func(*trace.Meta, *trace.Request) {}, ""},
		"model":       {func(_ *trace.Meta, r *trace.Request) { r.Model = "acme-secret-7b" }, "column model"},
		"label":       {func(_ *trace.Meta, r *trace.Request) { r.Model = "class-1" }, "column model"},
		"adapter":     {func(_ *trace.Meta, r *trace.Request) { r.Adapter = "lora-of-jane" }, "column adapter"},
		"class":       {func(_ *trace.Meta, r *trace.Request) { r.Class = trace.Ptr("premium") }, "column class"},
		"status":      {func(_ *trace.Meta, r *trace.Request) { r.Status = "exploded" }, "column status"},
		"finish":      {func(_ *trace.Meta, r *trace.Request) { r.FinishReason = "because" }, "column finish_reason"},
		"category":    {func(_ *trace.Meta, r *trace.Request) { r.Category = "warmish" }, "column category"},
		"replica":     {func(_ *trace.Meta, r *trace.Request) { r.Replica = trace.Ptr("node7.acme.internal") }, "column replica"},
		"format":      {func(m *trace.Meta, _ *trace.Request) { m.SourceFormat = "janes logs" }, "metadata reprise.source_format"},
		"timing":      {func(m *trace.Meta, _ *trace.Request) { m.Timing = "as jane said" }, "metadata reprise.timing"},
		"tokenizer":   {func(m *trace.Meta, _ *trace.Request) { m.Tokenizer = "/home/jane/tok.json" }, "metadata reprise.tokenizer"},
		"card":        {func(m *trace.Meta, _ *trace.Request) { m.Card = `{"tier":"partner","note":"für Jürgen"}` }, "metadata reprise.card"},
		"card's hash": {func(m *trace.Meta, _ *trace.Request) { m.CardHash = "jane" }, "metadata reprise.card_sha256"},
		"breakers":    {func(m *trace.Meta, _ *trace.Request) { m.Breakers = `{"text":"dear customer"}` }, "metadata reprise.breakers"},
	} {
		m, r := good, row
		c.change(&m, &r)
		path := filepath.Join(t.TempDir(), "t.parquet")
		err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
			_, err := w.Write([]trace.Request{r})
			return m, err
		})
		if err != nil {
			t.Fatal(err)
		}
		o, err := OpenOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		f := found(t, &Case{Output: o}, "free-text")["free-text"]
		where, _ := f.Figures["found_in"].([]string)
		if c.where == "" && f.Status != Pass || c.where != "" && (f.Status != Fail || !slices.Equal(where, []string{c.where})) {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
		if strings.Contains(f.Why, "jane") {
			t.Errorf("%s: the finding quotes", name)
		}
		o.Close()
	}
}

// A card is judged by its hash, and by the tier that the file says.
func TestCard(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *trace.Meta)
		want   Status
	}{
		"right":      {func(*trace.Meta) {}, Pass},
		"no tier":    {func(m *trace.Meta) { m.Tier = "" }, Fail},
		"no card":    {func(m *trace.Meta) { m.Card, m.CardHash = "", "" }, Fail},
		"other tier": {func(m *trace.Meta) { m.Tier = "partner" }, Fail},
		"changed":    {func(m *trace.Meta) { m.Card = strings.Replace(m.Card, "exact", "vague", 1) }, Fail},
		"of a specification": {func(m *trace.Meta) {
			m.Card, m.CardHash, m.Tier, m.SourceFormat = "", "", "public", "spec"
		}, Pass},
	} {
		house := caseOf(t, bug{}, traffic(9, 3, 10))
		m := house.Output.Trace.Meta
		c.change(&m)
		path := filepath.Join(t.TempDir(), "t.parquet")
		if err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) { return m, nil }); err != nil {
			t.Fatal(err)
		}
		o, err := OpenOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		if f := found(t, &Case{Output: o}, "card")["card"]; f.Status != c.want {
			t.Errorf("%s: %s: %s", name, f.Status, f.Why)
		}
		o.Close()
	}
	for text, want := range map[string]Status{`{"meta":{"tier":"partner"}}`: Pass, `{"a":{"tier":"public"},"b":{"tier":"internal"}}`: Pass, `{"x":1}`: Fail, `[1]`: Fail} {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := OpenOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		if f := found(t, &Case{Output: o}, "card")["card"]; f.Status != want {
			t.Errorf("%s: %s: %s", text, f.Status, f.Why)
		}
		if strings.Contains(text, "internal") && o.Tier() != "internal" {
			t.Errorf("%s is of tier %s", text, o.Tier())
		}
		o.Close()
	}
}
