package audit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// internalBugs are of the import; each is to be caught by the check that is named.
var internalBugs = []struct {
	bug
	check string
}{
	{bug{name: "ids are hashes without a key", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Blocks = unkeyed(p, &e[i], len(rows[i].Blocks))
		}
	}}, "non-interference"},
	{bug{name: "ids are hashes without a key, seen by the order", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Blocks = unkeyed(p, &e[i], len(rows[i].Blocks))
		}
	}}, "ids"},
	{bug{name: "ids in the order of hashes", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		hash := map[uint64]uint64{}
		for i := range rows {
			for j, h := range unkeyed(p, &e[i], len(rows[i].Blocks)) {
				if _, ok := hash[rows[i].Blocks[j]]; !ok {
					hash[rows[i].Blocks[j]] = h
				}
			}
		}
		var order []uint64
		for id := range hash {
			order = append(order, id)
		}
		slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(hash[a], hash[b]) })
		rank := map[uint64]uint64{}
		for i, id := range order {
			rank[id] = uint64(i)
		}
		for i := range rows {
			for j, id := range rows[i].Blocks {
				rows[i].Blocks[j] = rank[id]
			}
		}
	}}, "non-interference"},
	{bug{name: "the epoch is kept", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		begin := e[0].Time.UnixNano()
		if p.Renaming != nil {
			begin += int64(p.Renaming.Shift)
		}
		for i := range rows {
			rows[i].ArrivalNS += begin
		}
	}}, "non-interference"},
	{bug{name: "users in the order of their names", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		name := func(i int) string {
			if p.Renaming != nil {
				return reverse(e[i].User.Reveal()) // another order
			}
			return e[i].User.Reveal()
		}
		var names []string
		for i := range e {
			names = append(names, name(i))
		}
		slices.Sort(names)
		names = slices.Compact(names)
		for i := range rows {
			at, _ := slices.BinarySearch(names, name(i))
			rows[i].User = trace.Ptr(int64(at))
		}
	}}, "non-interference"},
	{bug{name: "the name of the model is kept", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Model = e[i].Model.Reveal()
			if p.Renaming != nil {
				rows[i].Model += "-renamed"
			}
		}
	}}, "non-interference"},
	{bug{name: "the class is kept", rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Class = trace.Ptr("gold")
		}
	}}, "free-text"},
	{bug{name: "the card names a user", meta: func(p anonymize.Policy, e []trace.Entry, c *anonymize.Card) {
		c.Risks = append(c.Risks, e[0].User.Reveal())
	}}, "free-text"},
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Without a bug every check passes; with one, the check that is for it fails.
func TestPlantedInImport(t *testing.T) {
	t.Parallel()
	entries := traffic(1, 12, 150)
	for name, f := range found(t, caseOf(t, anonymize.Internal, maker{}, entries)) {
		if f.Status != Pass && f.Status != Skipped {
			t.Errorf("without a bug: %s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	for _, b := range internalBugs {
		f := found(t, caseOf(t, anonymize.Internal, planted(b.bug), entries), b.check)[b.check]
		if f.Status != Fail {
			t.Errorf("%s: %s says %s: %s", b.name, b.check, f.Status, f.Why)
		}
	}
}

// A key that is kept gives the same hashes each time: they show when tokens are
// renamed.
func TestPlantedKeyThatIsKept(t *testing.T) {
	b := bug{rows: func(p anonymize.Policy, e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			ids := unkeyed(p, &e[i], len(rows[i].Blocks))
			for j := range ids {
				ids[j] = sipHash(42, 42, []byte{byte(ids[j]), byte(ids[j] >> 8), byte(ids[j] >> 16)})
			}
			rows[i].Blocks = ids
		}
	}}
	if f := found(t, caseOf(t, anonymize.Internal, planted(b), traffic(2, 5, 40)), "non-interference")["non-interference"]; f.Status != Fail {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}

// releaseBugs are of the release to a partner.
var releaseBugs = []struct {
	bug
	check string
}{
	{bug{name: "the rule of sharing is off", release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.KShare = 1 }}, "injection"},
	{bug{name: "one too few must share", release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.KShare = max(p.KShare-1, 1) }}, "injection"},
	{bug{name: "one too few make a class", release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.KClass = max(p.KClass-1, 1) }}, "lengths"},
	{bug{name: "requests make a class, and not users", release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.Unit = anonymize.UnitRequest }}, "lengths"},
	{bug{name: "requests share blocks, and not users", release: func(p *anonymize.PartnerPolicy, src anonymize.Source) { p.Unit = anonymize.UnitRequest }, before: nameless}, "repeats"},
	{bug{name: "filling is the same for all", out: func(_ anonymize.Source, rows []trace.Request) {
		for i := range rows {
			if n := len(rows[i].Blocks); n > 1 {
				rows[i].Blocks[n-1] = 3
			}
		}
	}}, "rules"},
	{bug{name: "exact lengths", out: func(src anonymize.Source, rows []trace.Request) {
		for i := range rows {
			rows[i].OutputTokens++
		}
	}}, "rules"},
	{bug{name: "the user is kept", out: func(src anonymize.Source, rows []trace.Request) {
		for i := range rows {
			rows[i].User = trace.Ptr(int64(i % 3))
		}
	}}, "rules"},
	{bug{name: "buckets are finer than the card says", release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.PerOctave = 8 }}, "rules"},
	{bug{name: "times are not drawn anew", out: func(src anonymize.Source, rows []trace.Request) {
		in, err := src.Open()
		if err != nil {
			return
		}
		_ = trace.Each(in, func(row int64, r *trace.Request) error {
			if row < int64(len(rows)) {
				rows[row].ArrivalNS = r.ArrivalNS
			}
			return nil
		})
		for i := range rows {
			rows[i].ArrivalNS -= rows[0].ArrivalNS
		}
		slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
	}}, "times"},
	{bug{name: "ids are those of the source", out: func(src anonymize.Source, rows []trace.Request) {
		for i := range rows {
			for j := range rows[i].Blocks {
				rows[i].Blocks[j] = rows[i].Blocks[j]*7 + 3
			}
		}
	}}, "ids"},
	{bug{name: "the number of the first user decides", out: func(src anonymize.Source, rows []trace.Request) {
		in, err := src.Open()
		if err != nil {
			return
		}
		one := make([]trace.Request, 1)
		if n, _ := in.Read(one); n == 1 && one[0].User != nil {
			rows[len(rows)-1].ArrivalNS += *one[0].User
		}
	}}, "non-interference"},
}

