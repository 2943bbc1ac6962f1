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
	{bug{name: "ids are hashes without a key", rows: func(e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Blocks = unkeyed(&e[i], len(rows[i].Blocks))
		}
	}}, "ids"},
	{bug{name: "ids in the order of hashes", rows: func(e []trace.Entry, rows []trace.Request) {
		hash := map[uint64]uint64{}
		for i := range rows {
			for j, h := range unkeyed(&e[i], len(rows[i].Blocks)) {
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
	}}, "ids"},
	{bug{name: "the class is kept", rows: func(e []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Class = trace.Ptr("gold")
		}
	}}, "free-text"},
	{bug{name: "the card names a user", meta: func(e []trace.Entry, c *anonymize.Card) {
		c.Risks = append(c.Risks, e[0].User.Reveal())
	}}, "free-text"},
}

// Without a bug every check passes; with one, the check that is for it fails.
func TestPlantedInImport(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	entries := traffic(1, 12, 150)
	for name, f := range found(t, caseOf(t, bug{}, entries)) {
		if f.Status != Pass && f.Status != Skipped {
			t.Errorf("without a bug: %s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	for _, b := range internalBugs {
		f := found(t, caseOf(t, b.bug, entries), b.check)[b.check]
		if f.Status != Fail {
			t.Errorf("%s: %s says %s: %s", b.name, b.check, f.Status, f.Why)
		}
	}
}

// What an error says of a source does not carry its name into a result.
func TestFindingsNameNoPath(t *testing.T) {
	c := drawnCase(t, linkHouse(t), anonymize.UnitUser, nil)
	c.Internal, c.Log = nil, &Log{}
	c.Paths = []string{"/logs/of-jane.jsonl"}
	c.Log.Open = func() (*Opened, error) { return nil, errors.New("/logs/of-jane.jsonl:3:7: bad") }
	f := found(t, c, "times")["times"]
	if f.Status != Inconclusive || strings.Contains(f.Why, "jane") || !strings.Contains(f.Why, "the source:3:7: bad") {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}
