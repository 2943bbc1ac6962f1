package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// What the check says of an output that names its tier or does not, and of its card.
func TestCardFindings(t *testing.T) {
	carded := func(c anonymize.Card, replace ...string) map[string]string {
		text, _, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer(replace...).Replace(text)
		sum := sha256.Sum256([]byte(text))
		return map[string]string{"tier": c.Tier, "card": text, "card_sha256": hex.EncodeToString(sum[:]), "digest": "sha256:1"}
	}
	with := func(m map[string]string, key, value string) map[string]string {
		m = maps.Clone(m)
		m[key] = value
		return m
	}
	house := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Internal}
	fields := func(f anonymize.SourceFields) map[string]string {
		c := house
		c.SourceFields = &f
		return carded(c)
	}
	former := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Public, FormerPublic: &anonymize.FormerStatement{CaptureNS: 1}}
	public := anonymize.SessionsCard(dp.SessionStatement{Unit: "user", CaptureNS: 1}, trace.Meta{Tier: anonymize.Public})
	formerly := inconclusive(nil, "it is drawn from the model of an earlier version, whose counts this one does not make: release the source again")
	told := public
	told.SourceFields = &anonymize.SourceFields{}
	ok := func(tier string) Finding { return passed(nil, "tier %s, and the card matches its hash", tier) }
	for name, c := range map[string]struct {
		o    *Output
		want Finding
	}{
		"other":        {&Output{Kind: kindOther}, inconclusive(nil, "a file of no kind of ours cannot say of what tier it is")},
		"no tier":      {&Output{Kind: kindJSON}, failed(nil, "the output does not say of what tier it is")},
		"no word":      {&Output{Kind: kindPage, Meta: map[string]string{"tier": "Of Jane"}}, failed(nil, "the output does not say of what tier it is")},
		"a document":   {&Output{Kind: kindJSON, Meta: map[string]string{"tier": "partner"}}, passed(nil, "tier partner; JSON documents carry no card")},
		"a page":       {&Output{Kind: kindPage, Meta: map[string]string{"tier": "public"}}, passed(nil, "tier public; pages carry no card")},
		"another file": {&Output{Kind: kindOther, Meta: map[string]string{"tier": "public"}}, passed(nil, "tier public; other files carry no card")},
		"results":      {&Output{Kind: "results", Parquet: new(parquet.File), Meta: map[string]string{"tier": "public", "run": "{}"}}, passed(nil, "tier public; results carry no card")},
		"a specification": {&Output{Kind: kindTrace, Parquet: new(parquet.File), Meta: map[string]string{"tier": "public", "source_format": "spec"}},
			passed(nil, "tier public, made of a specification and of no source")},
		"a specification in the house": {&Output{Kind: kindTrace, Parquet: new(parquet.File), Meta: map[string]string{"tier": "internal", "source_format": "spec"}},
			failed(nil, "the output says tier internal and carries no privacy card")},
		"no card":                  {&Output{Kind: kindTrace, Parquet: new(parquet.File), Meta: map[string]string{"tier": "public"}}, failed(nil, "the output says tier public and carries no privacy card")},
		"no digest":                {&Output{Kind: kindTrace, Trace: new(trace.Trace), Meta: with(carded(house), "digest", "")}, failed(nil, "the trace does not name the digest of its rows")},
		"of no rows":               {&Output{Kind: "model", Meta: with(carded(house), "digest", "")}, ok("internal")},
		"a trace":                  {&Output{Kind: kindTrace, Trace: new(trace.Trace), Meta: carded(house)}, ok("internal")},
		"its hash":                 {&Output{Meta: with(carded(house), "card_sha256", "00")}, failed(nil, "the privacy card does not match its hash: the file was changed")},
		"its tier":                 {&Output{Meta: with(carded(house), "tier", "partner")}, failed(nil, "the output says tier partner, and its card another")},
		"no JSON":                  {&Output{Meta: carded(house, "{", "[")}, failed(nil, "the output says tier internal, and its card another")},
		"its schema":               {&Output{Meta: carded(house, "card/1", "card/0")}, failed(nil, "the privacy card does not have the schema card/1")},
		"public":                   {&Output{Meta: carded(public)}, ok("public")},
		"public, formerly":         {&Output{Meta: carded(former)}, formerly},
		"public of another layout": {&Output{Meta: carded(former, "card/1", "statement/1")}, formerly},
		"public without a window": {&Output{Meta: carded(former, `"capture_ns": 1`, `"capture_ns": 0`)},
			failed(nil, "its times count from the first request of the source, which no noise hides: the card names no declared capture window. Import the source anew with --capture-begin and --capture-end, and release that")},
		"public that tells of fields": {&Output{Meta: carded(told)}, failed(nil, "the card of a release tells of the fields of the source")},
		"rows of an earlier version": {&Output{Meta: carded(anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Partner, Rows: json.RawMessage(`{"k_share": 5}`)})},
			failed(nil, "its rows are requests of the source, made coarser by an earlier version: a few that are known single out many of its sessions. No version makes or judges such releases any more. Make a new one of the source: reprise anonymize TRACE -o OUTPUT")},
		"a key of its own":             {&Output{Meta: carded(house, `"schema"`, `"jane": 1, "schema"`)}, failed(nil, "the privacy card holds what this version of the tool does not write")},
		"a format":                     {&Output{Meta: fields(anonymize.SourceFields{Format: "mooncake"})}, ok("internal")},
		"counts without a format":      {&Output{Meta: fields(anonymize.SourceFields{Dropped: 3, Kinds: map[string]int{"text": 3}})}, ok("internal")},
		"an unknown format":            {&Output{Meta: fields(anonymize.SourceFields{Format: "of-jane"})}, failed(nil, "the privacy card names fields of the source that are of no known format")},
		"a mapping without a format":   {&Output{Meta: fields(anonymize.SourceFields{Mapped: []string{"user"}})}, failed(nil, "the privacy card names fields of the source that are of no known format")},
		"an unknown kind":              {&Output{Meta: fields(anonymize.SourceFields{Kinds: map[string]int{"text": 1, "jane": 1}})}, failed(nil, "the privacy card names fields of the source by another kind than it has")},
		"a window that is not so long": {&Output{Meta: carded(former, `"capture_ns": 1`, `"capture_ns": -1`)}, Finding{Status: Fail}},
	} {
		f := card(t.Context(), &Case{Output: c.o})
		if c.want.Why == "" {
			c.want.Why = f.Why
		}
		if !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
}
