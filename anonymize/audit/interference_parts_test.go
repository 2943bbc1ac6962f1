package audit

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// The gate says what differs, or that it was not this output, or what was held.
func TestVerdictOfTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		j    judge
		want Finding
	}{
		"names show": {judge{shows: []string{"x: y"}, same: true, runs: 2}, failed(nil, "with everything renamed the output is another one: names of the source show")},
		"another source": {judge{runs: 2},
			inconclusive(nil, "the output made anew depends on no name, but differs from this one: give the source "+
				"and the flags that made it")},
		"the house": {judge{same: true},
			passed(nil, "with all tokens, names, ids and times of the source renamed, rows and metadata are the same to the last bit")},
	} {
		c.j.fig = Figures{}
		if f := c.j.finding(); !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
		want := Figures{"runs": c.j.runs, "made_anew_is_the_output": c.j.same}
		if c.j.shows != nil {
			want["differs_in"] = c.j.shows
		}
		if !reflect.DeepEqual(c.j.fig, want) {
			t.Errorf("%s: %v, want %v", name, c.j.fig, want)
		}
	}
	for _, tier := range []string{anonymize.Partner, anonymize.Public, ""} {
		c := &Case{Output: &Output{Meta: map[string]string{"tier": tier}}}
		if f := interference(t.Context(), c); !reflect.DeepEqual(f, skipped("it is for tier internal; the checks "+
			"neighbours and linkage judge releases drawn from noisy counts")) {
			t.Errorf("tier %s: %+v", tier, f)
		}
	}
}

// Metadata that differ are named, on whichever side they stand; the digest is that
// of the rows, which are compared by themselves.
func TestMetadataThatDiffer(t *testing.T) {
	a := trace.Meta{Schema: "trace/1", Tier: "internal", Digest: "1", Timing: "x", Template: "t", BlockSize: 16}
	b := a
	b.Digest = "2"
	var j judge
	j.compareMeta("here", a, b)
	if j.shows != nil {
		t.Errorf("the digest alone: %q", j.shows)
	}
	b.Timing, b.Tokenizer, b.Template, b.BlockSize = "y", "z", "", 0
	j.compareMeta("here", a, b)
	if want := []string{"here: metadata tokenizer", "here: metadata timing", "here: metadata block_size", "here: metadata template"}; !slices.Equal(j.shows, want) {
		t.Errorf("%q, want %q", j.shows, want)
	}
}

// namedRows are rows with names of every kind, and some with none.
func namedRows() []trace.Request {
	return []trace.Request{
		{ArrivalNS: 0, InputTokens: 7, OutputTokens: trace.Ptr[int32](3), Blocks: []uint64{0, 1}},
		{ArrivalNS: 5, Session: trace.Ptr(int64(2)), User: trace.Ptr(int64(1)), Model: "model-0", Adapter: "adapter-0", Class: trace.Ptr("class-0"),
			Replica: trace.Ptr("replica-0"), Kind: "chat", Status: trace.StatusOK, Blocks: []uint64{0, 2}, OutputBlocks: []uint64{3, 8}},
		{ArrivalNS: 9, Session: trace.Ptr(int64(0)), User: trace.Ptr(int64(4)), Class: trace.Ptr("")},
	}
}

func sliceSource(rows []trace.Request) anonymize.Source {
	return anonymize.Source{Open: func() (trace.Reader[trace.Request], error) { return &trace.SliceReader[trace.Request]{Rows: rows}, nil }}
}

// The check names the columns in which rows differ, and rows that are missing or added.
func TestRowsThatDiffer(t *testing.T) {
	rows := func(change func(rows []trace.Request) []trace.Request) anonymize.Source {
		out := change(namedRows())
		src := sliceSource(out)
		src.Meta.Digest = fmt.Sprint(len(out))
		return src
	}
	as := func(rows []trace.Request) []trace.Request { return rows }
	for name, c := range map[string]struct {
		change func(rows []trace.Request) []trace.Request
		want   []string
	}{
		"nothing":     {as, nil},
		"empty lists": {func(rows []trace.Request) []trace.Request { rows[2].Blocks = []uint64{}; return rows }, nil},
		"one column":  {func(rows []trace.Request) []trace.Request { rows[2].ArrivalNS++; return rows }, []string{"here: arrival_ns"}},
		"several": {func(rows []trace.Request) []trace.Request {
			rows[1].Blocks, rows[0].User, rows[1].Model = nil, trace.Ptr(int64(1)), ""
			return rows
		}, []string{"here: blocks", "here: model", "here: user"}},
		"a row less":   {func(rows []trace.Request) []trace.Request { return rows[:2] }, []string{"here: number of rows"}},
		"a row more":   {func(rows []trace.Request) []trace.Request { return append(rows, trace.Request{}) }, []string{"here: number of rows"}},
		"no row":       {func(rows []trace.Request) []trace.Request { return nil }, []string{"here: number of rows"}},
		"other blocks": {func(rows []trace.Request) []trace.Request { rows[1].OutputBlocks[1]++; return rows }, []string{"here: output_blocks"}},
	} {
		var j judge
		a, b := rows(as), rows(c.change)
		a.Meta.Digest += "a"
		if err := j.compareRows(t.Context(), "here", a, b); err != nil || !slices.Equal(j.shows, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, j.shows, err, c.want)
		}
		j.shows = nil
		b.Meta.Digest = a.Meta.Digest // which says that they are equal
		if err := j.compareRows(t.Context(), "here", a, b); err != nil || j.shows != nil {
			t.Errorf("%s, of one digest: %q, %v", name, j.shows, err)
		}
	}
}

// Names that show are listed by their place.
func TestGateNamesWhatShows(t *testing.T) {
	entries := traffic(31, 12, 60)
	b := bug{rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		if p.Renaming != nil {
			rows[0].Class = trace.Ptr("class-9")
		}
	}, meta: func(p anonymize.Policy, e []trace.Entry, c *anonymize.Card) {
		if p.Renaming != nil {
			c.Risks = append(c.Risks, "renamed")
		}
	}}
	c := caseOf(t, planted(b), entries)
	f := interference(t.Context(), c)
	if want := (Finding{Status: Fail, Why: "with everything renamed the output is another one: names of the source show", Seed: "5",
		Figures: Figures{"runs": 2, "made_anew_is_the_output": true, "differs_in": []string{"internal: class", "internal: metadata card", "internal: metadata card_sha256"}}}); !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
}
