package audit

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
)

// What each form is at its bounds: the shortest and the longest that it has, and what
// is not any more.
func TestFormsAtTheirBounds(t *testing.T) {
	const (
		mail, card, account, phone = "an e-mail address", "a card number", "an IBAN", "a telephone number"
		hardware, jwt, private     = "a hardware address", "a signed token (JWT)", "a private key"
		key, password              = "a key of a service", "a password in a URL"
	)
	a := func(n int) string { return strings.Repeat("a", n) }
	for text, want := range map[string][]string{
		"":                                    nil,
		"0.4111111111111111":                  nil,
		"12 tokens @ 3.4 ms":                  nil,
		"sha256:4f2f60bc8b7279baf37aadc402a4": nil,
		"IBAN GB82 WEST 1234 5698 7654 32":    {account},
		"a@b.de":                              {mail},
		"a@b.d":                               nil,
		"a@b":                                 nil,
		"@b.de":                               nil,
		"a@b.c.d.e.f.de":                      {mail},
		"3530111333300000":                    {card}, // test numbers that issuers publish
		"6011-1111-1111-1117":                 {card},
		"5555 5555 5555 4444.":                nil,
		"-5555555555554444":                   nil,
		"x5555555555554444x":                  {card},
		"2223003122003222":                    nil, // begins with a 2
		"55555555555544440":                   nil,
		"5555555555554444 and a@b.de":         {mail, card},
		"+1 212 555 0100":                     {phone},
		"+491 30 123 45":                      {phone},
		"+0 30 123 45":                        nil,
		"+49 3 123 45":                        nil,
		"00:1B:44:11:3A:B7":                   {hardware},
		"00:1B:44:11:3A":                      nil,
		"-----BEGIN PRIVATE KEY-----":         {private},
		"-----BEGIN PUBLIC KEY-----":          nil,
		"eyJaaaaaaaa.eyJaaaaaaaa.":            {jwt},
		"eyJaaaaaaa.eyJaaaaaaaa.":             nil,
		"sk-" + a(20):                         {key},
		"sk-" + a(19):                         nil,
		"AKIA" + strings.Repeat("A", 16):      {key},
		"AKIA" + strings.Repeat("A", 15):      nil,
		"ghp_" + a(36):                        {key},
		"ghx_" + a(36):                        nil,
		"AIza" + a(35):                        {key},
		"xoxb-" + a(10):                       {key},
		"hf_" + a(30):                         {key},
		"hf_" + a(29):                         nil,
		"redis://u:p@h":                       {password},
		"redis://u@h":                         nil,
		"redis://u:p/x@h":                     nil,
		"NO9386011117947":                     {account}, // the shortest, of Norway
		"NO9386011117948":                     nil,
		"MT84MALT011000012345MTLCAST001S":     {account}, // of Malta, the longest
	} {
		if got := suspicious(text); !slices.Equal(got, want) {
			t.Errorf("%q looks like %q, want %q", text, got, want)
		}
	}
}

// Luhn's digit, by hand: from the right every second digit counts twice, and one of
// two digits as their sum.
func TestLuhn(t *testing.T) {
	for s, want := range map[string]bool{"79927398713": true, "79927398710": false, "79927398719": false, "0": true, "5": false, "18": true, "59": true,
		"26": true, "00": true, "91": true, "90": false, " 5-9x": true} {
		if cardNumber(s) != want {
			t.Errorf("%q is a card's number: %v", s, !want)
		}
	}
}

// The examples of ISO 13616, and lengths that no account has.
func TestIBANs(t *testing.T) {
	for s, want := range map[string]bool{
		"GB82 WEST 1234 5698 7654 32": true, "DE89370400440532013000": true, "NO9386011117947": true, "MT84MALT011000012345MTLCAST001S": true,
		"DE88370400440532013000": false, "NO93860111179470": false, "NO938601111794": false, "ZZ97AAAAAAAAAA": false,
	} {
		if iban(s) != want {
			t.Errorf("%q is an account: %v", s, !want)
		}
	}
	// 14 characters and 35 that are 1 modulo 97 are none.
	for _, zeros := range []int{10, 11, 30, 31} {
		for check := range 100 {
			s := "AA" + string(rune('0'+check/10)) + string(rune('0'+check%10)) + strings.Repeat("0", zeros)
			if n := 101000 + check; (n%97 == 1) != iban(s) && zeros+4 >= 15 && zeros+4 <= 34 { // 0…0 1010 check
				t.Errorf("%q is an account: %v", s, iban(s))
			}
			if iban(s) && (zeros == 10 || zeros == 31) {
				t.Errorf("%q of %d characters is an account", s, len(s))
			}
		}
	}
}

