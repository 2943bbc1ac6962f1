package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/body.golden")

func render(t testing.TB, p *Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// data returns the content of the JSON script as a browser finds it: up to the
// first thing that looks like the end of a script element.
func data(t testing.TB, html string) string {
	t.Helper()
	_, rest, ok := strings.Cut(html, `<script type="application/json" id="plot-data">`)
	if !ok {
		t.Fatal("no plot data")
	}
	return rest[:regexp.MustCompile(`(?i)</script`).FindStringIndex(rest)[0]]
}

// everywhere puts one string in every place that takes one.
func everywhere(s string) *Document {
	notes := []Note{{Level: Info, Text: s}, {Level: Bad, Text: s, Word: s, Items: []string{s}}}
	return &Document{
		Title: s, Tag: s, Lead: s, Headline: s, Facts: []Fact{{s, s, s, s}}, About: []Group{{s, []Fact{{s, s, s, s}}}}, Terms: []Term{{s, s, s, s}}, Verdict: notes, Notes: notes,
		Sections: []Section{
			{Title: s, Text: []string{s}, Notes: notes,
				Tables: []Table{{Caption: s, Head: []string{s, s}, Rows: [][]string{{s, s}}, Align: []Align{Left, Right}, HeadTerms: []string{s}, RowTerms: []string{s}}},
				Plots:  []Plot{{Title: s, Text: s, Term: s, XLabel: s, YLabel: s, XUnit: s, YUnit: s, Series: []Series{{Name: s, X: []float64{1, 2}, Y: []float64{1, 2}}, {Name: s}}, Marks: []Mark{{At: 1, Label: s, Series: 1}}}}},
			{Title: s}, {Title: s}, {Title: s},
		},
	}
}

var hostile = []string{
	`</script><script>alert(1)</script>`,
	`</SCRIPT ><img src=x onerror=alert(1)>`,
	`</style><style>*{display:none}`,
	`</title><!--`,
	`<!--<script>`,
	`-->]]>`,
	`" onmouseover="alert(1)`,
	`' autofocus onfocus='alert(1)`,
	"`${alert(1)}`",
	`{{.Title}}`,
	`&lt;b&gt; &#60;`,
	"\u2028\u2029\u0000\ufeff",
	"\xff\xfe\xc0\xaf",
	`\u003c/script\u003e \"`,
	`javascript:alert(1)`,
	`*/ alert(1) /*`,
}

// A hostile string adds no element and no attribute: the tags of the page,
// without the values of their attributes, are those of the same page with a
// harmless string in its place.
func TestEscaping(t *testing.T) {
	tag, value := regexp.MustCompile(`<[a-zA-Z/!][^>]*>`), regexp.MustCompile(`"[^"]*"`)
	shape := func(html string) string {
		html = strings.Replace(html, data(t, html), "", 1)
		html, _, _ = strings.Cut(html, "/*!\nThe plots") // the script, which has no user's text
		return strings.Join(tag.FindAllString(value.ReplaceAllString(html, `""`), -1), "\n")
	}
	want := shape(render(t, everywhere("harmless")))
	for _, s := range hostile {
		html := render(t, everywhere(s))
		if got := shape(html); got != want {
			t.Errorf("%q changes the elements of the page", s)
		}
		checkData(t, html, s)
	}
}

// checkData holds that the embedded JSON gives back the string, and holds
// nothing that HTML or old JavaScript would read otherwise than JSON.
func checkData(t testing.TB, html, s string) {
	t.Helper()
	js := data(t, html)
	if strings.ContainsAny(js, "<>&\u2028\u2029") {
		t.Errorf("%q: the data has a bare <, >, & or line separator", s)
	}
	var charts []struct {
		XL, XU string
		S      []struct{ N string }
	}
	if err := json.Unmarshal([]byte(js), &charts); err != nil {
		t.Fatalf("%q: the data is no JSON: %v", s, err)
	}
	valid := string([]rune(s)) // each bad byte becomes U+FFFD
	if got := charts[0]; len(charts) != 1 || got.S[0].N != valid || got.XL != valid || got.XU != valid {
		t.Errorf("%q: the data gives back %+v", s, got)
	}
}

func FuzzEscaping(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	tags := []string{"<script", "</script", "<style", "<!", "<title", "<svg", "<img", "<iframe", "<a"}
	count := func(html string) (n [9]int) {
		html = strings.ToLower(html)
		for i, tag := range tags {
			n[i] = strings.Count(html, tag)
		}
		return n
	}
	want := count(render(f, everywhere("harmless")))
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return
		}
		html := render(t, everywhere(s))
		checkData(t, html, s)
		if got := count(html); got != want {
			t.Errorf("%q: %v of %v; want %v", s, got, tags, want)
		}
	})
}

func TestDeterminism(t *testing.T) {
	first := render(t, demo())
	for range 5 {
		if render(t, demo()) != first {
			t.Fatal("the same page gave other bytes")
		}
	}
}

