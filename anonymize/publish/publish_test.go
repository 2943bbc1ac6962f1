package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// released writes a small trace with the metadata of a release, and opens it.
func released(t *testing.T, tier string, change func(*trace.Meta)) Release {
	t.Helper()
	card := anonymize.Card{Schema: anonymize.CardSchema, Tool: "reprise test", Tier: tier, Unit: "session", BlockSize: 16, Time: "drawn", Lengths: "drawn in cells",
		Columns: []anonymize.Rule{{Column: "session", Rule: "synthetic: generated"}, {Column: "user", Rule: "dropped"}}, Dropped: []string{"user", "ttft_ns"},
		Risks: []string{"What many people share can be learnt.", "Groups are protected less."}, Sessions: &dp.SessionStatement{Unit: "session", Protects: "each session", Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, Mechanism: "discrete Gaussian"}}
	text, sum, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	err = trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		rows := make([]trace.Request, 1200)
		for i := range rows {
			rows[i] = trace.Request{ArrivalNS: int64(i) * 1e9, Session: trace.Ptr(int64(i / 2)), Model: "model-0", Kind: "chat", Status: trace.StatusOK, InputTokens: 40, OutputTokens: trace.Ptr[int32](7), Blocks: []uint64{0, 1, uint64(i + 2)}}
		}
		_, err := w.Write(rows)
		m := trace.Meta{Tier: tier, Unit: "session", BlockSize: 16, Convention: trace.PartialTail, Card: text, CardHash: sum}
		if change != nil {
			change(&m)
		}
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); tr.Close() })
	return Release{Trace: tr, Bytes: f, Size: info.Size(), Mode: 0o600, Tool: "reprise test"}
}

func statement() Statement {
	l, _ := ParseLicense("CC-BY-4.0")
	return Statement{Title: `Chat: "requests" # of {May}`, About: "Requests of a service.", License: l, Repo: "example/chat", Edition: "1.0.0", Date: time.Date(2026, 5, 31, 0, 0, 0, 0, time.UTC),
		Authors: []Author{{Family: "Lovelace", Given: "Ada", ORCID: "https://orcid.org/0000-0002-1825-0097"}, {Name: "Analytical & Engines"}}}
}

// write publishes a release.
func write(t *testing.T, r Release, s Statement) string {
	t.Helper()
	var err error
	if r.Card, err = Check(r.Trace.Meta); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "release")
	files, err := Write(dir, r, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		if sum := sha256.Sum256(b); err != nil || int64(len(b)) != f.Bytes || hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s is not as %+v says: %v", f.Name, f, err)
		}
	}
	return dir
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The folder has the rows as they were, sums of every other file, and nothing else.
func TestFolder(t *testing.T) {
	r := released(t, anonymize.Public, nil)
	dir := write(t, r, statement())
	rows := make([]byte, r.Size)
	if _, err := r.Bytes.ReadAt(rows, 0); err != nil || read(t, dir, dataFile) != string(rows) {
		t.Error("the rows are not byte for byte those of the trace", err)
	}
	if info, err := os.Stat(filepath.Join(dir, dataFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the rows is %v, %v", info.Mode(), err)
	}
	if read(t, dir, cardFile) != r.Trace.Meta.Card {
		t.Error("the privacy card is another one")
	}
	want := ""
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() && path != sumsFile {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		want += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(read(t, dir, name))), name)
	}
	if got := read(t, dir, sumsFile); got != want || len(names) != 5 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("%v is left beside the folder", left)
	}
}

