package block

import (
	"math"
	"testing"
)

// TestConvert compares with the blocks laid out one token at a time.
func TestConvert(t *testing.T) {
	for size := 1; size <= 7; size++ {
		for prompt := range 40 {
			full, begun := 0, 0
			for token := range prompt {
				if token%size == 0 {
					begun++
				}
				if token%size == size-1 {
					full++
				}
			}
			if Count(prompt, size) != begun || Full(prompt, size) != full {
				t.Errorf("%d tokens at %d: %d blocks, %d full", prompt, size, Count(prompt, size), Full(prompt, size))
			}
			for hit := range 45 {
				known := 0
				for token := range prompt {
					if token/size < hit {
						known++
					}
				}
				if got := Known(hit, prompt, size); got != known {
					t.Errorf("%d blocks hit of %d tokens at %d: %d known, want %d", hit, prompt, size, got, known)
				}
			}
			for known := range 45 {
				reused := 0
				for end := size; end <= known && end <= prompt-1; end += size {
					reused = end
				}
				if got := Reusable(known, prompt, size); got != reused {
					t.Errorf("%d known of %d at %d: %d reusable, want %d", known, prompt, size, got, reused)
				}
			}
		}
	}
}

func TestReusable(t *testing.T) {
	tests := []struct{ known, prompt, size, want int }{
		{0, 100, 16, 0},
		{15, 100, 16, 0},
		{16, 100, 16, 16},
		{31, 100, 16, 16},
		{100, 100, 16, 96},
		{97, 97, 16, 96},
		{96, 96, 16, 80}, // known whole, a multiple of the size: the last block is computed again
		{96, 97, 16, 96}, // one token more, and it is not
		{512, 512, 512, 0},
		{512, 513, 512, 512},
		{512, 1000, 16, 512},
		{16, 16, 16, 0},
		{1, 1, 1, 0},
		{2, 2, 1, 1},
		{0, 0, 16, 0},
		{5, 0, 1, 0},
		{200, 100, 16, 96}, // a hit on blocks that reach beyond the prompt
	}
	for _, tt := range tests {
		if got := Reusable(tt.known, tt.prompt, tt.size); got != tt.want {
			t.Errorf("Reusable(%d, %d, %d) is %d, want %d", tt.known, tt.prompt, tt.size, got, tt.want)
		}
	}
}

// TestConvertEdges: nothing panics or overflows on numbers that a damaged file may hold.
func TestConvertEdges(t *testing.T) {
	for _, size := range []int{math.MinInt, -1, 0} {
		if Count(5, size) != 0 || Full(5, size) != 0 || Known(1, 5, size) != 0 || Reusable(5, 5, size) != 0 {
			t.Errorf("blocks of size %d exist", size)
		}
	}
	for _, n := range []int{math.MinInt, -1} {
		if Count(n, 16) != 0 || Full(n, 16) != 0 || Known(1, n, 16) != 0 || Known(n, 5, 16) != 0 || Reusable(n, 5, 16) != 0 {
			t.Errorf("%d tokens make blocks", n)
		}
	}
	if got := Known(math.MaxInt, 100, 16); got != 100 {
		t.Errorf("all blocks and more of 100 tokens cover %d", got)
	}
	if got := Count(math.MaxInt, 2); got != math.MaxInt/2+1 {
		t.Errorf("Count(MaxInt, 2) is %d", got)
	}
}
