package synth

import (
	"slices"
	"testing"

	"reprise/trace"
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
