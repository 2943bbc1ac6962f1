package audit

import (
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// namedRows are rows with names of every kind, and some with none.
func namedRows() []trace.Request {
	return []trace.Request{
		{ArrivalNS: 0, InputTokens: 7, OutputTokens: 3, Blocks: []uint64{0, 1}},
		{ArrivalNS: 5, Session: trace.Ptr(int64(2)), User: trace.Ptr(int64(1)), Model: "model-0", Adapter: "adapter-0", Class: trace.Ptr("class-0"),
			Replica: trace.Ptr("replica-0"), Kind: "chat", Status: trace.StatusOK, Blocks: []uint64{0, 2}, OutputBlocks: []uint64{3, 8}},
		{ArrivalNS: 9, Session: trace.Ptr(int64(0)), User: trace.Ptr(int64(4)), Class: trace.Ptr("")},
	}
}

func sliceSource(rows []trace.Request) anonymize.Source {
	return anonymize.Source{Open: func() (trace.Reader[trace.Request], error) { return &trace.SliceReader[trace.Request]{Rows: rows}, nil }}
}

func TestExtentOfASource(t *testing.T) {
	got, err := extentOf(t.Context(), sliceSource(namedRows()))
	if want := (extent{rows: 3, blocks: 9, sessions: 3, users: 5, last: 9}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := extentOf(t.Context(), sliceSource(nil)); err != nil || got != (extent{}) {
		t.Errorf("of no rows: %+v, %v", got, err)
	}
}

// A renamed source differs in every name and in the distance of its arrivals, and in
// nothing else; the rows that it was made of stay as they are.
func TestRenamedSource(t *testing.T) {
	rows := namedRows()
	n := renamed{blocks: permutation{10, 3, 1}, sessions: permutation{3, 1, 1}, users: permutation{5, 2, 3}, shift: 100}
	reader, err := n.source(sliceSource(rows)).Open()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]trace.Request, 4)
	read, err := reader.Read(got)
	if read != 3 || err != io.EOF {
		t.Fatalf("%d rows, %v", read, err)
	}
	want := []trace.Request{
		{ArrivalNS: 100, InputTokens: 7, OutputTokens: 3, Blocks: []uint64{1, 4}},
		{ArrivalNS: 105, Session: trace.Ptr(int64(0)), User: trace.Ptr(int64(0)), Model: "xmodel-0", Adapter: "xadapter-0", Class: trace.Ptr("xclass-0"),
			Replica: trace.Ptr("xreplica-0"), Kind: "chat", Status: trace.StatusOK, Blocks: []uint64{1, 7}, OutputBlocks: []uint64{0, 5}},
		{ArrivalNS: 109, Session: trace.Ptr(int64(1)), User: trace.Ptr(int64(1)), Class: trace.Ptr("")},
	}
	if !reflect.DeepEqual(got[:3], want) {
		t.Errorf("%+v, want %+v", got[:3], want)
	}
	if !reflect.DeepEqual(rows, namedRows()) {
		t.Errorf("the source is now %+v", rows)
	}
}

// Fewer than two numbers have one order; of more the draw is any that has an inverse.
func TestPermutationOfFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int64{-1, 0, 1} {
		if p := newPermutation(rng, n); p != (permutation{1, 0, 0}) {
			t.Errorf("of %d: %+v", n, p)
		}
	}
	drawn := map[permutation]bool{}
	for range 400 {
		drawn[newPermutation(rng, 6)] = true
	}
	for _, a := range []uint64{1, 5} { // what shares no factor with 6
		for c := range uint64(6) {
			if !drawn[permutation{6, a, c}] {
				t.Errorf("%d·x + %d was never drawn", a, c)
			}
		}
	}
	if len(drawn) != 12 {
		t.Errorf("%d were drawn: %v", len(drawn), drawn)
	}
}