// The dataset card begins with metadata that say what was said, whatever the title holds.
func TestReadme(t *testing.T) {
	s := statement()
	dir := write(t, released(t, anonymize.Public, nil), s)
	text := read(t, dir, readmeFile)
	head, rest, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "---\n")
	if !ok || !strings.HasPrefix(text, "---\n") {
		t.Fatal(text)
	}
	var front map[string]any
	if err := yaml.Unmarshal([]byte(head), &front); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"pretty_name": s.Title, "license": "cc-by-4.0", "size_categories": []any{"1K<n<10K"}, "task_categories": []any{"other"},
		"configs": []any{map[string]any{"config_name": "default", "data_files": []any{map[string]any{"split": "train", "path": dataFile}}}}} {
		if !reflect.DeepEqual(front[key], want) {
			t.Errorf("%s is %v, want %v", key, front[key], want)
		}
	}
	for _, want := range []string{"\n| requests | 1,200 |\n", "\n| time from first to last | 19m59s |\n", "\n| input tokens | 48,000, 40 for each request |\n", "| `blocks` | list of uint64 |",
		"| `session` | int64, may be null | session, numbered from 0 in order of appearance | synthetic: generated |\n", "\nNull in this release: `user`, `ttft_ns`.\n", "\n| budget | ε = 1, δ = 1e-06 |\n", "\n| times | drawn |\n", "\n| lengths | drawn in cells |\n", " and ids of shared prefix blocks of 16 tokens, without text", "\n- prefix-caching\n", "\n- Groups are protected less.\n", "author = {Lovelace, Ada and {Analytical \\& Engines}}", "by Ada Lovelace, Analytical & Engines.", "[CC-BY-4.0](https://creativecommons.org/licenses/by/4.0/)"} {
		if !strings.Contains(text, want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	if strings.Contains(rest, "| `user` |") || !strings.Contains(read(t, dir, croissantFile), `"pseudonymous user, numbered from 0; null in this release"`) {
		t.Error("a column that was dropped is not said to be")
	}
	if strings.Contains(rest, "private repository") {
		t.Error("a public release is called private")
	}
	partner := read(t, write(t, released(t, anonymize.Partner, nil), s), readmeFile)
	if !strings.Contains(partner, "not for publication") {
		t.Error("a release to a partner does not say so")
	}
}

// Croissant names every column of the file, and the file by its checksum.
func TestCroissant(t *testing.T) {
	r := released(t, anonymize.Public, nil)
	dir := write(t, r, statement())
	var doc struct {
		Name, License, URL, Description string
		Creator                         []map[string]string
		Distribution                    []struct{ ContentURL, SHA256 string }
		RecordSet                       []struct {
			Field []struct {
				ID       string `json:"@id"`
				DataType string
				Repeated bool
				Source   struct{ Extract struct{ Column string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, dir, croissantFile)), &doc); err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, dir, dataFile)))); doc.Distribution[0].SHA256 != sum || doc.Distribution[0].ContentURL != dataFile {
		t.Errorf("%+v, want %s", doc.Distribution, sum)
	}
	if doc.Name != statement().Title || doc.License != "https://creativecommons.org/licenses/by/4.0/" || doc.URL != "https://huggingface.co/datasets/example/chat" || doc.Creator[0]["@id"] != "https://orcid.org/0000-0002-1825-0097" || doc.Creator[1]["@type"] != "sc:Organization" {
		t.Errorf("%+v", doc)
	}
	types := map[string]string{}
	for _, f := range doc.RecordSet[0].Field {
		if f.ID != "requests/"+f.Source.Extract.Column || f.Repeated != slices.Contains([]string{"parents", "blocks", "output_blocks"}, f.Source.Extract.Column) {
			t.Errorf("%+v", f)
		}
		types[f.Source.Extract.Column] = f.DataType
	}
	request := reflect.TypeFor[trace.Request]()
	for i := range request.NumField() {
		field := request.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("parquet"), ",")
		kind := field.Type
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		want := map[reflect.Kind]string{reflect.Int64: "sc:Integer", reflect.Int32: "sc:Integer", reflect.Uint64: "sc:Integer", reflect.Float32: "sc:Float", reflect.Bool: "sc:Boolean", reflect.String: "sc:Text"}[kind.Kind()]
		if types[name] != want || columnWords[name] == "" {
			t.Errorf("column %s is %q, want %q", name, types[name], want)
		}
		delete(types, name)
	}
	if len(types) > 0 {
		t.Errorf("%v are no columns of a trace", types)
	}
}

