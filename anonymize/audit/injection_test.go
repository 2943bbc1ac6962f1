package audit

import (
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// The accounts of somebody who guesses send the victim's prompt, or the same with
// another end, after all others and under names of their own.
func TestAttackers(t *testing.T) {
	victim := trace.Request{ArrivalNS: 3, InputTokens: 40, OutputTokens: 7, Kind: "chat", Model: "model-1", Adapter: "adapter-2", Blocks: []uint64{4, 9},
		User: trace.Ptr(int64(1)), Session: trace.Ptr(int64(2)), Status: "error", Class: trace.Ptr("class-0")}
	x := extent{rows: 10, blocks: 20, sessions: 5, users: 6, last: 99}
	of := func(account int64, blocks ...uint64) trace.Request {
		return trace.Request{ArrivalNS: 99, InputTokens: 40, OutputTokens: 7, Kind: "chat", Model: "model-1", Adapter: "adapter-2", Status: trace.StatusOK,
			User: trace.Ptr(6 + account), Session: trace.Ptr(5 + account), Turn: trace.Ptr(int32(0)), Blocks: blocks}
	}
	if got, want := attackers(x, &victim, 2, true), []trace.Request{of(0, 4, 9), of(1, 4, 9)}; !reflect.DeepEqual(got, want) {
		t.Errorf("right: %+v, want %+v", got, want)
	}
	if got, want := attackers(x, &victim, 2, false), []trace.Request{of(0, 4, 20), of(1, 4, 20)}; !reflect.DeepEqual(got, want) {
		t.Errorf("wrong: %+v, want %+v", got, want)
	}
	if victim.Blocks[1] != 9 {
		t.Errorf("the victim is now %+v", victim)
	}
}

// Rows behind those of a source come after them, in batches of any size.
func TestRowsBehindASource(t *testing.T) {
	rows := func(n, from int) (out []trace.Request) {
		for i := range n {
			out = append(out, trace.Request{InputTokens: int32(from + i), Blocks: []uint64{uint64(i)}})
		}
		return out
	}
	for _, size := range []int{1, 2, 3, 10} {
		for _, first := range []int{0, 1, 4} {
			more := rows(3, 100)
			r, err := withRows(sliceSource(rows(first, 0)), more).Open()
			if err != nil {
				t.Fatal(err)
			}
			var got []trace.Request
			for err == nil {
				batch := make([]trace.Request, size)
				var n int
				n, err = r.Read(batch)
				got = append(got, batch[:n]...)
			}
			if want := append(rows(first, 0), rows(3, 100)...); err != io.EOF || !reflect.DeepEqual(got, want) {
				t.Errorf("%d rows in batches of %d: %v, %+v", first, size, err, got)
			}
			got[len(got)-1].Blocks[0] = 77 // a reader may keep what it got
			if more[2].Blocks[0] != 2 {
				t.Error("rows share their lists with those that are read")
			}
		}
	}
}

// A victim's last block is of one request alone. Who names nobody is no victim where
// the unit is a user or a session.
func TestVictims(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	rows := []trace.Request{
		{InputTokens: 0, Blocks: []uint64{0, 1}, User: id(0)},
		{InputTokens: 1, Blocks: []uint64{0, 2}, User: id(1), Session: id(0)},
		{InputTokens: 2, Blocks: []uint64{0, 2, 3}, User: id(2)}, // goes on behind the one before
		{InputTokens: 3, Blocks: []uint64{0, 4}, Session: id(1)},
		{InputTokens: 4, User: id(3), Session: id(2)}, // without blocks
		{InputTokens: 5, Blocks: []uint64{5}, User: id(4), Session: id(3)},
		{InputTokens: 6, Blocks: []uint64{6}, User: id(5), Session: id(4)},
		{InputTokens: 7, Blocks: []uint64{7}, User: id(6), Session: id(5)},
	}
	for unit, want := range map[string][]int32{
		anonymize.UnitUser:    {0, 2, 5, 6},
		anonymize.UnitSession: {3, 5, 6, 7},
		anonymize.UnitRequest: {0, 2, 3, 5},
	} {
		got, err := pickVictims(t.Context(), rand.New(rand.NewPCG(1, 1)), sliceSource(rows), unit)
		var in []int32
		for _, r := range got {
			in = append(in, r.InputTokens)
		}
		if err != nil || !reflect.DeepEqual(in, want) {
			t.Errorf("of unit %s: %v, %v, want %v", unit, in, err, want)
		}
	}
	if got, err := pickVictims(t.Context(), nil, sliceSource(rows[:2]), anonymize.UnitSession); err != nil || !reflect.DeepEqual(got, rows[1:2]) {
		t.Errorf("a victim is %+v, %v, want the row as it is", got, err)
	}
	// Of more than are kept, late ones are drawn as well as early ones.
	var many []trace.Request
	for i := range 6400 {
		many = append(many, trace.Request{InputTokens: int32(i), Blocks: []uint64{uint64(i)}})
	}
	late := 0
	for seed := range uint64(50) {
		got, err := pickVictims(t.Context(), rand.New(rand.NewPCG(seed, 1)), sliceSource(many), anonymize.UnitRequest)
		if err != nil || len(got) != victims {
			t.Fatal(len(got), err)
		}
		for _, r := range got {
			if r.InputTokens >= 3200 {
				late++
			}
		}
	}
	if late < 70 || late > 130 { // about 100 of 200, with a standard error of 7
		t.Errorf("%d of 200 are of the later half", late)
	}
}

// What the check says of a release, whole.
func TestInjectionFindings(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	var house []trace.Request // 40 users behind one beginning, in two prompts each
	for i := range int64(80) {
		house = append(house, trace.Request{ArrivalNS: i * 1e9, InputTokens: 32, OutputTokens: 5, User: id(i % 40), Kind: "chat", Status: trace.StatusOK,
			Blocks: []uint64{0, uint64(1 + i)}})
	}
	shared := make([]trace.Request, len(house)) // each prompt twice
	for i, r := range house {
		r.Blocks = []uint64{0, uint64(1 + i/2)}
		shared[i] = r
	}
	release := func(k int, rows []trace.Request) *Case {
		return linkReleased(t, linkTrace(t, trace.Meta{Tier: anonymize.Internal, BlockSize: 16, Convention: trace.PartialTail}, rows),
			anonymize.PartnerPolicy{Unit: anonymize.UnitUser, KShare: k, KClass: 5}, nil)
	}
	for name, c := range map[string]struct {
		of   *Case
		want Finding
	}{
		"two must share": {release(2, house), failed(Figures{"k_share": 2, "accounts": 0},
			"k_share of 2: somebody with one account can test guesses at what others sent; it takes 3 or more")},
		"three must share": {release(3, house), Finding{Status: Pass, Why: "right and wrong guesses of 1 accounts give the same release; with k_share of 2 they would not", Seed: "1",
			Figures: Figures{"k_share": 3, "accounts": 1, "prompts_guessed_at": 4, "guesses_confirmed": 0, "confirmed_where_they_must_be": 4}}},
		"six must share": {release(6, house), Finding{Status: Pass, Why: "right and wrong guesses of 4 accounts give the same release; with k_share of 5 they would not", Seed: "1",
			Figures: Figures{"k_share": 6, "accounts": 4, "prompts_guessed_at": 4, "guesses_confirmed": 0, "confirmed_where_they_must_be": 4}}},
		"nobody is alone": {release(5, shared), Finding{Status: Inconclusive, Why: "no prompt was found that is of one user alone, so there is nothing to guess at", Seed: "1",
			Figures: Figures{"k_share": 5, "accounts": 3, "prompts_guessed_at": 0}}},
	} {
		if f := injection(t.Context(), c.of); !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
	off := release(5, house) // a maker that shares all, and one that shares nothing
	off.maker = planted(bug{release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.KShare = 1 }})
	if f := injection(t.Context(), off); f.Status != Fail || f.Why != "4 of 4 right guesses of 3 accounts show in the release" || f.Figures["guesses_confirmed"] != 4 {
		t.Errorf("all is shared: %+v", f)
	}
	off.maker = planted(bug{release: func(p *anonymize.PartnerPolicy, _ anonymize.Source) { p.KShare = 1000 }})
	if f := injection(t.Context(), off); f.Status != Inconclusive || f.Why != "right guesses do not show even where they must, with k_share of 4: the check is blind" || f.Figures["confirmed_where_they_must_be"] != 0 {
		t.Errorf("nothing is shared: %+v", f)
	}
}
