package datasets

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// Every format that is a file says what its sample adds up to, and reads it so, found by content and by name.
func TestFormatFiles(t *testing.T) {
	files, err := embeddedFormats.ReadDir("formats")
	if err != nil || len(files) < 16 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		d, want, err := embeddedFormat(file.Name())
		if err != nil {
			t.Error(err)
			continue
		}
		for _, named := range []string{"", d.name} {
			entries, info, err := read(strings.NewReader(d.example), Options{Format: named})
			if err != nil || info.Format != d.name {
				t.Errorf("%s: read as %q, %v", file.Name(), info.Format, err)
				continue
			}
			if got := totalsOf(entries); want == nil || got != *want {
				t.Errorf("%s: totals: {requests: %d, input_tokens: %d, cached_tokens: %d, output_tokens: %d, reasoning_tokens: %d}, and the file says %+v",
					file.Name(), got.Requests, got.InputTokens, got.CachedTokens, got.OutputTokens, got.ReasoningTokens, want)
			}
		}
	}
}

func totalsOf(entries []trace.Entry) fileTotals {
	t := fileTotals{Requests: len(entries)}
	add := func(to *int, n *int32) {
		if n != nil {
			*to += int(*n)
		}
	}
	for i := range entries {
		e := &entries[i]
		add(&t.InputTokens, e.InputTokens)
		add(&t.CachedTokens, e.Cached)
		add(&t.OutputTokens, e.OutputTokens)
		add(&t.ReasoningTokens, e.Reasoning)
	}
	return t
}

// A field that a format does not read is named, and one that --map names is taken in beside those of the format.
func TestAddedField(t *testing.T) {
	for _, d := range declaredFormats() {
		text, columns, isCSV := d.example, "", !strings.HasPrefix(strings.TrimSpace(d.example), "{")
		if isCSV && strings.Contains(d.example, "\n") && len(d.keys) > 0 && strings.Contains(d.example, d.keys[0]) {
			columns, text, _ = strings.Cut(text, "\n")
			text = columns + ",added field\n" + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",of mine\n") + ",of mine\n"
		} else if isCSV || d.name == "lmcache" {
			continue // a log of text, and one that is known by having no other field
		} else {
			text = regexp.MustCompile(`(?m)^\s*\{`).ReplaceAllString(text, `{"added field":"of mine",`)
		}

		plain, info, err := read(strings.NewReader(text), Options{})
		if err != nil || info.Format != d.name || !slices.Contains(info.Unread, "added field") {
			t.Errorf("%s: read as %q, without %q, %v", d.name, info.Format, info.Unread, err)
			continue
		}
		if len(d.members) > 0 || d.join != nil || d.spans.id != "" {
			continue // paths are those of a call, and not of the record around it
		}
		added, info, err := read(strings.NewReader(text), Options{Map: Mapping{"class": {"added field"}}})
		if err != nil || info.Format != d.name || slices.Contains(info.Unread, "added field") || totalsOf(added) != totalsOf(plain) {
			t.Errorf("%s with --map: read as %q, without %q, %v", d.name, info.Format, info.Unread, err)
			continue
		}
		for i := range added {
			if got := added[i].Class.Reveal(); got != "of mine" {
				t.Errorf("%s: the added field is %q", d.name, got)
			}
		}
	}
	for format, text := range map[string]string{"openai-log": openAILogFormat().Example, "": `{"a":1,"b":2}`} {
		_, info, err := read(strings.NewReader(text), Options{Map: Mapping{"class": {"user"}}})
		if refused := err != nil; refused != (format == "") || !refused && info.Format != format {
			t.Errorf("%s: read as %q, %v", text, info.Format, err)
		}
	}
}

