package audit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/doc"
)

// What a page begins with: what the file is, how the checks ended, and who judged.
func TestFactsOfAPage(t *testing.T) {
	findings := []Finding{{Status: Pass}, {Status: Pass}, {Status: Fail}, {Status: Inconclusive}, {Status: Skipped}, {Status: Skipped}, {Status: Skipped}}
	file, by := doc.Fact{Label: "SHA-256 of the file", Value: "0123456789abcdef"}, doc.Fact{Label: "Audited by", Value: "reprise 7"}
	r := Result{Kind: "trace", Tier: "partner", Version: "7", FileSHA256: "0123456789abcdef", Digest: "sha256:fedcba9876543210", Findings: findings}
	for name, c := range map[string]struct {
		s    sheet
		want []doc.Fact
	}{
		"a release": {sheet{carded: true, card: anonymize.Card{Unit: "user", Sessions: &dp.SessionStatement{Budget: dp.Budget{Epsilon: 8}, Protects: "one user"}}}, []doc.Fact{
			{Label: "Tier", Value: "partner", Note: "sessions drawn from noisy counts, none of them real; for a partner under contract"}, {Label: "Kind of file", Value: "trace"},
			{Label: "ε", Value: "8", Note: "for one user"}, {Label: "Unit of privacy", Value: "user"},
			{Label: "Digest of the rows", Value: "sha256:fedcba9876543210"}, file, by}},
		"another": {sheet{carded: true, card: anonymize.Card{Unit: "user"}}, []doc.Fact{
			{Label: "Tier", Value: "internal", Note: "pseudonymous; for use inside your organisation"}, {Label: "Kind of file", Value: "trace"}, {Label: "Unit of privacy", Value: "user"}, file, by}},
		"without a card": {sheet{card: anonymize.Card{Unit: "user"}}, []doc.Fact{
			{Label: "Tier", Value: "none"}, {Label: "Kind of file", Value: "trace"}, file, by}},
	} {
		of := r
		switch name {
		case "another":
			of.Tier, of.Digest = "internal", ""
		case "without a card":
			of.Tier, of.Digest = "", ""
		}
		c.s.r = &of
		if got := append(c.s.facts(), c.s.about()...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	c := sheet{r: &Result{Findings: []Finding{{Status: Pass, Check: "a"}, {Status: Fail, Check: "b"}, {Status: Pass, Check: "c"}}}}
	if got := c.firstChecks().Rows; !slices.EqualFunc(got, [][]string{{"✕ failed", "b"}, {"✓ passed", "a, c"}}, slices.Equal) {
		t.Errorf("%q", got)
	}
}

// What failed and what was inconclusive is said first, and then what the judge did not have.
func TestVerdicts(t *testing.T) {
	pass, fail, open, skip := Finding{Status: Pass}, Finding{Check: "a", Status: Fail, Why: "it is"}, Finding{Check: "b", Status: Inconclusive, Why: "it may be"}, Finding{Status: Skipped}
	info := func(s string) doc.Note { return doc.Note{Level: doc.Info, Text: s} }
	good := info("A check can refute and never prove: the risks that are left are below.")
	alone := info("The audit had the output alone. Checks that compare it with its source were skipped; whoever has the source can run them.")
	bad, unsure := doc.Note{Level: doc.Bad, Word: "a failed", Text: "It is."}, doc.Note{Level: doc.Warn, Word: "b was inconclusive", Text: "It may be."}
	for name, c := range map[string]struct {
		findings []Finding
		of       Case
		tier     string
		want     []doc.Note
	}{
		"passed":                {[]Finding{pass, pass}, Case{}, "partner", []doc.Note{good}},
		"failed":                {[]Finding{pass, open, fail}, Case{}, "partner", []doc.Note{bad, unsure}},
		"two failed":            {[]Finding{fail, fail, skip}, Case{}, "partner", []doc.Note{bad, bad, alone}},
		"inconclusive":          {[]Finding{open, pass}, Case{}, "partner", []doc.Note{unsure, good}},
		"none":                  {nil, Case{}, "partner", nil},
		"skipped":               {[]Finding{skip}, Case{}, "partner", []doc.Note{alone}},
		"skipped with a log":    {[]Finding{skip, pass}, Case{Log: &Log{}}, "partner", []doc.Note{good}},
		"skipped with a trace":  {[]Finding{skip, pass}, Case{Internal: &trace.Trace{}}, "partner", []doc.Note{good}},
		"passed, for the house": {[]Finding{pass}, Case{}, "internal", []doc.Note{good, {Level: doc.Warn, Text: "Tier internal is pseudonymised data: it stays personal data, and is not for release."}}},
	} {
		s := sheet{c: &c.of, r: &Result{Tier: c.tier, Findings: c.findings}}
		if got := append(s.findings(), s.notes()...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Each check stands with its sign, what it is about and what it found.
func TestChecksOfAPage(t *testing.T) {
	s := sheet{r: &Result{Findings: []Finding{{Check: "ids", Status: Pass, Why: "they are"}, {Check: "times", Status: Fail, Why: "broken."}, {Check: "x", Status: Inconclusive}, {Check: "linkage", Status: Skipped, Why: "why"}}}}
	about := func(name string) string {
		i := slices.IndexFunc(Checks(), func(c Check) bool { return c.Name == name })
		a := Checks()[i].About
		return strings.ToUpper(a[:1]) + a[1:] + "."
	}
	want := [][]string{{"✓ passed", "ids", about("ids"), "They are."}, {"✕ failed", "times", about("times"), "Broken."}, {"? inconclusive", "x", "", ""}, {"– skipped", "linkage", about("linkage"), "Why."}}
	got := s.checks()
	if got.Title != "Checks" || !reflect.DeepEqual(got.Tables[0].Rows, want) || !slices.Equal(got.Tables[0].Head, []string{"", "Check", "What must hold", "What was found"}) || len(got.Text) != 1 {
		t.Errorf("%+v, want %q", got, want)
	}
}

// Rows are shown as they are: columns that all leave empty are left out, and long
// lists are cut.
func TestRowsOfAPage(t *testing.T) {
	full := trace.Request{ArrivalNS: 1_234_567_890, Session: trace.Ptr(int64(1)), Turn: trace.Ptr(int32(2)), Parents: []int64{0}, ThinkNS: trace.Ptr(int64(4e9)), ToolNS: trace.Ptr(int64(5e6)),
		User: trace.Ptr(int64(6)), Model: "model-7", Adapter: "adapter-8", Kind: "chat", Class: trace.Ptr("class-9"), Replica: trace.Ptr("replica-10"), Category: "cold",
		InputTokens: 11, OutputTokens: trace.Ptr[int32](12), ReasoningTokens: trace.Ptr(int32(13)), CachedTokens: trace.Ptr(int32(14)), ImageTokens: trace.Ptr(int32(15)), Images: trace.Ptr(int32(16)),
		MaxTokens: trace.Ptr(int32(17)), Temperature: trace.Ptr(float32(0.7)), Stream: trace.Ptr(false), Blocks: []uint64{0, 1, 2, 3}, OutputBlocks: []uint64{4, 5, 6, 7, 8},
		Status: "ok", FinishReason: "stop", TTFTNS: trace.Ptr(int64(18e6)), E2ENS: trace.Ptr(int64(19e9))}
	rows := func(rows ...trace.Request) doc.Section {
		s := sheet{c: &Case{Output: &Output{Trace: linkTrace(t, trace.Meta{}, rows)}}}
		out, err := s.rows()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := rows(trace.Request{}, full)
	head := []string{"arrival", "session", "turn", "parents", "think", "tool", "user", "model", "adapter", "kind", "class", "replica", "category", "input", "output", "reasoning", "cached", "image tokens",
		"images", "max_tokens", "temperature", "stream", "status", "finish", "TTFT", "E2E", "blocks", "output blocks"}
	empty := make([]string, len(head))
	empty[0], empty[13] = "0.000 s", "0" // an output that is not known is no 0
	want := doc.Section{Title: "Rows as released",
		Text: []string{"The first 2 rows of the file, in full: a column that is not here is empty in all of them. Of long lists of blocks the beginning is shown."},
		Tables: []doc.Table{{Head: head, Rows: [][]string{empty,
			{"1.235 s", "1", "2", "0", "4s", "5ms", "6", "model-7", "adapter-8", "chat", "class-9", "replica-10", "cold", "11", "12", "13", "14", "15", "16", "17", "0.7", "false", "ok", "stop", "18ms", "19s", "0 1 2 3", "4 5 6 7 … (5)"}}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	many := make([]trace.Request, 25)
	for i := range many {
		many[i].InputTokens = int32(i)
	}
	got = rows(many...)
	if n := len(got.Tables[0].Rows); n != 20 || !slices.Equal(got.Tables[0].Head, []string{"arrival", "input"}) || got.Tables[0].Rows[19][1] != "19" || !strings.HasPrefix(got.Text[0], "The first 20 rows") {
		t.Errorf("of 25 rows: %+v", got)
	}
	if got := rows(); !reflect.DeepEqual(got, doc.Section{}) {
		t.Errorf("of no rows: %+v", got)
	}
	if got, err := (&sheet{c: &Case{Output: &Output{}}}).rows(); err != nil || !reflect.DeepEqual(got, doc.Section{}) {
		t.Errorf("of no trace: %+v, %v", got, err)
	}
}

// What became of a field is what became of the columns that it feeds.
func TestFieldsOfAPage(t *testing.T) {
	s := sheet{card: anonymize.Card{Columns: []anonymize.Rule{{Column: "a", Rule: "kept"}, {Column: "b", Rule: "exact to the token"}, {Column: "c", Rule: "dropped"}, {Column: "d", Rule: "rounded"}, {Column: "e", Rule: "dropped"}}}}
	for name, c := range map[string]struct {
		f    datasets.SourceField
		want []string
	}{
		"of no column":       {datasets.SourceField{Paths: []string{"x"}, How: "read and left"}, []string{"x", "dropped", "none", "Read and left."}},
		"dropped":            {datasets.SourceField{Paths: []string{"x", "y"}, Columns: []string{"c", "e"}}, []string{"x or y", "dropped", "c, e", droppedWhy}},
		"kept":               {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"a"}}, []string{"x", "as it was", "a", "Kept."}},
		"kept in two":        {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"b", "a"}}, []string{"x", "as it was", "a, b", "a: Kept. b: Exact to the token."}},
		"changed":            {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"d"}}, []string{"x", "changed", "d", "Rounded."}},
		"changed before":     {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"a"}, How: "counted"}, []string{"x", "changed", "a", "Counted. Kept."}},
		"counted into two":   {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"a", "d"}, How: "counted"}, []string{"x", "changed", "a, d", "Counted. Then by the rules of these columns, which are below."}},
		"of several fates":   {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"a", "d"}}, []string{"x", "changed", "a, d", "a: Kept. d: Rounded."}},
		"one of them gone":   {datasets.SourceField{Paths: []string{"x"}, Columns: []string{"a", "c"}}, []string{"x", "changed", "a; dropped: c", "Kept."}},
		"named by a mapping": {datasets.SourceField{Target: "user", Columns: []string{"a"}}, []string{"the field that --map names for user", "as it was", "a", "Kept."}},
	} {
		if got := s.fieldRow(c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s.carded = true
	got := s.columns()
	if want := [][]string{{"a", "as it was", "Kept."}, {"b", "as it was", "Exact to the token."}, {"c", "dropped", droppedWhy}, {"d", "changed", "Rounded."}, {"e", "dropped", droppedWhy}}; got.Title != "What was done with each column" ||
		!reflect.DeepEqual(got.Tables[0].Rows, want) || !strings.HasPrefix(got.Text[0], "As the privacy card of the file says: of 5 columns 2 are dropped, 1 changed and 2 as in the source. ") {
		t.Errorf("%+v, want %q", got, want)
	}
	for _, s := range []sheet{{card: s.card}, {carded: true}} {
		if got := s.columns(); !reflect.DeepEqual(got, doc.Section{}) {
			t.Errorf("columns of no card: %+v", got)
		}
		s.r = &Result{}
		if got := s.sourceFields(); !reflect.DeepEqual(got, doc.Section{}) {
			t.Errorf("fields of no card: %+v", got)
		}
	}
}

// Fields beside those that are read are counted by kind, in the order of the kinds.
func TestOtherFieldsOfAPage(t *testing.T) {
	for want, f := range map[string]anonymize.SourceFields{
		"1 other field":                             {Format: "mooncake", Dropped: 1},
		"3 other fields (text 2, list 1)":           {Format: "mooncake", Dropped: 3, Kinds: map[string]int{"list": 1, "text": 2, "number": 0}},
		"at least 1,000 other fields (number 1000)": {Format: "mooncake", Dropped: 1000, Kinds: map[string]int{"number": 1000}, More: true},
	} {
		s := sheet{r: &Result{Tier: "internal"}, carded: true, card: anonymize.Card{Columns: []anonymize.Rule{{Column: "a", Rule: "kept"}}, SourceFields: &f}}
		got := s.sourceFields()
		rows := got.Tables[0].Rows
		read, _ := datasets.ReadFields("mooncake", nil)
		if last := rows[len(rows)-1]; !slices.Equal(last, []string{want, "dropped", "none", "No column needs them, " +
			"so they are dropped. They are counted and not named, since a name may tell " +
			"something."}) || len(rows) != len(read)+1 {
			t.Errorf("%q in %d rows, want %q", last, len(rows), want)
		}
		if !strings.HasPrefix(got.Text[0], "The source was read as mooncake. ") || got.Title != "What became of each field of the source" {
			t.Errorf("%q: %q", got.Title, got.Text)
		}
		s.card.SourceFields.Dropped = 0
		if got := s.sourceFields().Tables[0].Rows; len(got) != len(read) {
			t.Errorf("without others %d rows, want %d", len(got), len(read))
		}
	}
}

// What a release cost, beside the source.
func TestChangeOfAPage(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	before := []trace.Request{{InputTokens: 32, OutputTokens: trace.Ptr[int32](10), Blocks: []uint64{0, 1}, Session: id(0), Status: trace.StatusOK}, {InputTokens: 32, OutputTokens: trace.Ptr[int32](10), Blocks: []uint64{0, 2}, Session: id(0), Status: trace.StatusOK},
		{InputTokens: 32, Blocks: []uint64{0, 1}, Session: id(1), Status: trace.StatusOK}, {InputTokens: 32, Blocks: []uint64{3, 4}, Status: trace.StatusOK}}
	after := []trace.Request{{InputTokens: 32, OutputTokens: trace.Ptr[int32](30), Blocks: []uint64{0, 1}, Session: id(0), Status: trace.StatusOK}, {InputTokens: 16, Blocks: []uint64{0}, Session: id(1), Status: trace.StatusOK}}
	section := func(sessions string, size int, before, after []trace.Request) doc.Section {
		s := sheet{c: &Case{Output: &Output{Trace: linkTrace(t, trace.Meta{BlockSize: size}, after)}, Internal: linkTrace(t, trace.Meta{BlockSize: size, Sessions: sessions}, before)}}
		got, err := s.change(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	rows := [][]string{
		{"Requests", "4", "2", "-50.0\u00a0%"}, {"Input tokens", "128", "48", "-62.5\u00a0%"}, {"Output tokens", "20", "30", "+50.0\u00a0%"},
		{"Hit ratio by block", "37.5 %", "33.3 %", "-4.2 points"}, // 3 of 8, 1 of 3
		{"Turns linked to one before", "1", "0", "-100.0\u00a0%"}, // 3 turns of 2 sessions, 2 of 2
	}
	got := section("source", 16, before, after)
	if got.Title != "Before and after" || !slices.Equal(got.Tables[0].Head, []string{"", "source", "output", "change"}) || !reflect.DeepEqual(got.Tables[0].Rows, rows) || len(got.Text) != 1 {
		t.Errorf("%+v, want %q", got, rows)
	}
	if got := section("inferred", 16, before, after).Tables[0].Rows; !reflect.DeepEqual(got, rows[:4]) {
		t.Errorf("sessions that were inferred: %q", got)
	}
	for i := range before {
		before[i].Blocks = nil
		before[i].InputTokens = 0
	}
	if got, want := section("", 16, before, after).Tables[0].Rows, [][]string{rows[0], {"Input tokens", "0", "48", ""}, rows[2]}; !reflect.DeepEqual(got, want) {
		t.Errorf("a source without blocks: %q, want %q", got, want)
	}
	for _, c := range []*Case{{Output: &Output{}, Internal: linkTrace(t, trace.Meta{}, nil)}, {Output: &Output{Trace: linkTrace(t, trace.Meta{}, nil)}}} {
		if got, err := (&sheet{c: c}).change(t.Context()); err != nil || !reflect.DeepEqual(got, doc.Section{}) {
			t.Errorf("without one of both: %+v, %v", got, err)
		}
	}
}

// How well requests hide.
func TestHidingOfAPage(t *testing.T) {
	set := func(known string, unique float64) setRisk {
		return setRisk{Known: known, Of: "requests", Unique: unique, K: 11, BelowK: 0.25, Smallest: 3, MaxRisk: 0.5, Average: 0.125}
	}
	fig := Figures{"sets": []setRisk{set("a", 0.5), set("b", 0)}, "columns": []columnRisk{{"", 0.75, 1}, {"model", 0.5, 1}},
		"points": []pointRisk{{Known: lengthsKnown, Points: 1, Unique: 0.25}, {Known: lengthsKnown, Points: 2, Unique: 0.5}, {Known: "x", Points: 1, Unique: 1}}}
	s := sheet{r: &Result{Findings: []Finding{{Check: "card"}, {Check: "linkage", Figures: fig}}}}
	got := s.hiding()
	table := doc.Table{Head: []string{"Somebody who knows", "unique", "in classes below 11", "smallest class", "risk at most", "risk on average"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Right, doc.Right},
		Rows:  [][]string{{"a, of requests", "50 %", "25 %", "3", "50 %", "12.5 %"}, {"b, of requests", "0 %", "25 %", "3", "50 %", "12.5 %"}}}
	columns := doc.Table{Caption: "Which column makes requests unique: how many are by all of these together, and how many still are without one",
		Head: []string{"Left out", "unique"}, Align: []doc.Align{doc.Left, doc.Right}, Rows: [][]string{{"none", "75 %"}, {"model", "50 %"}}}
	if got.Title != "How well requests hide" || !reflect.DeepEqual(got.Tables[:2], []doc.Table{table, columns}) || len(got.Text) != 1 {
		t.Errorf("%+v, want %+v", got, table)
	}
	if got, want := got.Tables[2].Rows[1], []string{lengthsKnown, "2", "50 %", "0 %", "0 %"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	out := []doc.Series{{Name: lengthsKnown, X: []float64{1, 2}, Y: []float64{25, 50}}, {Name: "x", X: []float64{1}, Y: []float64{100}}}
	if len(got.Plots) != 1 || !reflect.DeepEqual(got.Plots[0].Series, out) || got.Plots[0].Title != "Sessions that a few requests single out" || got.Plots[0].YUnit != "%" {
		t.Errorf("%+v, want %+v", got.Plots, out)
	}
	fig["points"] = []pointRisk{{Known: lengthsKnown, Points: 1}}
	if got := s.hiding(); got.Plots != nil {
		t.Errorf("a plot of one point each: %+v", got.Plots)
	}
	for _, r := range []Result{{}, {Findings: []Finding{{Check: "linkage"}}}, {Findings: []Finding{{Check: "card", Figures: fig}}}} {
		if got := (&sheet{r: &r}).hiding(); !reflect.DeepEqual(got, doc.Section{}) {
			t.Errorf("%+v: %+v", r, got)
		}
	}
}

// The three questions are answered whole or not at all, and what risks are left is
// said even where no card is.
func TestOpinionAndRisksOfAPage(t *testing.T) {
	card := anonymize.Card{WP29: anonymize.WP29{SinglingOut: "No.", Linkability: "Some.", Inference: "Hardly."}, Risks: []string{"first", "second."}}
	s := sheet{card: card, carded: true}
	want := [][]string{{"Singling out", "Can records of one person be distinguished from all others?", "No."},
		{"Linkability", "Can two records of one person be found to belong together?", "Some."},
		{"Inference", "Can something be concluded of a person that the person did not tell?", "Hardly."}}
	if got := s.opinion(); got.Title != "The three questions" || !reflect.DeepEqual(got.Tables[0].Rows, want) {
		t.Errorf("%+v, want %q", got, want)
	}
	left := doc.Section{Title: "What risks are left", Notes: []doc.Note{{Level: doc.Warn, Text: "First."}, {Level: doc.Warn, Text: "Second."}}}
	if got := s.risks(); !reflect.DeepEqual(got, left) {
		t.Errorf("%+v, want %+v", got, left)
	}
	s.card.WP29.Inference = ""
	if got := s.opinion(); !reflect.DeepEqual(got, doc.Section{}) {
		t.Errorf("an answer is missing: %+v", got)
	}
	s = sheet{card: card}
	if got := s.opinion(); !reflect.DeepEqual(got, doc.Section{}) {
		t.Errorf("without a card: %+v", got)
	}
	left.Notes = append(left.Notes, doc.Note{Level: doc.Warn, Text: "The file carries no privacy card that could be " +
		"read, so it is not known how it was made."})
	if got := s.risks(); !reflect.DeepEqual(got, left) {
		t.Errorf("without a card: %+v, want %+v", got, left)
	}
	for in, want := range map[string]string{"": "", "a": "A.", "a.": "A.", "ab c": "Ab c."} {
		if got := sentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A page has its sections in one order, and those that say nothing are left out.
func TestSectionsOfAPage(t *testing.T) {
	titles := func(c *Case, r Result) string {
		p, err := Page(t.Context(), c, &r)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range p.Sections {
			out = append(out, s.Title)
		}
		return fmt.Sprint(p.Title, ": ", strings.Join(out, ", "))
	}
	if got, want := titles(&Case{Output: &Output{Kind: kindJSON}}, Result{Kind: kindJSON}), "Privacy audit: Checks, What risks are left"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	src := linkHouse(t)
	c := drawnCase(t, src, anonymize.UnitUser, nil)
	r, err := Run(t.Context(), c, []string{"card"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := titles(c, r), "Privacy audit: Checks, What became of each field of the source, What was done with each column, Rows as released, Before and after, The three questions, What risks are left"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Output.Trace.Close()
	p, err := Page(t.Context(), c, &r)
	if err != nil {
		t.Fatal(err)
	}
	if unread := sectionOf(t, p, "Rows as released"); len(unread.Notes) != 1 || strings.Contains(unread.Notes[0].Text, "/") {
		t.Errorf("rows that cannot be read: %+v", unread)
	}
}
