package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// withIDs makes a request of a model with ids of blocks.
func withIDs(at, took, model string, out int, ids ...int) string {
	return fmt.Sprintf(`{'t':%s,'type':'s','model':'%s','in':%d,'out':%d,'hash_ids':%s,'api_time':%s}`, at, model, 4*len(ids), out, strings.ReplaceAll(fmt.Sprint(ids), " ", ","), took)
}

// Agents whose requests nobody told apart, by what their prompts begin with: which thread
// each request is of, and what it waits for.
func TestWekaChains(t *testing.T) {
	for name, c := range map[string]struct {
		requests []string
		threads  string
		after    string
	}{
		"one agent":           {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "1", "m", 9, 1, 2, 3), withIDs("4", "1", "m", 9, 1, 2, 3, 4)}, "0 0 0", "[] [0] [1]"},
		"another, and back":   {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "1", "m", 9, 7), withIDs("4", "1", "m", 9, 7, 8), withIDs("6", "1", "m", 9, 1, 2, 3)}, "0 1 1 0", "[] [0] [1] [0 2]"},
		"of a common trunk":   {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "1", "m", 9, 1, 8), withIDs("4", "1", "m", 9, 1, 2, 3)}, "0 1 0", "[] [0] [0 1]"},
		"a cut context":       {[]string{withIDs("0", "1", "m", 9, 1, 2, 3), withIDs("2", "1", "m", 9, 1, 8), withIDs("4", "1", "m", 9, 1, 8, 9)}, "0 0 0", "[] [0] [1]"},
		"a cut, too late":     {[]string{withIDs("0", "1", "m", 9, 1, 2, 3), withIDs("3602", "1", "m", 9, 1, 8)}, "0 1", "[] [0]"},
		"late, but most of":   {[]string{withIDs("0", "1", "m", 9, 1, 2, 3), withIDs("3602", "1", "m", 9, 1, 2, 8)}, "0 0", "[] [0]"},
		"a cut while it runs": {[]string{withIDs("0", "9", "m", 9, 1, 2, 3), withIDs("2", "1", "m", 9, 1, 8)}, "0 1", "[] []"},
		"another model":       {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "1", "n", 9, 1, 2, 3), withIDs("4", "1", "m", 9, 1, 2, 3)}, "0 1 0", "[] [0] [0 1]"},
		"both of two cuts":    {[]string{withIDs("0", "1", "m", 9, 1, 2, 3), withIDs("2", "1", "m", 9, 1, 8), withIDs("4", "1", "m", 9, 1, 2, 9)}, "0 1 0", "[] [0] [0 1]"},
		"a title first":       {[]string{withIDs("0", "1", "n", 9, 7), withIDs("2", "1", "m", 9, 1, 2), withIDs("4", "1", "m", 9, 1, 2, 3)}, "0 0 0", "[] [0] [1]"},
		"a long title first":  {[]string{withIDs("0", "1", "n", 99, 7, 2), withIDs("2", "1", "m", 9, 1, 2), withIDs("4", "1", "m", 9, 1, 2, 3)}, "0 1 1", "[] [0] [1]"},
		"side by side": {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "9", "m", 9, 1, 7), withIDs("3", "2", "m", 9, 1, 8), withIDs("6", "1", "m", 9, 1, 8, 9), withIDs("8", "1", "m", 9, 1, 2, 3), withIDs("12", "1", "m", 9, 1, 2, 3, 4)},
			"0 1 2 2 0 0", "[] [0] [0] [2] [0 3] [1 4]"},
		"without ids": {[]string{withIDs("0", "1", "m", 9, 1, 2), withIDs("2", "1", "m", 9), withIDs("4", "1", "m", 9, 7), withIDs("6", "1", "m", 9, 1, 2, 3)}, "0 0 1 0", "[] [0] [1] [1 2]"},
		"in a subagent": {[]string{withIDs("0", "1", "m", 9, 1, 2), lasting("2", "9000", withIDs("2", "1", "m", 9, 7, 8), withIDs("4", "1", "m", 9, 7, 9), withIDs("6", "1", "m", 9, 7, 8, 8)), withIDs("12", "1", "m", 9, 1, 2, 3)},
			"0 1 2 1 0", "[] [0] [0 1] [1 2] [0 2 3]"},
	} {
		all, _ := mustRead(t, conversationOf("a", c.requests...), Options{})
		var threads, after []string
		for i := range all {
			threads, after = append(threads, fmt.Sprint(*all[i].Thread)), append(after, fmt.Sprint(all[i].Parents))
		}
		if got := strings.Join(threads, " "); got != c.threads {
			t.Errorf("%s: threads %s, want %s", name, got, c.threads)
		}
		if got := strings.Join(after, " "); got != c.after {
			t.Errorf("%s: after %s, want %s", name, got, c.after)
		}
	}
}

// Whatever the ids: a request waits, directly or by others, for all of its list that was over
// when it began, and every request is in one thread, whose requests follow each other.
func TestWekaChainsOfAny(t *testing.T) {
	for seed := range uint64(300) {
		next := func(n uint64) uint64 { // splitmix64
			seed += 0x9e3779b97f4a7c15
			z := seed
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			return (z ^ z>>31) % n
		}
		var requests []string
		at := uint64(0)
		for range 2 + next(12) {
			at += next(5)
			ids := []int{}
			for range next(5) {
				ids = append(ids, int(next(3)))
			}
			requests = append(requests, withIDs(fmt.Sprint(at), fmt.Sprint(next(6)), []string{"m", "n"}[next(2)], int(next(100)), ids...))
		}
		all, _ := mustRead(t, conversationOf("a", requests...), Options{})
		before := make([]map[int64]bool, len(all)) // all that a request waits for, directly or by others
		turns := map[int32]int32{}
		overlap := map[int32]bool{} // threads of which requests without ids were under way at one time
		for i := range all {
			for k := range i {
				if *all[k].Thread == *all[i].Thread && all[k].Time.Add(*all[k].E2E).After(all[i].Time) {
					overlap[*all[i].Thread] = true
				}
			}
		}
		for i := range all {
			before[i] = map[int64]bool{}
			for _, p := range all[i].Parents {
				before[i][p] = true
				for q := range before[p] {
					before[i][q] = true
				}
			}
			if !slices.IsSorted(all[i].Parents) || *all[i].Turn != turns[*all[i].Thread] {
				t.Fatalf("%v: row %d has turn %d, parents %v", requests, i, *all[i].Turn, all[i].Parents)
			}
			turns[*all[i].Thread]++
			for k := range i {
				over := !all[k].Time.Add(*all[k].E2E).After(all[i].Time)
				if over && all[k].Time.Before(all[i].Time) && !overlap[*all[k].Thread] && !overlap[*all[i].Thread] && !before[i][int64(k)] {
					t.Fatalf("%v: row %d does not wait for row %d, which was over: %v", requests, i, k, all[i].Parents)
				}
			}
		}
	}
}
