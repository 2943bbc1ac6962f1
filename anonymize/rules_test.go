package anonymize_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// fullRow has a value in every column.
func fullRow(t *testing.T) trace.Request {
	t.Helper()
	var r trace.Request
	row := reflect.ValueOf(&r).Elem()
	for i := range row.NumField() {
		switch f := row.Field(i); f.Kind() {
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.String:
			f.SetString("x")
		case reflect.Int32, reflect.Int64:
			f.SetInt(1)
		default:
			t.Fatalf("a column of a kind that this test does not know: %v", f.Kind())
		}
	}
	return r
}

// filled lists the columns that have a value in a row.
func filled(r *trace.Request) (names []string) {
	row := reflect.ValueOf(r).Elem()
	for i := range row.NumField() {
		if !row.Field(i).IsZero() {
			name, _, _ := strings.Cut(row.Type().Field(i).Tag.Get("parquet"), ",")
			names = append(names, name)
		}
	}
	return names
}

// kept lists the columns that the rules of a card keep, in the order of the schema.
func kept(c anonymize.Card) (names []string) {
	for _, r := range c.Columns {
		if !slices.Contains(c.Dropped, r.Column) {
			names = append(names, r.Column)
		}
	}
	return names
}

// cards are one of each tier.
func cards(t *testing.T) map[string]anonymize.Card {
	t.Helper()
	_, internal := run(t, policy(t), chat("a", "u", 0, 2, 5))
	return map[string]anonymize.Card{anonymize.Internal: internal, anonymize.Partner: anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Partner}),
		anonymize.Public: anonymize.SessionsCard(dp.SessionStatement{Unit: "user"}, trace.Meta{Tier: anonymize.Public})}
}

// Every column of the schema has a rule for every tier, and a row leaves with
// values where the rules keep them and nowhere else. A tier that nobody knows
// keeps nothing.
func TestRulesAreForEveryColumn(t *testing.T) {
	var columns []string
	for _, path := range parquet.SchemaOf(new(trace.Request)).Columns() {
		columns = append(columns, path[0])
	}
	for tier, card := range cards(t) {
		var ruled []string
		for _, r := range card.Columns {
			ruled = append(ruled, r.Column)
			synthetic := strings.HasPrefix(r.Rule, "synthetic: ")
			if r.Rule == "" || strings.ContainsAny(r.Rule, "{}") || tier != anonymize.Internal && !synthetic && r.Rule != "dropped" {
				t.Errorf("tier %s: the rule of %s is %q", tier, r.Column, r.Rule)
			}
			if slices.Contains(card.Dropped, r.Column) != (r.Rule == "dropped") {
				t.Errorf("tier %s: %s is %q, and the list of what is dropped says otherwise", tier, r.Column, r.Rule)
			}
		}
		if !slices.Equal(ruled, columns) {
			t.Errorf("tier %s has rules for %v, want %v", tier, ruled, columns)
		}
		var out keep
		if _, err := anonymize.Enforce(tier, &out).Write([]trace.Request{fullRow(t)}); err != nil {
			t.Fatal(err)
		}
		if got, want := filled(&out[0]), kept(card); !slices.Equal(got, want) {
			t.Errorf("tier %s leaves %v, want %v", tier, got, want)
		}
	}
	var out keep
	if _, err := anonymize.Enforce("secret", &out).Write([]trace.Request{fullRow(t)}); err != nil || len(filled(&out[0])) > 0 {
		t.Errorf("an unknown tier leaves %v, %v", filled(&out[0]), err)
	}
}

// A card of a release of rows, as earlier versions made it, says what it is.
func TestFormerCard(t *testing.T) {
	card := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Partner, Rows: json.RawMessage(`{"k_share": 5}`)}
	text, hash, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := anonymize.ParseCard(text, hash)
	var words strings.Builder
	if err != nil || !again.Former() || again.WriteAnswer(&words, "old.parquet", 0) != nil || !strings.Contains(words.String(), "rows of real requests") {
		t.Errorf("%+v, %v: %s", again, err, words.String())
	}
}

// A card has what a release is judged by, in JSON and in words, in every tier.
func TestCardIsWhole(t *testing.T) {
	for tier, card := range cards(t) {
		card.Tool = "reprise test"
		text, hash, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := anonymize.ParseCard(text, hash)
		if err != nil || again.WP29 != card.WP29 || again.Tier != tier {
			t.Errorf("tier %s: read back as %+v, %v", tier, again, err)
		}
		if _, err := anonymize.ParseCard(text+" ", hash); err == nil {
			t.Errorf("tier %s: a changed card passes", tier)
		}
		for _, key := range []string{"schema", "tool", "tier", "unit_of_privacy", "block_id_key", "block_size_tokens", "time", "lengths", "columns",
			"dropped_columns", "wp29", "singling_out", "linkability", "inference", "residual_risks"} {
			if !strings.Contains(text, `"`+key+`"`) {
				t.Errorf("tier %s: the card has no %s", tier, key)
			}
		}
		var words strings.Builder
		if err := card.WriteText(&words, 0); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"reprise test", "What this is", "singling out", "linkability", "inference", "Remaining risks", "input_tokens"} {
			if !strings.Contains(words.String(), want) {
				t.Errorf("tier %s: the words have no %q", tier, want)
			}
		}
		for line := range strings.Lines(words.String()) {
			if n := len([]rune(line)); n > 81 {
				t.Errorf("tier %s: a line of %d characters: %s", tier, n, line)
			}
		}
	}
}
