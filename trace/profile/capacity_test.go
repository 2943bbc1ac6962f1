package profile

import (
	"math"
	"slices"
	"testing"
)

// Whatever the size of a block, capacities ascend, are whole and do not overflow.
func TestListedCapacities(t *testing.T) {
	for _, size := range []int{math.MinInt, -1, 0, 1, 7, 16, 500, 512, 1e6, 3e6, 1 << 31, 1 << 40, math.MaxInt} {
		list := listedCapacities(size, 0)
		if len(list) == 0 || len(list) > 60 {
			t.Errorf("blocks of %d: %d capacities", size, len(list))
		}
		checkCapacities(t, size, list)
		for _, kvBytes := range []int64{1, 70_272, 131_072, MaxKVBytesPerToken} {
			list := listedCapacities(size, kvBytes)
			checkCapacities(t, size, list)
			rounds := 0
			for _, c := range list {
				if c.gib > 0 {
					rounds++
					if c.tokens != c.gib<<30/kvBytes {
						t.Errorf("blocks of %d: %d GiB hold %d tokens of %d bytes", size, c.gib, c.tokens, kvBytes)
					}
				}
			}
			if size < 1<<30 && (rounds > 0) != (size > 0) || len(list) > 100 {
				t.Errorf("blocks of %d: %d of %d capacities in GiB", size, rounds, len(list))
			}
		}
	}
	if list := listedCapacities(500, 0); !slices.Contains(list, capacity{2000, 1_000_000, 0}) ||
		!slices.Contains(list, capacity{30_000, 15_000_000, 0}) || !slices.Contains(list, capacity{200_000, 100_000_000, 0}) {
		t.Errorf("blocks of 500: %v", list)
	}
	if got := upTo(listedCapacities(512, 0), 2000); !slices.Equal(got, []capacity{{1000, 512_000, 0}, {1953, 1_000_000, 0}, {2000, 1_024_000, 0}}) {
		t.Errorf("up to 2,000 blocks: %v", got)
	}
}

func checkCapacities(t *testing.T, size int, list []capacity) {
	t.Helper()
	for i, c := range list {
		if c.blocks < 1 || c.tokens < 0 || (c.tokens > 0) != (size > 0) && size < 1<<30 ||
			c.tokens > 0 && c.tokens/int64(size) != c.blocks {
			t.Errorf("blocks of %d: a capacity of %+v", size, c)
		}
		if i > 0 && (c.blocks < list[i-1].blocks || c == list[i-1]) {
			t.Errorf("blocks of %d: %+v follows %+v", size, c, list[i-1])
		}
	}
	if size < 1<<30 && list[len(list)-1].blocks < math.MaxUint32 {
		t.Errorf("blocks of %d: the largest cache holds %d", size, list[len(list)-1].blocks)
	}
}
