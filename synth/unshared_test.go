package synth

import (
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

func TestUnshared(t *testing.T) {
	shared := []uint64{0, 1, 2, 3} // two rows of one array, as a decoder may keep them
	rows := []trace.Request{
		{InputTokens: 40, Blocks: shared[:2]},
		{InputTokens: 32, Blocks: shared[2:]},
		{InputTokens: 33},
		{InputTokens: 0},
		{InputTokens: 16, Blocks: []uint64{0, 1}},
	}
	want := [][]uint64{{0, 1, 10}, {2, 3}, {11, 12, 13}, nil, {0, 1}}
	src := &trace.SliceReader[trace.Request]{Rows: rows}
	for i, r := range readAll(t, &Unshared{Src: src, BlockSize: 16, Next: 10}) {
		if !slices.Equal(r.Blocks, want[i]) {
			t.Errorf("row %d: got blocks %v, want %v", i, r.Blocks, want[i])
		}
	}
	if !slices.Equal(shared, []uint64{0, 1, 2, 3}) {
		t.Errorf("the lists of other rows became %v", shared)
	}
}

// A burst of equal rows must not be served from each other's cache.
func TestUnsharedTellsEqualRowsApart(t *testing.T) {
	p := newTestPrompter(t, "o200k_base", 16)
	burst := make([]trace.Request, 1000)
	for i := range burst {
		burst[i].InputTokens = 100
	}
	seen := map[[headTokens]uint32]bool{}
	for _, r := range readAll(t, &Unshared{Src: cloned(burst), BlockSize: 16}) {
		ids := tokensOf(t, p, &r)
		if len(ids) != 100 {
			t.Fatalf("%d tokens, want 100", len(ids))
		}
		seen[[headTokens]uint32(ids)] = true
	}
	if len(seen) != len(burst) {
		t.Errorf("%d rows have %d different beginnings", len(burst), len(seen))
	}
}

func newTestPrompter(t testing.TB, encoding string, blockSize int, opts ...Option) *Prompter {
	t.Helper()
	e, err := token.Open(encoding)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPrompter(e.Words(), 1, blockSize, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tokensOf(t testing.TB, p *Prompter, r *trace.Request) []uint32 {
	t.Helper()
	ids, err := p.Tokens(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