// Prose is looked through where there is no Parquet. What it was like is said, and
// never what it was.
func TestFreeTextOfProse(t *testing.T) {
	for text, want := range map[string]Finding{
		"a page":  passed(Figures{"bytes": 6}, "nothing looks like an address, a person's number or a secret; prose of a other cannot be held against closed lists"),
		`{"a":1}`: passed(Figures{"bytes": 7}, "nothing looks like an address, a person's number or a secret; prose of a json cannot be held against closed lists"),
		"jane@acme.org 00:1B:44:11:3A:B7": failed(Figures{"bytes": 31, "looks_like": []string{"an e-mail address", "a hardware address"}},
			"there is what looks like an e-mail address, a hardware address"),
	} {
		if f := freeText(t.Context(), &Case{Output: textOutput(t, text)}); !reflect.DeepEqual(f, want) {
			t.Errorf("%q: %+v, want %+v", text, f, want)
		}
	}
	o := textOutput(t, "a page")
	o.file.Close()
	if f := freeText(t.Context(), &Case{Output: o}); !f.broken {
		t.Errorf("a closed file: %+v", f)
	}
	o.size = 256<<20 + 1
	if f := freeText(t.Context(), &Case{Output: o}); !reflect.DeepEqual(f, inconclusive(nil, "the output has more than 256 MiB of prose")) {
		t.Errorf("much prose: %+v", f)
	}
	o.size--
	if f := freeText(t.Context(), &Case{Output: o}); !f.broken {
		t.Errorf("as much as is read: %+v", f)
	}
}

// Strings are counted once for each place, and those that are not the tool's own are
// counted and never quoted. Names of models are the house's own where the house asked
// for them.
func TestFreeTextCounts(t *testing.T) {
	longtest.Skip(t)
	rows := []trace.Request{
		{Model: "acme", Kind: "chat"}, {Model: "acme", Kind: "chat"}, {Model: "zenith", Kind: "chat", Adapter: "lora"}, {Model: "model-1", Kind: "embedding", Adapter: "lora"},
	}
	base := freeText(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Internal})}).Figures["distinct_strings"].(int)
	house := freeText(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Internal}, rows...)})
	want := failed(Figures{"distinct_strings": base + 3 + 2 + 1, // models, kinds, adapters
		"not_our_own": 1, "model_names_kept": 2, "found_in": []string{"column adapter"}},
		"1 strings are not from closed lists, labels or the tool's own words")
	if !reflect.DeepEqual(house, want) {
		t.Errorf("in the house: %+v, want %+v", house, want)
	}
	for i := range rows {
		rows[i].Adapter = ""
	}
	if f := freeText(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Internal}, rows...)}); f.Status != Pass || f.Figures["model_names_kept"] != 2 ||
		f.Why != "all strings are closed words, labels and the tool's own, but for 2 names of models that were kept on request" {
		t.Errorf("names of models alone: %+v", f)
	}
	partner := freeText(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Partner}, rows...)})
	if partner.Status != Fail || partner.Figures["not_our_own"] != 2 || !reflect.DeepEqual(partner.Figures["found_in"], []string{"column model"}) || partner.Figures["model_names_kept"] != nil {
		t.Errorf("for a partner: %+v", partner)
	}
	clean := freeText(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Partner})})
	if !reflect.DeepEqual(clean, passed(Figures{"distinct_strings": base, "not_our_own": 0}, "all %d strings are closed words, labels and the tool's own", base)) {
		t.Errorf("without rows: %+v", clean)
	}
}

// What a column of a trace may hold, and one of another file.
func TestAllowedStrings(t *testing.T) {
	v := vocabulary{}
	v.add("red words")
	scan := &textScan{own: v}
	for _, c := range []struct {
		kind, column, s string
		want            bool
	}{
		{kindTrace, "model", "", true}, {kindTrace, "nothing", "", true}, {kindTrace, "nothing", "red", false},
		{kindTrace, "model", "model-0", true}, {kindTrace, "model", "model-", false}, {kindTrace, "model", "xmodel-1", false}, {kindTrace, "model", "model-1x", false},
		{kindTrace, "model", "other", true}, {kindTrace, "adapter", "adapter-12", true}, {kindTrace, "adapter", "model-1", false}, {kindTrace, "class", "class-0", true},
		{kindTrace, "replica", "replica-0", true}, {kindTrace, "replica", "class-0", false},
		{kindTrace, "kind", "chat", true}, {kindTrace, "kind", "embedding", true}, {kindTrace, "kind", "talk", false},
		{kindTrace, "status", "ok", true}, {kindTrace, "status", "fine", false},
		{kindTrace, "finish_reason", "stop", true}, {kindTrace, "finish_reason", "halt", false},
		{kindTrace, "category", "cold", true}, {kindTrace, "category", "chilly", false},
		{"results", "any", "user-3", true}, {"results", "any", "session-3", true}, {"results", "any", "client-3", true}, {"results", "any", "red words", true}, {"results", "any", "blue", false},
		{"results", "model", "model-3", true}, {"results", "model", "red", false},
	} {
		if got := scan.allowed(c.kind, c.column, c.s); got != c.want {
			t.Errorf("%q in column %s of a %s: %v", c.s, c.column, c.kind, got)
		}
	}
}