func TestNothingExternal(t *testing.T) {
	html := render(t, demo())
	html = strings.Replace(html, "/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "", 1)
	for _, bad := range []string{
		`https?:`, `<link\b`, `\ssrc\s*=`, `<(iframe|object|embed|base|form)\b`, `@import`, `\burl\(`, `@font-face`,
		`\bfetch\(`, `XMLHttpRequest`, `WebSocket`, `EventSource`, `sendBeacon`, `importScripts`, `\bimport\s*\(`, `\beval\(`, `localStorage`, `document\.cookie`,
	} {
		if at := regexp.MustCompile(bad).FindStringIndex(html); at != nil {
			t.Errorf("%s: …%s…", bad, html[max(0, at[0]-40):min(len(html), at[1]+40)])
		}
	}
}

// The policy admits exactly the elements that are in the page, by their hash.
func TestPolicy(t *testing.T) {
	html := render(t, demo())
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(html)
	if policy == nil {
		t.Fatal("no policy")
	}
	text := strings.NewReplacer("&#39;", "'", "&#43;", "+", "&#34;", `"`).Replace(policy[1])
	for _, want := range []string{"default-src 'none';", "img-src data:;", "base-uri 'none';", "form-action 'none'"} {
		if !strings.Contains(text, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if strings.Contains(text, "unsafe") || strings.Count(text, "sha256-") != 3 {
		t.Errorf("the policy is %s", text)
	}
	elements := regexp.MustCompile(`(?s)<(?:style|script)>(.*?)</(?:style|script)>`).FindAllStringSubmatch(html, -1)
	if len(elements) != 3 {
		t.Fatalf("%d styles and scripts; want 3", len(elements))
	}
	for i, e := range elements {
		if !strings.Contains(text, "'"+digest(e[1])+"'") {
			t.Errorf("the policy does not admit element %d", i+1)
		}
	}
	if at := strings.Index(html, "Content-Security-Policy"); at > strings.Index(html, "<style") {
		t.Error("the policy comes after what it governs")
	}
}

func TestLicenceIsInThePage(t *testing.T) {
	licence, err := os.ReadFile("assets/uplot.LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(render(t, demo()), string(bytes.TrimSpace(licence))) {
		t.Error("uPlot's licence is not in the page")
	}
}

func TestOverhead(t *testing.T) {
	html := render(t, demo())
	if n := len(html) - len(data(t, html)); n > 120_000 {
		t.Errorf("%d bytes besides the data", n)
	}
	plain := render(t, &Document{Title: "No plots", Sections: []Section{{Text: []string{"None."}}}})
	if strings.Contains(plain, "<script") || len(plain) > 12_000 {
		t.Errorf("a page without plots has %d bytes, or a script", len(plain))
	}
}

// The golden file holds the body of a page with one of everything, up to the data.
func TestStructure(t *testing.T) {
	html := render(t, &Document{
		Title: "Title", Lead: "Lead.", Facts: []Fact{{"Requests", "12", "all", "requests"}, {Label: "Rate", Value: "3 /s"}}, Notes: []Note{{Level: Good, Text: "Fine."}},
		Verdict: []Note{{Level: Bad, Text: "First of all."}}, About: []Group{{"Hardware", []Fact{{Label: "GPU", Value: strings.Repeat("long ", 13)}}}},
		Terms: []Term{{"requests", "count", "All rows.", ""}, {"ttft", "ms", "Time to first token.", "first − sent"}},
		Sections: []Section{
			{Title: "First", Text: []string{"One.", "Two."}, Notes: []Note{{Level: Info, Text: "i"}, {Level: Warn, Text: "w"}, {Level: Bad, Text: "b"}},
				Tables: []Table{
					{Caption: "Numbers", Head: []string{"Metric", "p50", "Unit"}, Rows: [][]string{{"TTFT", "1,234.5", "ms"}, {"TPOT", "–", "✕ none"}}, RowTerms: []string{"ttft"}, HeadTerms: []string{"", "requests"}},
					{Head: []string{"Empty"}},
				}},
			{Title: "Second", Plots: []Plot{
				{Title: "Drawn", Text: "Look.", Term: "ttft", XLabel: "Time", XUnit: "s", YLabel: "Rate", Series: []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}, {Name: "b", X: []float64{0}, Y: []float64{1}}}},
				{Title: "Nothing at all"},
				{Title: "Nothing in it", Series: []Series{{Name: "a", X: []float64{0}, Y: []float64{nan}}}},
			}},
			{Title: "Third"},
			{Text: []string{"Untitled."}},
			{Title: "Fifth"},
		},
	})
	body := html[strings.Index(html, "<body"):]
	body = body[:strings.Index(body, "<script")]
	if *update {
		if err := os.WriteFile("testdata/body.golden", []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/body.golden")
	if err != nil {
		t.Fatal(err)
	}
	if body != string(want) {
		t.Errorf("the body differs from testdata/body.golden (-update rewrites it):\n%s", body)
	}
}

func TestContentsOnlyForMoreThanThree(t *testing.T) {
	p := &Document{Title: "T", Sections: []Section{{Title: "A"}, {Title: "B"}, {Title: "C"}, {}}}
	if strings.Contains(render(t, p), "<nav") {
		t.Error("contents for three titles")
	}
	p.Sections[3].Title = "D"
	if html := render(t, p); !strings.Contains(html, `<a href="#section-4">D</a>`) {
		t.Error("no contents for four titles")
	}
}

func TestNumericColumns(t *testing.T) {
	for _, test := range []struct {
		cells []string
		want  bool
	}{
		{[]string{"1,234", "-0.5", "–", ""}, true},
		{[]string{"< 1 %", "±3.2e-5", "12.5 ms", "3.4×", "≥2 /s", "1 234"}, true},
		{[]string{"1", "many"}, false},
		{[]string{"–", ""}, true},
		{[]string{"3 requests failed"}, false},
		{[]string{"2025-01-01 10:00"}, false},
		{nil, false},
	} {
		table := Table{Head: []string{"h"}}
		for _, c := range test.cells {
			table.Rows = append(table.Rows, []string{c})
		}
		if got := table.numeric(0); got != test.want {
			t.Errorf("%q: %v", test.cells, got)
		}
	}
}

type refuser struct{ calls int }

func (r *refuser) Write([]byte) (int, error) { r.calls++; return 0, errors.New("full") }

func TestErrors(t *testing.T) {
	section := func(s Section) *Document { return &Document{Title: "T", Sections: []Section{{}, s}} }
	plot := func(k Kind, s ...Series) *Document { return section(Section{Plots: []Plot{{}, {Kind: k, Series: s}}}) }
	for _, test := range []struct {
		p    *Document
		want string
	}{
		{&Document{}, "page: no title"},
		{&Document{Title: "T", Notes: []Note{{Level: 9, Text: ""}}}, "page: note 1: unknown level 9"},
		{section(Section{Notes: []Note{{}, {Level: 9, Text: ""}}}), "page: section 2, note 2: unknown level 9"},
		{section(Section{Tables: []Table{{}}}), "page: section 2, table 1: no head"},
		{section(Section{Tables: []Table{{Head: []string{"secret"}, Rows: [][]string{{""}, {"secret", "x"}}}}}), "page: section 2, table 1: row 2 has 2 cells, the head has 1"},
		{section(Section{Tables: []Table{{Head: []string{""}, Align: []Align{7}}}}), "page: section 2, table 1: column 1: unknown alignment 7"},
		{section(Section{Tables: []Table{{Head: []string{""}, Align: make([]Align, 2)}}}), "page: section 2, table 1: 2 alignments for 1 columns"},
		{section(Section{Tables: []Table{{Head: []string{""}, RowTerms: []string{""}}}}), "page: section 2, table 1: 0 terms for 1 columns, 1 for 0 rows"},
		{section(Section{Plots: []Plot{{Term: "ttft"}}}), `page: no definition of the term "ttft"`},
		{&Document{Title: "T", Verdict: []Note{{Level: 9, Text: ""}}}, "page: note 1: unknown level 9"},
		{plot(8), "page: section 2, plot 2: unknown kind 8"},
		{plot(Line, Series{}, Series{X: []float64{1}}), "page: section 2, plot 2: series 2: 1 X and 0 Y"},
		{plot(Line, Series{Hi: []float64{}}), "page: section 2, plot 2: series 1: only bars and lanes have a Hi"},
		{plot(Lanes, Series{X: []float64{1}, Y: []float64{1}, Hi: []float64{2}}), "page: section 2, plot 2: series 1: want bars with both ends, each in one of 0 lanes"},
		{plot(Line, Series{Tone: 7}), "page: section 2, plot 2: series 1: there are 6 colours"},
		{section(Section{Plots: []Plot{{Kind: Lanes, LogX: true}}}), "page: section 2, plot 1: lanes have no logarithmic axes"},
		{plot(Bars, Series{X: []float64{1}, Y: []float64{1}, Hi: []float64{}}), "page: section 2, plot 2: series 1: 1 X and 0 Hi"},
	} {
		w := &refuser{}
		if err := test.p.Write(w); err == nil || err.Error() != test.want {
			t.Errorf("got %v; want %s", err, test.want)
		}
		if w.calls != 0 {
			t.Errorf("%s: something was written", test.want)
		}
	}
	w := &refuser{}
	if err := demo().Write(w); err == nil || w.calls != 1 {
		t.Errorf("a full disk: error %v after %d writes", err, w.calls)
	}
}

func BenchmarkWrite(b *testing.B) {
	p := demo()
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := p.Write(&out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.Len()), "page-bytes")
}

// Links lead to files beside the page, and nowhere else.
func TestLinks(t *testing.T) {
	var b bytes.Buffer
	p := Document{Title: "t", Sections: []Section{{Links: []Link{{"Run <1>", "a/b c/report.html"}, {"colon", "x:y.html"}}}}}
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<a href="a/b%20c/report.html">Run &lt;1&gt;</a>`, `<a href="./x:y.html">`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	for _, path := range []string{"", "/etc/passwd", "../x.html", "http://h/x", `a\b`, "a/../../b"} {
		p.Sections[0].Links = []Link{{"x", path}}
		if err := p.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "link 1") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
