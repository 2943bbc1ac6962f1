package datasets

import (
	"cmp"
	"slices"
	"time"
)

// A list of requests may be of several agents whose requests nobody told apart. They are told
// by their blocks, by the rules that AIPerf 0.13 has for it:
//
//   - A request goes on with the chain whose last request had ended by then, was to the same
//     model, and whose ids its own begin with; of several, with the longest.
//   - Any other leaves the chain with which it shares the most at the beginning. It is the
//     same agent after a cut of its context if nothing went on from the longer state that
//     it left, to the same model; of several such, the one that shares the most. Where less
//     than half is shared, it must come within an hour.
//   - Else it begins a chain of its own: another agent.
//   - A first request that shares nothing with any other, such as one that asks for a title,
//     is of the main chain all the same.
//   - Requests without ids are of the main chain.
const (
	seamGap     = time.Hour // longest pause before a cut context that shares less than half
	titleTokens = 64        // most that a request for a title answers
)

// A wekaChain is the requests of one agent in a list.
type wekaChain struct {
	calls []int // of the list, in the order of their times
	tail  int   // the last one with ids, or -1
	from  int   // the request that it left another chain after, or -1
	depth int   // ids that it shares with that one
	into  int   // the chain that it goes on with, or -1
}

// chainsOf says for each request of a list which chain it is of: 0 is the main one, the
// others are numbered by their first requests.
func chainsOf(calls []wekaCall) []int {
	f := wekaChains{calls: calls, of: make([]int, len(calls)), leaving: map[int][]int{}}
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calls[a].at, calls[b].at) })
	alone := len(order) > 1 && f.standsAlone(order)
	if alone {
		order = order[1:]
	}
	for _, i := range order {
		f.place(i)
	}
	f.join()
	numbers := map[int]int{}
	for _, i := range order {
		k := f.end(f.of[i])
		if _, ok := numbers[k]; !ok {
			numbers[k] = len(numbers)
		}
	}
	for i := range f.of {
		f.of[i] = numbers[f.end(f.of[i])] // also of one that stands alone, which chain 0 begins with
	}
	return f.of
}

// wekaChains are those found so far.
type wekaChains struct {
	calls   []wekaCall
	chains  []wekaChain
	of      []int         // chain of each request
	leaving map[int][]int // chains by the request that they left another after
}

// standsAlone tells whether the first request shares nothing with the others.
func (f *wekaChains) standsAlone(order []int) bool {
	first := &f.calls[order[0]]
	if len(first.HashIDs) == 0 {
		return false
	}
	own := map[uint64]bool{}
	for _, id := range first.HashIDs {
		own[id] = true
	}
	long := *first.Out > titleTokens
	for _, i := range order[1:] {
		ids := f.calls[i].HashIDs
		if len(ids) > 0 && ids[0] == first.HashIDs[0] ||
			long && slices.ContainsFunc(ids, func(id uint64) bool { return own[id] }) {
			return false
		}
	}
	return true
}

// place finds the chain of the next request.
func (f *wekaChains) place(i int) {
	c := &f.calls[i]
	if len(f.chains) == 0 {
		f.chains = append(f.chains, wekaChain{tail: -1, from: -1, into: -1})
	}
	if len(c.HashIDs) == 0 || !slices.ContainsFunc(f.chains, func(k wekaChain) bool { return k.tail >= 0 }) {
		f.add(0, i)
		return
	}
	goes, leaves, longest, depth := -1, -1, 0, 0
	for k := range f.chains {
		t := f.chains[k].tail
		if t < 0 {
			continue
		}
		tail := &f.calls[t]
		n, shared := len(tail.HashIDs), sharedIDs(tail.HashIDs, c.HashIDs)
		if shared == n && n > longest && tail.Model == c.Model && tail.end <= c.at+joinSlack {
			goes, longest = k, n
		}
		if shared > depth || shared > 0 && shared == depth && n > len(f.calls[f.chains[leaves].tail].HashIDs) {
			leaves, depth = k, shared
		}
	}
	if goes < 0 {
		goes = len(f.chains)
		f.chains = append(f.chains, wekaChain{tail: -1, from: -1, into: -1})
		if leaves >= 0 {
			t := f.chains[leaves].tail
			f.chains[goes].from, f.chains[goes].depth = t, depth
			f.leaving[t] = append(f.leaving[t], goes)
		}
	}
	f.add(goes, i)
}

func (f *wekaChains) add(chain, i int) {
	k := &f.chains[chain]
	k.calls = append(k.calls, i)
	f.of[i] = chain
	if len(f.calls[i].HashIDs) > 0 {
		k.tail = i
	}
}

// end is the chain that a chain goes on with in the end.
func (f *wekaChains) end(chain int) int {
	for f.chains[chain].into >= 0 {
		chain = f.chains[chain].into
	}
	return chain
}

// join puts chains together that are one agent whose context was cut.
func (f *wekaChains) join() {
	var open []int // requests that chains leave after, those to look at
	for t := range f.leaving {
		open = append(open, t)
	}
	slices.Sort(open)
	for len(open) > 0 {
		t := open[0]
		open = open[1:]
		owner := f.end(f.of[t])
		if f.chains[owner].tail != t {
			continue // something went on from it
		}
		left := slices.DeleteFunc(slices.Clone(f.leaving[t]), func(k int) bool {
			return f.chains[k].into >= 0 || f.chains[k].from != t
		})
		next := f.goesOn(t, left)
		if next < 0 {
			continue
		}
		to, more := &f.chains[owner], &f.chains[next]
		to.calls, to.tail, more.into = append(to.calls, more.calls...), more.tail, owner
		// The others leave what the chain is now.
		again := false
		for _, k := range left {
			if d := sharedIDs(f.calls[to.tail].HashIDs, f.calls[f.chains[k].calls[0]].HashIDs); k != next && d > 0 {
				f.chains[k].from, f.chains[k].depth = to.tail, d
				f.leaving[to.tail] = append(f.leaving[to.tail], k)
				again = true
			}
		}
		if at, found := slices.BinarySearch(open, to.tail); again && !found {
			open = slices.Insert(open, at, to.tail)
		}
	}
}

// goesOn is which of the chains that left another after a request, its last, is the same
// agent, or -1.
func (f *wekaChains) goesOn(t int, left []int) int {
	tail, best := &f.calls[t], -1
	for _, k := range left {
		c := &f.chains[k]
		first := &f.calls[c.calls[0]]
		if tail.end > first.at+joinSlack || first.Model != tail.Model || first.at-tail.end > seamGap &&
			2*c.depth < len(tail.HashIDs) {
			continue
		}
		if best < 0 || cmp.Or(-cmp.Compare(c.depth, f.chains[best].depth),
			cmp.Compare(first.at, f.calls[f.chains[best].calls[0]].at), cmp.Compare(k, best)) < 0 {
			best = k
		}
	}
	return best
}

// sharedIDs is how many ids two lists begin with in common.
func sharedIDs(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
