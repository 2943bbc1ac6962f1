package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/longtest"
)

// withCard is a trace without rows whose card was changed, and hashed anew.
func withCard(t *testing.T, change func(c *anonymize.Card), replace ...string) *Case {
	t.Helper()
	m := caseOf(t, bug{}, traffic(20, 30, 200)).Output.Trace.Meta
	card, err := anonymize.ParseCard(m.Card, m.CardHash)
	if err != nil {
		t.Fatal(err)
	}
	change(&card)
	text, hash, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if len(replace) > 0 {
		text = strings.NewReplacer(replace...).Replace(text)
		sum := sha256.Sum256([]byte(text))
		hash = hex.EncodeToString(sum[:])
	}
	m.Card, m.CardHash, m.Tier = text, hash, card.Tier
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := trace.Create(path, func(trace.Writer[trace.Request]) (trace.Meta, error) { return m, nil }); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return &Case{Output: o}
}

// Each field of the source stands on the page with its fate, which is that of the
// column that it feeds in this tier, and with the reason.
func TestPageListsFieldsOfTheSource(t *testing.T) {
	c := withCard(t, func(c *anonymize.Card) {
		c.SourceFields = &anonymize.SourceFields{Format: "openai-log", Mapped: []string{"user"}, Dropped: 5, Kinds: map[string]int{"text": 3, "number": 2}, More: true}
	})
	p, _ := auditPage(t, c, "card")
	rows := sectionOf(t, p, "What became of each field of the source").Tables[0].Rows
	for _, want := range [][]string{
		{"usage.prompt_tokens or usage.input_tokens or response.usage.prompt_tokens or response.usage.input_tokens or prompt_tokens_count or input_tokens_count or prompt_tokens or input_tokens", "as it was", "input_tokens", "Exact: from the source"},
		{"temperature", "as it was", "temperature", "Kept."},
		{"messages", "changed", "kind, input_tokens, images, blocks", "Tokenised: counted into lengths and keyed block ids, the text itself is not in this file. Then by the rules"},
		{"session_id or conversation_id or session", "changed", "session, turn, parents", "session: Renumbered; "},
		{"response.content or response.text or response.type or response.tool_calls or response.function_call", "changed", "output_tokens, output_blocks", "Tokenised"},
		{"cache_salt", "changed", "blocks", "Part of the keyed block ids; not kept. All ids, renumbered"},
		{"the field that --map names for user", "changed", "user", "Renumbered"},
		{"at least 5 other fields (text 3, number 2)", "dropped", "none", "No column needs them"},
	} {
		if !slices.ContainsFunc(rows, func(row []string) bool {
			return slices.Equal(row[:3], want[:3]) && strings.HasPrefix(row[3], want[3])
		}) {
			t.Errorf("there is no row %q among\n%q", want, rows)
		}
	}
	if slices.ContainsFunc(rows, func(row []string) bool { return row[0] == "user" }) {
		t.Error("a field stands there in whose place --map names another")
	}
	house, _ := auditPage(t, withCard(t, func(c *anonymize.Card) {
		c.SourceFields = &anonymize.SourceFields{Format: "openai-log"}
	}), "card")
	rows = sectionOf(t, house, "What became of each field of the source").Tables[0].Rows
	if i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "temperature" }); i < 0 || rows[i][1] != "as it was" {
		t.Errorf("in the house: %q", rows)
	}
	if last := rows[len(rows)-1]; strings.Contains(last[0], "other") {
		t.Errorf("a source without other fields has %q", last)
	}
}

// Where no list can be shown the page says why.
func TestPageWithoutFields(t *testing.T) {
	for want, c := range map[string]*Case{
		"made of a trace that stood in Parquet already": withCard(t, func(*anonymize.Card) {}),
		"does not say in a way that this version knows": withCard(t, func(c *anonymize.Card) {
			c.SourceFields = &anonymize.SourceFields{Dropped: 2}
		}),
		"no noise would hide it": withCard(t, func(c *anonymize.Card) {
			*c = anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Public})
		}),
	} {
		p, html := auditPage(t, c, "card")
		if section := sectionOf(t, p, "What became of each field of the source"); len(section.Tables) > 0 || !strings.Contains(html, want) {
			t.Errorf("%q is not said: %+v", want, section)
		}
	}
}

// A card that names a field of the source which no table of a format has is
// caught, by whichever place it stands in and whatever words it is made of.
func TestCardsNameNoFieldsOfTheSource(t *testing.T) {
	longtest.Skip(t)
	fields := func(f anonymize.SourceFields) func(c *anonymize.Card) {
		return func(c *anonymize.Card) { c.SourceFields = &f }
	}
	for name, c := range map[string]struct {
		of   *Case
		want Status
	}{
		"known":           {withCard(t, fields(anonymize.SourceFields{Format: "jsonl", Mapped: []string{"user"}, Dropped: 1})), Pass},
		"counts alone":    {withCard(t, fields(anonymize.SourceFields{Dropped: 1, Kinds: map[string]int{"text": 1}})), Pass},
		"as a target":     {withCard(t, fields(anonymize.SourceFields{Format: "jsonl", Mapped: []string{"user_name"}})), Fail},
		"as a format":     {withCard(t, fields(anonymize.SourceFields{Format: "tenant log"})), Fail},
		"as a kind":       {withCard(t, fields(anonymize.SourceFields{Format: "mooncake", Kinds: map[string]int{"user": 1}})), Fail},
		"mapped by none":  {withCard(t, fields(anonymize.SourceFields{Format: "sharegpt", Mapped: []string{"user"}})), Fail},
		"under a new key": {withCard(t, fields(anonymize.SourceFields{Format: "mooncake"}), `"format":`, `"names": ["tenant"], "format":`), Fail},
		"in public": {withCard(t, func(c *anonymize.Card) {
			*c = anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Public})
			c.SourceFields = &anonymize.SourceFields{Format: "mooncake"}
		}), Fail},
	} {
		if f := found(t, c.of, "card")["card"]; f.Status != c.want {
			t.Errorf("%s: %s: %s", name, f.Status, f.Why)
		}
	}
	// Words that the tool never writes are caught once more.
	odd := withCard(t, fields(anonymize.SourceFields{Format: "jsonl", Mapped: []string{"zebra_tier_level"}}))
	if f := found(t, odd, "free-text")["free-text"]; f.Status != Fail || strings.Contains(f.Why, "zebra") {
		t.Errorf("free text: %s: %s", f.Status, f.Why)
	}
	whole := withCard(t, fields(anonymize.SourceFields{Format: "openai-log", Mapped: []string{"e2e_ms", "ttft_us", "salt", "replica"}, Dropped: 1, Kinds: map[string]int{"flag": 1}}))
	if f := found(t, whole, "free-text")["free-text"]; f.Status != Pass {
		t.Errorf("free text of a card as it is: %s: %s %v", f.Status, f.Why, f.Figures)
	}
}
