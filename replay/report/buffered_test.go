package report

import (
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

// bufferedRun has answers of 8 tokens, of which so many came at once.
func bufferedRun(t *testing.T, atOnce, streamed int) Summary {
	t.Helper()
	var rows []result.Result
	for i := range atOnce + streamed {
		at := int64(i) * 1e8
		r := result.Result{RowID: int64(i), DueNS: at, SentNS: &at, HeadersNS: trace.Ptr(at + 1e6), FirstTokenNS: trace.Ptr(at + 1e8), Events: 8,
			GapsNS: make([]int64, 7), Input: trace.Ptr[int32](9), Output: trace.Ptr[int32](8), OutputFrom: result.FromUsage, WantOutput: trace.Ptr[int32](8), WantInput: 9}
		last := *r.FirstTokenNS
		for g := range r.GapsNS {
			if i >= atOnce {
				r.GapsNS[g] = 1e7
			} else if g == 3 {
				r.GapsNS[g] = 9_000 // a second read of the same answer
			}
			last += r.GapsNS[g]
		}
		r.LastTokenNS, r.DoneNS = &last, trace.Ptr(last+1e6)
		rows = append(rows, r)
	}
	s, err := Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: rows}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Where most answers came at once, nothing between their tokens was measured, and the report
// says why. A few among many are left out, and the others stand.
func TestBuffered(t *testing.T) {
	for _, c := range []struct {
		atOnce, streamed int
		gaps             int64 // that are measured
		said             bool
	}{{20, 0, 0, true}, {11, 9, 0, true}, {2, 18, 18 * 7, false}, {0, 20, 20 * 7, false}, {10, 10, 70, false}} {
		s := bufferedRun(t, c.atOnce, c.streamed)
		l := &s.Latency
		if l.ITLChunk.Count != c.gaps || l.ITLToken.Count != c.gaps || l.TPOT.Count != c.gaps/7 || (l.TPOT.Mean == nil) != c.said {
			t.Errorf("%d of %d at once: %d chunk gaps, %d token gaps, %d TPOT", c.atOnce, c.atOnce+c.streamed, l.ITLChunk.Count, l.ITLToken.Count, l.TPOT.Count)
		}
		if l.FromSent.TTFT.Count != int64(c.atOnce+c.streamed) {
			t.Errorf("%d of %d at once: %d TTFT", c.atOnce, c.atOnce+c.streamed, l.FromSent.TTFT.Count)
		}
		said := false
		for _, w := range s.Warnings {
			said = said || w.Code == warnBuffered && strings.Contains(w.Text, "buffers")
		}
		if said != c.said {
			t.Errorf("%d of %d at once: said is %v", c.atOnce, c.atOnce+c.streamed, said)
		}
		for _, g := range s.ByCategory {
			if (g.TPOTP50 == nil) != c.said {
				t.Errorf("%d of %d at once: TPOT of a group %v", c.atOnce, c.atOnce+c.streamed, g.TPOTP50)
			}
		}
	}
}
