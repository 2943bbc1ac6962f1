package audit

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
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
	longtest.Skip(t)
	t.Parallel()
	entries := traffic(1, 12, 150)
	for name, f := range found(t, caseOf(t, maker{}, entries)) {
		if f.Status != Pass && f.Status != Skipped {
			t.Errorf("without a bug: %s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	for _, b := range internalBugs {
		f := found(t, caseOf(t, planted(b.bug), entries), b.check)[b.check]
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
	if f := found(t, caseOf(t, planted(b), traffic(2, 5, 40)), "non-interference")["non-interference"]; f.Status != Fail {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}

// Another source than that of the output is no proof of it.
func TestOfAnotherSource(t *testing.T) {
	c := caseOf(t, maker{}, traffic(5, 12, 200))
	c.Log = logOf(t, traffic(6, 13, 210))
	if f := found(t, c, "non-interference")["non-interference"]; f.Status != Inconclusive {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}

// What an error says of a source does not carry its name into a result.
func TestFindingsNameNoPath(t *testing.T) {
	c := caseOf(t, maker{}, traffic(10, 3, 10))
	c.Paths = []string{"/logs/of-jane.jsonl"}
	c.Log.Open = func() (*Opened, error) { return nil, errors.New("/logs/of-jane.jsonl:3:7: bad") }
	f := found(t, c, "non-interference")["non-interference"]
	if f.Status != Inconclusive || strings.Contains(f.Why, "jane") || !strings.Contains(f.Why, "the source:3:7: bad") {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}
