package breaker

const (
	minRun  = 64 // tokens that must be lost for a difference to count
	minFine = 24 // the least stretch that is looked at
	// maxJoin is how many tokens may stand between two stretches that are in
	// another order than before, such as the comma between two tools.
	maxJoin = 8
)

// A run is a stretch of tokens of the later prompt, from x on, that the earlier
// one has from y on.
type run struct{ x, y, n int }

// gaps counts the tokens between two runs, in the later prompt and in the earlier one.
// The latter is negative when the order changed.
func (r run) gaps(before run) (later, earlier int) {
	return r.x - before.x - before.n, r.y - before.y - before.n
}

// A difference is where two prompts part and agree again.
type difference struct {
	at    int // in the later prompt
	gap   int // tokens of the later prompt in it
	width int // tokens of the longer side
	agree int // tokens after it that agree
	lost  int // those of them that no other prompt has as a prefix
}

// An aligner compares two prompts after the place where they part.
type aligner struct {
	prints []print
	slots  []print // by hash, in pos + 1
	runs   []run
	found  []difference
}

// extend returns the run around a place where both agree.
func extend(later, earlier []uint32, x, y int) run {
	back := 0
	for back < min(x, y) && later[x-back-1] == earlier[y-back-1] {
		back++
	}
	return run{x - back, y - back, back + agree(later[x:], earlier[y:])}
}

// align returns the differences of two prompts from where they part, given one run of
// both; known tokens of the later one are in the cache anyway. A difference counts
// when at least minRun tokens are lost after it, and when no fewer agree than differ:
// prompts of one template with other questions do not count, unless as much follows
// the question. Nothing after the first difference that does not count could be served
// from a cache.
func (a *aligner) align(later, earlier []uint32, r run, known int) []difference {
	a.runs = a.runs[:0]
	gapX, gapY := r.gaps(run{})
	if gapX <= maxJoin && within(gapX, gapY) { // the usual case: a few tokens changed
		a.runs = append(a.runs, r)
		x, y := r.x+r.n, r.y+r.n
		a.match(later[x:], earlier[y:], x, y)
	} else {
		a.match(later, earlier, 0, 0)
		if len(a.runs) == 0 { // too short to be seen
			a.runs = append(a.runs, r)
		}
	}

	// Judge what is before each run. A run that comes in another order right after the
	// one before belongs to the same difference: the tools of a shuffled list are one.
	// So do two differences with less than minRun tokens between them.
	all := a.found[:0]
	before := run{}
	for _, r := range a.runs {
		gap, other := r.gaps(before)
		lost := spoken(later[min(max(r.x, known), r.x+r.n) : r.x+r.n])
		d := difference{at: before.x + before.n, gap: gap, width: max(gap, other), agree: r.n, lost: lost}
		if last := len(all) - 1; last < 0 {
			all = append(all, d)
		} else if l := &all[last]; gap <= maxJoin && !within(gap, other) {
			l.agree += d.agree
			l.lost += d.lost
		} else if l.agree < minRun { // a date and a name with little between them
			*l = difference{l.at, l.gap + l.agree + d.gap, l.width + l.agree + d.width, d.agree, l.lost + d.lost}
		} else {
			all = append(all, d)
		}
		before = r
	}
	a.found = all
	counted := all[:0]
	for _, d := range all {
		switch {
		case d.gap > d.agree || d.lost > 0 && d.lost < minRun:
			return counted
		case d.lost > 0: // else it is mended by another prompt
			counted = append(counted, d)
		}
	}
	return counted
}

// within says whether what differs is about as long on both sides.
func within(a, b int) bool { return b-a <= maxJoin && a-b <= maxJoin }

// match appends the runs that both have, in the order of later. They do not overlap
// there.
func (a *aligner) match(later, earlier []uint32, x, y int) {
	if len(later) < minRun || len(earlier) < minRun {
		return
	}
	a.prints = winnow(a.prints[:0], earlier, fineShingle, fineWindow, 0)
	// They go into slots; each slot keeps the first that falls into it.
	if n := 4 * len(a.prints); cap(a.slots) < n {
		a.slots = make([]print, n)
	} else {
		a.slots = a.slots[:max(n, 1)]
		clear(a.slots)
	}
	for _, p := range a.prints {
		if slot := &a.slots[a.slot(p.hash)]; slot.pos == 0 {
			*slot = print{p.pos + 1, p.hash}
		}
	}
	a.prints = winnow(a.prints[:0], later, fineShingle, fineWindow, 0)
	done := 0
	for _, p := range a.prints {
		if int(p.pos) < done {
			continue
		}
		slot := a.slots[a.slot(p.hash)]
		at := int(slot.pos) - 1
		if at < 0 || slot.hash != p.hash {
			continue
		}
		r := extend(later[done:], earlier, int(p.pos)-done, at)
		r.x += done
		if r.n >= minFine {
			done = r.x + r.n
			a.runs = append(a.runs, run{r.x + x, r.y + y, r.n})
		}
	}
}

func (a *aligner) slot(hash uint32) int { return int(hash % uint32(len(a.slots))) }
