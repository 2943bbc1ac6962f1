package audit

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// The kind of a file is told by its content, and its tier by what it says.
func TestKindsOfOutputs(t *testing.T) {
	for text, want := range map[string]struct{ kind, tier string }{
		"":           {"other", ""},
		"a,b\n1,2\n": {"other", ""},
		"<!DOCTYPE HTML><dt>Tier</dt><dd>partner":                                 {"page", "partner"},
		"\n <!doctype html><dl><dt>Tier</dt>\n<dd>public</dd>":                    {"page", "public"},
		"<html><dt>Workload t</dt>":                                               {"page", ""},
		"<html><dt>Source tier</dt><dd>public<dt>Workload tier</dt> <dd>internal": {"page", "internal"},
		"<html><dt>Tier</dt><dd>partner<dt>Tier</dt><dd>public":                   {"page", "partner"},
		"<html><dt>" + strings.Repeat("x", 40) + " tier</dt><dd>partner":          {"page", "partner"},
		"<html><dt>" + strings.Repeat("x", 41) + " tier</dt><dd>partner":          {"page", ""},
		"<p>no page":                          {"other", ""},
		`{"tier":"partner"}`:                  {"json", "partner"},
		` {"tier":"partner","a":{}} `:         {"json", "partner"},
		`{"a":{"tier":"public"},"b":[1]}`:     {"json", "public"},
		`{"tier":"public","b":{"tier":"x"}}`:  {"json", "x"}, // a tier that is not known may be the least public
		`{"a":{"b":{"tier":"public"}}}`:       {"json", ""},
		`{"tier":7}`:                          {"json", ""},
		`[1,2]`:                               {"json", ""},
		`{"tier":"partner"`:                   {"other", ""},
		"{\"tier\":\"partner\"}\n{\"b\":1}\n": {"other", ""}, // lines
		`{"tier":"Of Jane"}`:                  {"json", ""},
	} {
		o := textOutput(t, text)
		if o.Kind != want.kind || o.Tier() != want.tier || o.Trace != nil || o.Parquet != nil {
			t.Errorf("%q is %s of tier %q, want %+v", text, o.Kind, o.Tier(), want)
		}
	}
}

// parquetFile is a Parquet file with one row and such metadata: keys and values by
// turns.
func parquetFile(t *testing.T, meta ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var opts []parquet.WriterOption
	for i := 0; i < len(meta); i += 2 {
		opts = append(opts, parquet.KeyValueMetadata(meta[i], meta[i+1]))
	}
	w := parquet.NewGenericWriter[struct{ N int64 }](f, opts...)
	if _, err := w.Write([]struct{ N int64 }{{7}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A Parquet file is of the kind that its schema names, if that is one word and a
// version; results have their tier in the description of their run.
func TestKindsOfParquet(t *testing.T) {
	for name, c := range map[string]struct {
		meta []string
		kind string
		want map[string]string
	}{
		"of nobody":         {[]string{"other", "x"}, "parquet", map[string]string{}},
		"of ours":           {[]string{"reprise.schema", "histograms/3", "reprise.tier", "public", "other", "x"}, "histograms", map[string]string{"schema": "histograms/3", "tier": "public"}},
		"without a version": {[]string{"reprise.schema", "histograms/"}, "parquet", map[string]string{"schema": "histograms/"}},
		"of no word":        {[]string{"reprise.schema", "Of Jane/1"}, "parquet", map[string]string{"schema": "Of Jane/1"}},
		"results": {[]string{"reprise.schema", "results/1", "reprise.run", `{"tier":"partner","workload_digest":"sha256:7"}`}, "results",
			map[string]string{"schema": "results/1", "run": `{"tier":"partner","workload_digest":"sha256:7"}`, "tier": "partner", "workload_digest": "sha256:7"}},
		"results with a tier": {[]string{"reprise.tier", "public", "reprise.run", `{"tier":"partner"}`}, "parquet", map[string]string{"tier": "public", "run": `{"tier":"partner"}`}},
		"a run of no JSON":    {[]string{"reprise.run", `{"tier":"partner"`}, "parquet", map[string]string{"run": `{"tier":"partner"`}},
	} {
		o, err := OpenOutput(parquetFile(t, c.meta...))
		if err != nil {
			t.Fatal(err)
		}
		if o.Kind != c.kind || !maps.Equal(o.Meta, c.want) || o.Parquet == nil || o.Trace != nil {
			t.Errorf("%s: %s with %v, want %s with %v", name, o.Kind, o.Meta, c.kind, c.want)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What cannot be judged is an error with the name of the file.
func TestOutputsThatDoNotOpen(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if _, err := OpenOutput(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	raw := parquetFile(t, "reprise.schema", trace.RawSchema)
	if _, err := OpenOutput(raw); !errors.Is(err, trace.ErrRaw) || err.Error() != fmt.Sprint(raw, ": ", trace.ErrRaw) {
		t.Errorf("raw text: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("PAR1\x00\x00\x00\x00\xff\xff\xff\x7fPAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOutput(broken); err == nil || !strings.HasPrefix(err.Error(), broken+": ") {
		t.Errorf("a broken footer: %v", err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, []byte("PAR1\x15\x04"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOutput(cut); !errors.Is(err, trace.ErrNoFooter) {
		t.Errorf("a file cut short: %v", err)
	}
	if _, err := OpenOutput(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

// A tier is a short word in lower case; what is none is not repeated.
func TestWords(t *testing.T) {
	for s, want := range map[string]bool{"": false, "a": true, "z-az": true, "Partner": false, "partner 2": false,
		strings.Repeat("a", 24): true, strings.Repeat("a", 25): false} {
		if isWord(s) != want {
			t.Errorf("%q is a word: %v", s, !want)
		}
	}
}