func TestCitation(t *testing.T) {
	s := statement()
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(read(t, write(t, released(t, anonymize.Public, nil), s), citationFile)), &doc); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"cff-version": "1.2.0", "type": "dataset", "title": s.Title, "license": "CC-BY-4.0", "date-released": "2026-05-31", "version": "1.0.0",
		"authors": []any{map[string]any{"family-names": "Lovelace", "given-names": "Ada", "orcid": "https://orcid.org/0000-0002-1825-0097"}, map[string]any{"name": "Analytical & Engines"}}} {
		if !reflect.DeepEqual(doc[key], want) {
			t.Errorf("%s is %#v, want %#v", key, doc[key], want)
		}
	}
	s.License, s.Edition = License{URL: "https://example.org/terms"}, ""
	dir := write(t, released(t, anonymize.Public, nil), s)
	if text := read(t, dir, citationFile); !strings.Contains(text, "\nlicense-url: https://example.org/terms\n") || strings.Contains(text, "\nlicense: ") || strings.Contains(text, "\nversion: ") {
		t.Error(text)
	}
	if text := read(t, dir, readmeFile); !strings.Contains(text, "\nlicense: other\nlicense_name: other\nlicense_link: https://example.org/terms\n") {
		t.Error(text)
	}
}

// What was not released as releases are made now is refused.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tier   string
		change func(*trace.Meta)
		want   string
	}{
		"internal":         {anonymize.Internal, nil, "it is of tier internal. Make a release of it: reprise anonymize --tier public"},
		"raw":              {anonymize.Raw, nil, "it is of tier raw"},
		"none":             {"", nil, "it is of tier no tier, and so counts as internal"},
		"relabelled":       {anonymize.Internal, func(m *trace.Meta) { m.Tier = anonymize.Public }, "it claims tier public, and its privacy card is of tier internal"},
		"without a card":   {anonymize.Public, func(m *trace.Meta) { m.Card = "" }, "it has no privacy card"},
		"a changed card":   {anonymize.Public, func(m *trace.Meta) { m.Card += " " }, "does not match its hash"},
		"with kept text":   {anonymize.Public, func(m *trace.Meta) { m.Raw = "sha256:1" }, "its text was kept"},
		"of former rules":  {anonymize.Partner, func(m *trace.Meta) { former(t, m) }, "an earlier version made it"},
		"of wrong figures": {anonymize.Public, func(m *trace.Meta) { overspent(t, m) }, "more than ε = 1"},
	} {
		r := released(t, c.tier, c.change)
		if _, err := Check(r.Trace.Meta); !errors.Is(err, errNotReleased) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	spec := released(t, anonymize.Public, func(m *trace.Meta) { m.Card, m.CardHash, m.SourceFormat = "", "", "spec" })
	dir := write(t, spec, statement())
	if _, err := os.Stat(filepath.Join(dir, cardFile)); err == nil {
		t.Error("what nobody's traffic is in has a privacy card")
	}
	plain := released(t, anonymize.Public, func(m *trace.Meta) { m.BlockSize, m.Convention = 0, "" })
	if text := read(t, write(t, plain, statement()), readmeFile); strings.Contains(text, "ids of shared prefix blocks") || strings.Contains(text, "| prefix blocks |") || strings.Contains(text, "prefix-caching") {
		t.Error("a trace without blocks has some:", text)
	}
	if text := read(t, dir, readmeFile); !strings.Contains(text, "without anybody's traffic") || strings.Contains(text, "differential") {
		t.Error(text)
	}
}

func changeCard(t *testing.T, m *trace.Meta, change func(*anonymize.Card)) {
	c, err := anonymize.ParseCard(m.Card, m.CardHash)
	if err != nil {
		t.Fatal(err)
	}
	change(&c)
	if m.Card, m.CardHash, err = c.JSON(); err != nil {
		t.Fatal(err)
	}
}

func former(t *testing.T, m *trace.Meta) {
	changeCard(t, m, func(c *anonymize.Card) { c.Sessions = nil })
}

func overspent(t *testing.T, m *trace.Meta) {
	changeCard(t, m, func(c *anonymize.Card) { c.Sessions.Rho = 50 })
}