func TestPlantedInRelease(t *testing.T) {
	t.Parallel()
	entries := traffic(3, 14, 250)
	c := caseOf(t, anonymize.Partner, maker{}, entries)
	for name, f := range found(t, c) {
		if f.Status != Pass && f.Status != Skipped {
			t.Errorf("without a bug: %s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	for _, b := range releaseBugs {
		f := found(t, caseOf(t, anonymize.Partner, planted(b.bug), entries), b.check)[b.check]
		if f.Status != Fail {
			t.Errorf("%s: %s says %s: %s %v", b.name, b.check, f.Status, f.Why, f.Figures)
		}
	}
}

// Somebody outside has the output alone: what needs more says so.
func TestOutsider(t *testing.T) {
	c := caseOf(t, anonymize.Partner, maker{}, traffic(4, 12, 200))
	c.Log = nil
	got := found(t, c)
	for name, want := range map[string]Status{"card": Pass, "rules": Pass, "ids": Pass, "container": Pass, "free-text": Pass,
		"non-interference": Skipped, "injection": Skipped, "lengths": Skipped, "repeats": Skipped, "times": Skipped, "neighbours": Skipped, "canaries": Skipped, "numbers": Skipped} {
		if f := got[name]; f.Status != want || f.Why == "" {
			t.Errorf("%s: %s: %s", name, f.Status, f.Why)
		}
	}
}

// Another source than that of the output is no proof of it.
func TestOfAnotherSource(t *testing.T) {
	for _, tier := range []string{anonymize.Internal, anonymize.Partner} {
		c := caseOf(t, tier, maker{}, traffic(5, 12, 200))
		c.Log = logOf(t, traffic(6, 13, 210))
		if f := found(t, c, "non-interference")["non-interference"]; f.Status != Inconclusive {
			t.Errorf("%s: %s: %s", tier, f.Status, f.Why)
		}
	}
}

// A rule of sharing that one account beats is refused without a look at the source.
func TestInjectionNeedsThree(t *testing.T) {
	for k, want := range map[int]Status{2: Fail, 3: Pass} {
		c := caseOf(t, anonymize.Partner, maker{release: func(ctx context.Context, p anonymize.PartnerPolicy, src anonymize.Source, dst trace.Writer[trace.Request]) (anonymize.Card, error) {
			if p.KShare == 5 {
				p.KShare = k // the output; the check asks for others
			}
			p.Quantum = 10 * time.Second
			return anonymize.Release(ctx, p, src, dst)
		}}, traffic(7, 12, 200))
		if f := found(t, c, "injection")["injection"]; f.Status != want {
			t.Errorf("k_share %d: %s: %s", k, f.Status, f.Why)
		}
	}
}

// What an error says of a source does not carry its name into a result.
func TestFindingsNameNoPath(t *testing.T) {
	c := caseOf(t, anonymize.Internal, maker{}, traffic(10, 3, 10))
	c.Paths = []string{"/logs/of-jane.jsonl"}
	c.Log.Open = func() (*Opened, error) { return nil, errors.New("/logs/of-jane.jsonl:3:7: bad") }
	f := found(t, c, "non-interference")["non-interference"]
	if f.Status != Inconclusive || strings.Contains(f.Why, "jane") || !strings.Contains(f.Why, "the source:3:7: bad") {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}

// nameless takes users and sessions from rows, so that each counts by itself.
func nameless(src anonymize.Source) anonymize.Source {
	open := src.Open
	src.Meta.Sessions = ""
	src.Open = func() (trace.Reader[trace.Request], error) {
		rows, err := open()
		return &namelessRows{rows}, err
	}
	return src
}

type namelessRows struct{ rows trace.Reader[trace.Request] }

func (r *namelessRows) Read(rows []trace.Request) (int, error) {
	n, err := r.rows.Read(rows)
	for i := range rows[:n] {
		rows[i].User, rows[i].Session = nil, nil
	}
	return n, err
}
