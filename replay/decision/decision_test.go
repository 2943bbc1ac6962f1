package decision

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/trace"
	"reprise/trace/textpage"
)

// small is a workload of prompts of 32,768 tokens, half of them shared by all.
func small(n int) *Workload {
	w := &Workload{Meta: trace.Meta{BlockSize: 512}}
	for i := range uint64(n) {
		var blocks []uint64
		for j := range uint64(64) {
			if j >= 32 {
				j += 32 * i
			}
			blocks = append(blocks, j)
		}
		w.Rows = append(w.Rows, trace.Request{ArrivalNS: int64(i) * 1e8, InputTokens: 32768, OutputTokens: trace.Ptr[int32](4), Blocks: blocks})
	}
	return w
}

func TestCapacityOfALoopedWorkload(t *testing.T) {
	terms, err := contract.Parse("", []byte("clauses: [p95 ttft <= 4s]"))
	if err != nil {
		t.Fatal(err)
	}
	// An engine computes such a prompt in 1.15 s, and there are four.
	w := small(60).WithoutBlocks()
	if got, err := Capacity(t.Context(), w, &terms, bench.Ladder{From: w.expectedRate()}, 1); err != nil || got < 2.8 || got > 3.5 {
		t.Errorf("%.2f req/s, %v", got, err)
	}
	if e := w.expectedRate(); e < 3.2 || e > 3.6 {
		t.Errorf("%.2f req/s are expected", e)
	}
}

func TestRoundsHavePromptsOfTheirOwn(t *testing.T) {
	w := small(60)
	rows := make([]trace.Request, 61)
	if n, err := (&again{w: w}).Read(rows); n != 61 || err != nil {
		t.Fatal(n, err)
	}
	if rows[60].Blocks[0] == rows[0].Blocks[0] || rows[60].InputTokens != rows[0].InputTokens {
		t.Errorf("the second round begins with %v", rows[60])
	}
	if n, err := (&again{w: w, once: true}).Read(rows); n != 60 || err != io.EOF {
		t.Errorf("%d rows of 60, %v", n, err)
	}
}

// A workload leads to the decisions that it leads to itself, and one without its shared
// prefixes to others: it has another capacity, and does not miss a prefix cache.
func TestCompare(t *testing.T) {
	w := small(leastRows)
	var last int64
	same, err := Compare(t.Context(), w, w, Options{Told: func(done int64) { last = done }})
	if err != nil {
		t.Fatal(err)
	}
	if !same.OK || same.Capacity.Difference != 0 || same.Signs.Same != same.Signs.Decide || len(same.Changes) != 20 {
		t.Errorf("a workload beside itself: %+v", same)
	}
	if last != Plays() || last != 4+2*2*21 {
		t.Errorf("told of %d plays of %d", last, Plays())
	}
	other, err := Compare(t.Context(), w, w.WithoutBlocks(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The router sends prompts that share a prefix to the same engines, so that these have
	// less capacity than prompts that are spread evenly.
	if other.OK || other.Capacity.OK || other.Capacity.Cand < 1.2*other.Capacity.Ref {
		t.Errorf("without shared prefixes: %+v", other.Capacity)
	}
	if c := other.Changes[0]; c.Name != "no prefix cache" || c.Ref < 10 || math.Abs(c.Cand) > 0.001 || c.SameSign {
		t.Errorf("without a prefix cache: %+v", c)
	}
	var text bytes.Buffer
	if err := other.WriteText(&text, textpage.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n > textpage.AnswerLines || !strings.Contains(text.String(), "OTHER") {
		t.Errorf("%d lines:\n%s", n, text.String())
	}
	var doc bytes.Buffer
	var back Report
	if err := other.WriteJSON(&doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back.OK || len(back.Changes) != 20 {
		t.Errorf("%v: %s", err, doc.String())
	}
}

func TestCompareRefuses(t *testing.T) {
	if _, err := Compare(t.Context(), small(leastRows), small(10), Options{}); err == nil || !strings.Contains(err.Error(), "the candidate has 10 requests") {
		t.Error(err)
	}
	if err := (&plays{ctx: t.Context(), slots: make(chan struct{}, 1), err: errors.New("x")}).finish(); err == nil {
		t.Error("an error of a play is lost")
	}
}

// The limits: 5 % of capacity, and one other sign where enough changes decide something.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		cand          float64
		decide, other int
		ok            bool
		signs         any // nil when not judged
	}{
		{10.49, 20, 1, true, true}, {10.51, 20, 0, false, true}, {9.51, 20, 2, false, false}, {9.49, 20, 0, false, true},
		{10, 9, 9, true, nil}, {10, 10, 2, false, false},
	} {
		var r Report
		r.Capacity.Ref, r.Capacity.Cand = 10, test.cand
		for i := range 20 {
			r.Changes = append(r.Changes, ChangeResult{Decides: i < test.decide, SameSign: i >= test.other})
		}
		r.judge()
		var signs any
		if r.Signs.OK != nil {
			signs = *r.Signs.OK
		}
		if r.OK != test.ok || signs != test.signs {
			t.Errorf("%+v: %v, signs %v", test, r.OK, signs)
		}
	}
}
