package audit

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// The gate says what differs, or that it was not this output, or what was held.
func TestVerdictOfTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		j    judge
		tier string
		want Finding
	}{
		"names show": {judge{shows: []string{"x: y"}, same: true, runs: 2}, anonymize.Internal, failed(nil, "with everything renamed the output is another one: names of the source show")},
		"another source": {judge{runs: 2}, anonymize.Partner,
			inconclusive(nil, "what was made anew depends on no name, but it is not this output: give the source and the flags that it was made of")},
		"the house": {judge{same: true}, anonymize.Internal,
			passed(nil, "with all tokens, names, ids and times of the source renamed, rows and metadata are the same to the last bit")},
		"a release of a log": {judge{same: true, imported: true}, anonymize.Partner,
			passed(nil, "with all tokens, names, ids and times of the source renamed, rows and metadata are the same to the last bit")},
		"a release of a trace": {judge{same: true}, anonymize.Partner,
			passed(nil, "with all ids, names and times of the trace of tier internal renamed, rows and metadata are the same to the last bit")},
	} {
		c.j.fig = Figures{}
		if f := c.j.finding(c.tier); !reflect.DeepEqual(f, c.want) {
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
	public := &Case{Output: &Output{Meta: map[string]string{"tier": anonymize.Public}}}
	if f := interference(t.Context(), public); !reflect.DeepEqual(f, skipped("it is of the tiers internal and partner; noise hides what tier public publishes")) {
		t.Errorf("public: %+v", f)
	}
	none := &Case{Output: &Output{}}
	if f := interference(t.Context(), none); !reflect.DeepEqual(f, skipped("it is of the tiers internal and partner; noise hides what tier none publishes")) {
		t.Errorf("of no tier: %+v", f)
	}
}

// A release is made anew with the settings of its card.
func TestPolicyOfACard(t *testing.T) {
	of := anonymize.PartnerCard{Unit: anonymize.UnitSession, KShare: 5, KClass: 7, LinkK: 9, DropOwn: true, PerOctave: 3, QuantumNS: 4e9}
	want := anonymize.PartnerPolicy{Unit: anonymize.UnitSession, KShare: 5, KClass: 7, LinkK: 9, DropOwn: true, PerOctave: 3, Quantum: 4 * time.Second}
	for name, change := range map[string]func(){
		"as it says":              func() {},
		"all links":               func() { of.LinkK, want.LinkK = 0, 1 },
		"few were left out":       func() { of.SuppressedShare = 0.05 },
		"many were left out":      func() { of.SuppressedShare, want.Suppressed = 0.5, 0.5*1.0001 },
		"nearly all were":         func() { of.SuppressedShare, want.Suppressed = 0.99985, 0.9999 },
		"all that may be, nearly": func() { of.SuppressedShare, want.Suppressed = 0.9997, 0.9997*1.0001 },
	} {
		was, wanted := of, want
		change()
		o := partnerOutput(t, of, trace.Meta{})
		got, text, err := policyOf(o)
		if err != nil || !reflect.DeepEqual(got, want) || text != o.Meta["card"] {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
		of, want = was, wanted
	}
	text, hash, err := anonymize.Card{Schema: anonymize.CardSchema}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for want, meta := range map[string]map[string]string{
		"the privacy card does not name the settings of the release":     {"card": text, "card_sha256": hash},
		"the privacy card does not match its hash: the file was changed": {"card": text + " ", "card_sha256": hash},
	} {
		if p, _, err := policyOf(&Output{Meta: meta}); err == nil || err.Error() != want || !reflect.DeepEqual(p, anonymize.PartnerPolicy{}) {
			t.Errorf("%+v, %v, want %s", p, err, want)
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

// A release of a trace is made anew for each rule of sharing, among them its own, as
// it is and renamed; whether times count from a declared begin or from the first.
func TestGateOfAReleaseOfATrace(t *testing.T) {
	house := linkHouse(t)
	for name, c := range map[string]struct {
		k       int
		capture trace.Capture
		runs    int
	}{
		"one of the usual": {5, trace.Capture{}, 8},
		"another":          {3, trace.Capture{}, 10},
		"declared":         {5, trace.RelativeCapture(0, time.Hour), 8},
	} {
		var rows []trace.Request
		if err := eachRow(t.Context(), sourceOf(house), func(_ int64, r *trace.Request) error {
			q := *r
			if q.ArrivalNS += 7e8; !c.capture.Declared() {
				q.ArrivalNS -= 7e8
			}
			rows = append(rows, q)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		src := linkTrace(t, trace.Meta{Tier: anonymize.Internal, Sessions: "source", Capture: c.capture}, rows)
		f := interference(t.Context(), linkReleased(t, src, anonymize.PartnerPolicy{KShare: c.k}, nil))
		want := Finding{Status: Pass, Why: "with all ids, names and times of the trace of tier internal renamed, rows and metadata are the same to the last bit", Seed: "1",
			Figures: Figures{"runs": c.runs, "made_anew_is_the_output": true}}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("%s: %+v, want %+v", name, f, want)
		}
	}
}

// Names that show are listed by the rule of sharing and the place, of the import
// and of the release.
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
	c := caseOf(t, anonymize.Internal, planted(b), entries)
	f := interference(t.Context(), c)
	if want := (Finding{Status: Fail, Why: "with everything renamed the output is another one: names of the source show", Seed: "5",
		Figures: Figures{"runs": 2, "made_anew_is_the_output": true, "differs_in": []string{"internal: class", "internal: metadata card", "internal: metadata card_sha256"}}}); !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
	first := true
	c = caseOf(t, anonymize.Partner, maker{}, entries)
	c.maker = planted(bug{out: func(_ anonymize.Source, rows []trace.Request) {
		if first = !first; first { // the second of every two, which is of renamed rows
			rows[0].OutputTokens++
		}
	}})
	f = interference(t.Context(), c)
	if want := []string{"partner, k_share 1: rows", "partner, k_share 2: rows", "partner, k_share 5: rows", "partner, k_share 20: rows"}; f.Status != Fail || f.Figures["runs"] != 10 || !reflect.DeepEqual(f.Figures["differs_in"], want) {
		t.Errorf("%+v, want %q", f, want)
	}
}