// Metadata are of the shape that their key has, or of the tool's own words.
func TestAllowedMetadata(t *testing.T) {
	v := vocabulary{}
	v.add("reprise digest card sha256 source format tokenizer template schema capture ids begin end run tier note corpus synth model")
	hex := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		key, value, want string
	}{
		{"reprise.digest", "sha256:" + hex, ""}, {"reprise.digest", hex, "metadata reprise.digest"}, {"reprise.source_digest", "sha256:" + hex[1:], "metadata reprise.source_digest"},
		{"reprise.corpus_sha256", "sha256:" + hex, ""},
		{"reprise.card_sha256", hex, ""}, {"reprise.card_sha256", "sha256:" + hex, "metadata reprise.card_sha256"},
		{"reprise.tokenizer", "o200k_base", ""}, {"reprise.tokenizer", "tokenizer.json:0123456789abcdef", ""}, {"reprise.tokenizer", "tokenizer.json:0123456789abcde", "metadata reprise.tokenizer"},
		{"reprise.tokenizer", strings.Repeat("a", 25), "metadata reprise.tokenizer"}, {"reprise.template", "llama3.1:0123456789abcdef", ""}, {"reprise.template", "Llama", "metadata reprise.template"},
		{"reprise.schema", "trace/1", ""}, {"reprise.schema", "trace", "metadata reprise.schema"},
		{"reprise.capture_begin", "2026-01-02T03:04:05Z", ""}, {"reprise.capture_end", "1h30m0.5s", ""}, {"reprise.capture_end", "noon", "metadata reprise.capture_end"},
		{"reprise.capture_ids", hex[:32] + "," + hex[:32], ""}, {"reprise.capture_ids", hex[:31], "metadata reprise.capture_ids"},
		{"reprise.run", "whatever it says", ""}, {"reprise.run", "of jane@acme.org", "metadata reprise.run"},
		{"reprise.source_format", "synth of model 0123456789ab", ""}, {"reprise.source_format", "synth of model 0123456789abc", "metadata reprise.source_format"},
		{"reprise.card", `{"tier": 3, "tool": "reprise v1.2-dirty"}`, ""}, {"reprise.card", `{"tool": "reprise v1.2", "note": "dirty"}`, "metadata reprise.card"},
		{"reprise.tier", "note", ""}, {"reprise.tier", "jane", "metadata reprise.tier"},
		{"reprise.jane", "note", "names of metadata"}, {"other.note", "note", "names of metadata"}, {"reprise.Note", "note", "names of metadata"}, {"reprise.", "note", "names of metadata"},
	} {
		scan := &textScan{own: v, seen: map[string]map[string]bool{}}
		scan.metadata(c.key, c.value)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if !slices.Equal(scan.bad, want) || scan.count != len(want) || scan.strings != 1 {
			t.Errorf("%s = %q: %q, %d of %d strings, want %q", c.key, c.value, scan.bad, scan.count, scan.strings, want)
		}
		scan.metadata(c.key, c.value) // what is known is not judged again, but for its name
		if want := len(want); scan.strings != 1 || c.want != "names of metadata" && scan.count != want {
			t.Errorf("%s = %q twice: %d of %d strings", c.key, c.value, scan.count, scan.strings)
		}
	}
}

// Words are runs of letters, in lower case; those of one or two letters and figures
// are nobody's.
func TestVocabulary(t *testing.T) {
	v := vocabulary{}
	v.add("Red, green-blue 12")
	for s, want := range map[string]bool{"": true, "RED": true, "green": true, "reds": false, "re": true, "xy": true, "xyz": false, "red12green": true, "blue/9 xyz": false, "ünde": false, "é": true, "red é": true, "[{red}]": true} {
		if v.has(s) != want {
			t.Errorf("%q is of its own words: %v", s, !want)
		}
	}
	if len(v) != 3 {
		t.Errorf("%v", v)
	}
}

// A file of another writer has a creator and columns of its own.
func TestFreeTextOfAnotherWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(path, []struct {
		Jane string `parquet:"of_jane"`
		Kind string `parquet:"kind"`
	}{{"user-1", "jane"}, {"jane doe", "chat"}}); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	want := failed(Figures{"distinct_strings": 4, "not_our_own": 4, "found_in": []string{"created by", "names of columns", "column of_jane", "column kind"}},
		"4 strings are not from closed lists, labels or the tool's own words")
	if f := freeText(t.Context(), &Case{Output: o}); !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
}