// A user's own file reads what no format reads: calls in a list, JSON in strings, counts that stand beside each
// other, times of the end, calls that reached no model.
func TestOwnFormatFile(t *testing.T) {
	const mine = `
about: our gateway
keys: [batch]
calls: batch.items
unpack: [answer]
map:
  time: at
  model: what.model | model
  session: conv
  e2e_ms: took
  output_tokens: answer.usage.out
usage: answer.usage
counts: exclusive
time_is: end
drop:
  - {path: cached, values: true, why: answers of our own cache were left out}
failed:
  - {path: broke, values: '*'}
`
	const log = `{"batch":{"items":[{"at":"2026-01-02T03:04:07Z","took":2000,"model":"m","conv":"a","answer":"{\"usage\":{\"input_tokens\":20,\"cache_read_input_tokens\":100,\"out\":7}}"},` +
		`{"at":"2026-01-02T03:04:09Z","took":1000,"what":{"model":"n"},"broke":1,"conv":"a","answer":{"usage":{"input_tokens":30,"cache_read_input_tokens":120,"out":8}}},` +
		`{"at":"2026-01-02T03:04:09Z","took":1,"cached":true,"answer":{"usage":{"input_tokens":9,"out":9}}}]}}` + "\n"
	own, err := ReadFormat("mine.yaml", []byte(mine))
	if err != nil {
		t.Fatal(err)
	}
	entries, info, err := read(strings.NewReader(log), Options{Own: own})
	if err != nil || info.Format != formatFileName || len(entries) != 2 {
		t.Fatalf("%d requests, %+v, %v", len(entries), info, err)
	}
	if got, want := totalsOf(entries), (fileTotals{Requests: 2, InputTokens: 270, CachedTokens: 220, OutputTokens: 15}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	first := entries[0]
	if first.Time.Format(time.RFC3339) != "2026-01-02T03:04:05Z" || first.Model.Reveal() != "m" || entries[1].Model.Reveal() != "n" || first.Session.Reveal() != "a" ||
		first.Status == trace.StatusFailed || entries[1].Status != trace.StatusFailed {
		t.Errorf("the first is %v", first)
	}
	wantNote(t, info, "answers of our own cache were left out: 1")

	// The length of a call is taken off a time that is a number too.
	for _, ms := range []string{"1767323047000", "1767323047.0", "1767323047000000000"} {
		entries, _, err := read(strings.NewReader(strings.NewReplacer(`"2026-01-02T03:04:07Z"`, ms,
			`"2026-01-02T03:04:09Z"`, strings.Replace(ms, "47", "49", 1)).Replace(log)), Options{Own: own})
		if err != nil || len(entries) != 2 || !entries[0].Time.Equal(first.Time) || !entries[1].Time.Equal(first.Time.Add(3*time.Second)) {
			t.Errorf("%s: %v, %v", ms, entries, err)
		}
	}
}

// A record without a target that all have is at fault where it stands, whatever it is written in, and counts that no
// usage could have are taken as they stand. Calls fail by any value.
func TestRequiredTargets(t *testing.T) {
	own, err := ReadFormat("mine.yaml", []byte("map: {time: at, input_tokens: in, output_tokens: out, cached_tokens: hit}\n"+
		"time_unit: ms\nrequired: [input_tokens]\nfailed: [{path: code, values: 500 503}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for log, bad := range map[string]string{
		"at,in,out,hit,code\n5,10,1,20,200\n6.5,11,,,503\n7,,1,2,200\n":                                               "log:4:1: input_tokens is missing",
		`{"at":5,"in":10,"out":1,"hit":20,"code":200}` + "\n" + `{"at":6.5,"in":11,"code":"503"}` + "\n" + `{"at":7}`: "log:3:1: input_tokens is missing",
	} {
		got, info := summaries(t, log, Options{Own: own, MaxBad: 1})
		if want := "5ms in=10 out=1 cached=20|6.5ms in=11 failed"; got != want || info.Bad != 1 || info.FirstBad[0].Error() != bad {
			t.Errorf("%s\n%s\n%v", got, want, info.FirstBad)
		}
	}
	wantBad(t, "at,in,out\n5,x,1\n", Options{Own: own}, "log:2:3: input_tokens: want a whole number")
}

// What is wrong with a file is said with its line and column.
func TestFaultsOfFormatFiles(t *testing.T) {
	for text, want := range map[string]string{
		"about: x\n":                                              "m.yaml:1:1: it maps no time",
		"map: {time: t, tokens_in: x}\n":                          "m.yaml:1:16: unknown target: want one of time, input_tokens",
		"map: {time: t}\ncounts: both\n":                          `m.yaml:2:1: "both": want inclusive`,
		"map: {time: t}\ntime_is: begin\n":                        `m.yaml:2:1: "begin": want start or end`,
		"map: {time: t}\ntime_unit: h\n":                          `m.yaml:2:1: "h": want s, ms, us or ns`,
		"map: {time: t, model: ' | '}\n":                          "m.yaml:1:16: it has no path",
		"map: {time: t}\nrequired: [model]\n":                     `m.yaml:2:12: "model" is not in the map`,
		"map: {time: t}\nusage: u\nrequired: [time]\n":            "m.yaml:3:1: records that all have some targets are read as they stand: leave out request",
		"map: {time: t}\nresponse: r\n":                           "m.yaml:2:1: say where the request is, too",
		"map: {time: t}\nrequest: r\ntime_is: end\n":              "m.yaml:2:1: of records of bodies leave out calls, unpack",
		"map: {time: t}\nkey: [a]\n":                              "did you mean keys?",
		"map: {time: t}\nonly: [{paths: a, values: b}]\n":         "did you mean path?",
		"map: [time]\n":                                           "m.yaml:1:",
		"map:\n  time: [a, b]\n":                                  "m.yaml:2:",
		"map: {time: t}\ncounts: " + strings.Repeat("x", 300<<10): "a format has at most 262144 bytes",
	} {
		if _, err := ReadFormat("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// Nothing in a file of a format brings the program down, whatever it is used on.
func FuzzFormatFile(f *testing.F) {
	files, _ := embeddedFormats.ReadDir("formats")
	for _, file := range files {
		text, _ := embeddedFormats.ReadFile("formats/" + file.Name())
		d, _, _ := embeddedFormat(file.Name())
		f.Add(string(text), d.example)
	}
	f.Fuzz(func(t *testing.T, format, log string) {
		own, err := ReadFormat("m.yaml", []byte(format))
		if err != nil {
			return
		}
		_, _, _ = read(strings.NewReader(log), Options{Own: own, MaxBad: 1})
	})
}

// The formats that have a reader in Go are described in readers.yaml, each of them and no other.
func TestReadersAreDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Formats() {
		names[f.Name] = true
		if f.About == "" || f.Example == "" {
			t.Errorf("%s is not described", f.Name)
		}
	}
	if len(readers()) == 0 {
		t.Error("readers.yaml has a fault")
	}
	for name, d := range readers() {
		if !names[name] || d.About == "" || d.Sample == "" {
			t.Errorf("%s is no format, or is not described", name)
		}
	}
}
