package audit

import (
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// Copies are counted with what chance gives within an octave of both lengths: by hand.
func TestCopiedPairs(t *testing.T) {
	of := func(pairs ...[2]int32) (rows []trace.Request) {
		for _, p := range pairs {
			rows = append(rows, trace.Request{InputTokens: p[0], OutputTokens: trace.Ptr(p[1])})
		}
		return rows
	}
	src := sliceSource(of([2]int32{8, 4}, [2]int32{9, 5}, [2]int32{9, 5}, [2]int32{100, 1}))
	out := sliceSource(of([2]int32{8, 5}, [2]int32{9, 4}, [2]int32{9, 5}, [2]int32{15, 7}, [2]int32{100, 1},
		[2]int32{300, 300}))
	got, err := copiedPairs(t.Context(), src, out)
	// Of the four of 8 to 15 by 4 to 7: one 8 and one 4, two 9 and two 5. And (100, 1) is alone.
	if want := (pairCopies{Rows: 6, Copied: 2, Chance: 1./4 + 2.*2/4 + 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, c := range []struct {
		p    pairCopies
		want bool
	}{{pairCopies{1000, 100, 97}, false}, {pairCopies{1000, 40, 10}, true}, {pairCopies{1000, 20, 10}, false}, {pairCopies{100000, 540, 100}, false}} {
		if c.p.Beyond() != c.want {
			t.Errorf("%+v: %v", c.p, !c.want)
		}
	}
	house := linkHouse(t)
	copied := drawnCase(t, house, anonymize.UnitUser, func(rows []trace.Request) {
		_ = eachRow(t.Context(), sourceOf(house), func(i int64, r *trace.Request) error {
			if i%20 == 0 && int(i) < len(rows) {
				rows[i].InputTokens, rows[i].OutputTokens = r.InputTokens, r.OutputTokens
			}
			return nil
		})
	})
	if f := linkage(t.Context(), copied); f.Status != Fail || !strings.Contains(f.Why, "rows of the source come out") {
		t.Errorf("a twentieth copied: %s, %s", f.Status, f.Why)
	}
}

// What is of another capture than the output is no source of it.
func TestLinkageOfAnotherCapture(t *testing.T) {
	c := drawnCase(t, linkHouse(t), anonymize.UnitUser, nil)
	c.Output.Meta["capture_ids"], c.Internal.Meta.Captures = "a", "b"
	if f := linkage(t.Context(), c); !f.broken || !strings.Contains(f.Why, "another capture") {
		t.Errorf("%+v", f)
	}
}
