package synth

import (
	"cmp"
	"slices"
)

// A stretch is a part of a path: the nodes of a run from its beginning down to
// depth `to`, with how many requests carry each.
type stretch struct {
	run, to  int32
	carriers []int64 // by node, from the run's first
}

// common returns, for each of n domains, the path of the nodes that more than
// half of its requests with blocks carry. Chained ids make it one path from a
// root. domain tells the domain of each request; nil is domain 0 for all.
func (f *forest) common(domain []uint16, n int) [][]stretch {
	of := func(r int) uint16 {
		if domain == nil {
			return 0
		}
		return domain[r]
	}
	below := make([]int64, len(f.runs)) // requests that carry the first node of a run
	in := make([]uint16, len(f.runs))   // domain of a run
	requests := make([]int64, n)
	for r, x := range f.leaf {
		if x != none {
			below[x]++
			in[x] = of(r)
			requests[of(r)]++
		}
	}
	for x := len(f.runs) - 1; x >= 0; x-- {
		if up := f.runs[x].parent; up != none {
			below[up] += below[x]
		}
	}
	paths := make([][]stretch, n)
	at := slices.Repeat([]stretch{{run: none}}, n) // how far each path goes so far
	for {
		next := map[int32]uint16{} // runs that go on
		for c := range f.runs {
			d := in[c]
			if u := &f.runs[c]; u.parent == at[d].run && u.start == at[d].to && 2*below[c] > requests[d] {
				next[int32(c)] = d
			}
		}
		if len(next) == 0 {
			return paths
		}
		for x, list := range f.exits(next, below) {
			d := next[x]
			at[d] = f.follow(x, list, below[x], requests[d])
			paths[d] = append(paths[d], at[d])
		}
	}
}

// An exit is where requests leave a run, or end in it.
type exit struct {
	depth int32
	count int64
}

// exits lists those of some runs.
func (f *forest) exits(runs map[int32]uint16, below []int64) map[int32][]exit {
	out := map[int32][]exit{}
	for r, x := range f.leaf {
		if _, ok := runs[x]; ok {
			out[x] = append(out[x], exit{f.length[r], 1})
		}
	}
	for c := range f.runs {
		u := &f.runs[c]
		if _, ok := runs[u.parent]; ok {
			out[u.parent] = append(out[u.parent], exit{u.start, below[c]})
		}
	}
	return out
}

// follow goes down run x for as long as more than half of n requests do.
func (f *forest) follow(x int32, exits []exit, left, n int64) stretch {
	slices.SortFunc(exits, func(a, b exit) int { return cmp.Compare(a.depth, b.depth) })
	s := stretch{run: x, to: f.runs[x].start}
	for _, e := range exits {
		if 2*left <= n {
			break
		}
		for s.to < e.depth {
			s.to++
			s.carriers = append(s.carriers, left)
		}
		left -= e.count
	}
	return s
}