// A folder with something in it is left alone, and what fails leaves nothing.
func TestNothingIsReplaced(t *testing.T) {
	r := released(t, anonymize.Public, nil)
	dir := filepath.Join(t.TempDir(), "release")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.Card, _ = Check(r.Trace.Meta)
	if _, err := Write(dir, r, statement()); err != nil { // an empty one is taken
		t.Fatal(err)
	}
	before := read(t, dir, readmeFile)
	if _, err := Write(dir, r, Statement{Title: "other"}); err == nil || !strings.Contains(err.Error(), "is not empty") || read(t, dir, readmeFile) != before {
		t.Error(err)
	}
	file := filepath.Join(dir, readmeFile)
	if _, err := Write(file, r, statement()); err == nil || read(t, dir, readmeFile) != before {
		t.Error("a file was taken for a folder", err)
	}
	r.Size = 1 << 40 // more than there is
	bad := filepath.Join(filepath.Dir(dir), "bad")
	r.Bytes = bytes.NewReader([]byte("PAR1"))
	if _, err := Write(bad, r, statement()); err == nil {
		t.Error("a file that is none was published")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

func TestParseAuthor(t *testing.T) {
	for text, want := range map[string]Author{
		"Lovelace, Ada":                                       {Family: "Lovelace", Given: "Ada"},
		" van Rossum ,  Guido ":                               {Family: "van Rossum", Given: "Guido"},
		"Lovelace, Ada <0000-0002-1825-0097>":                 {Family: "Lovelace", Given: "Ada", ORCID: "https://orcid.org/0000-0002-1825-0097"},
		"Lovelace, A <https://orcid.org/0000-0002-1694-233X>": {Family: "Lovelace", Given: "A", ORCID: "https://orcid.org/0000-0002-1694-233X"},
		"Example GmbH":                                        {Name: "Example GmbH"},
	} {
		if got, err := ParseAuthor(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", ",", "Lovelace,", ", Ada", "Lovelace, Ada <0000-0002-1825-0098>", "Lovelace, Ada <", "Lovelace, Ada <me@example.org>", "Example <0000-0002-1825-0097>"} {
		if got, err := ParseAuthor(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestStatement(t *testing.T) {
	flag := func(part string) string { return "--" + part }
	good := statement()
	if err := good.Check(flag); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Statement){
		"--title: name":     func(s *Statement) { s.Title = " " },
		"--title: want one": func(s *Statement) { s.Title = "a\nb" },
		"--license: ":       func(s *Statement) { s.License = License{} },
		"--author: ":        func(s *Statement) { s.Authors = nil },
		"--repo: say":       func(s *Statement) { s.Repo = "" },
		"--repo: want":      func(s *Statement) { s.Repo = "https://x/y/z" },
		"--edition: ":       func(s *Statement) { s.Edition = "v1" },
	} {
		s := statement()
		change(&s)
		if err := s.Check(flag); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for text, want := range map[string]string{"cc-by-4.0": "CC-BY-4.0", "ODbL-1.0": "ODbL-1.0", "https://example.org/terms": "https://example.org/terms"} {
		if l, err := ParseLicense(text); err != nil || l.Name() != want {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
	for _, text := range []string{"", "free", "http://example.org", "CC-BY"} {
		if l, err := ParseLicense(text); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

func TestSizeCategory(t *testing.T) {
	for rows, want := range map[int64]string{1: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 12_031: "10K<n<100K", 999_999: "100K<n<1M", 5_000_000: "1M<n<10M", 2e12: "n>1T"} {
		if got := sizeCategory(rows); got != want {
			t.Errorf("%d rows are %s, want %s", rows, got, want)
		}
	}
}

// No name of an author, and no title, makes metadata that cannot be read.
func FuzzStatement(f *testing.F) {
	f.Add("Chat: \"requests\" # of {May}", "Lovelace, Ada", "a: b\n- c")
	f.Add("- x", "null, true", "2026-01-01")
	f.Add("é\u2028\x00", "1.0, 0x1", "\t|\n>")
	f.Add("\xc3", "1.0, 0x1", "\x7f\x00") // no UTF-8
	f.Add("0", "n\rl]", "-=1=1--01-0--01-00")
	f.Add("\tk", "n{lle", "-\r1--01-01")
	f.Add("À", "? 0, 3x1", " ")
	f.Fuzz(func(t *testing.T, title, author, about string) {
		a, err := ParseAuthor(author)
		s := statement()
		s.Title, s.About, s.Authors = title, about, []Author{a}
		if err != nil || s.Check(func(string) string { return "" }) != nil {
			return
		}
		x := &facts{Release: &Release{Trace: &trace.Trace{}}, rows: 1}
		citation, err := x.citation(s)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Title   string
			Authors []map[string]string
		}
		if err := yaml.Unmarshal([]byte(citation), &doc); err != nil || doc.Title != title || doc.Authors[0]["name"] != a.Name || doc.Authors[0]["family-names"] != a.Family {
			t.Errorf("%v, %+v\n%s", err, doc, citation)
		}
	})
}
