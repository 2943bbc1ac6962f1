package replay

import (
	"math"
	"slices"
)

// unbegun is how many trees in a row without a sent request end the survey of a load of
// sessions: trees start in their order, and only a few whose requests were being sent when
// the run was killed can be out of it.
const unbegun = 1000

// trees looks at each tree that had started when the run was interrupted.
func (s *surveyor) trees() error {
	r, l, at := s.r, s.opt.Sessions, s.sched.trees.at
	for n, none := int64(0), 0; none < unbegun && l.more(s.opt, n); n++ {
		t, err := s.opt.loadTree(n)
		if err != nil {
			return err
		}
		wanted := int64(at)
		if l.Arrivals != nil {
			at += l.Arrivals.Next()
		}
		begun, end, err := s.tree(t)
		switch {
		case err != nil:
			return err
		case begun:
			none = 0
			if end < math.MaxInt64 {
				r.treeEnds = append(r.treeEnds, end)
			}
		default:
			none++
			if l.Arrivals != nil && (s.opt.Duration == 0 || wanted < int64(s.opt.Duration)) {
				s.first = min(s.first, wanted)
			}
		}
	}
	slices.Sort(r.treeEnds)
	return nil
}

// tree looks at the rows of a tree: whether some were sent, and when the last was over, if
// all are.
func (s *surveyor) tree(t *liveTree) (begun bool, end int64, err error) {
	failed, stops := make([]bool, len(t.rows)), make([]bool, len(t.rows))
	whole := true
	for i := range t.rows {
		tr, id := &t.rows[i], t.first+int64(i)
		done, ok := s.r.find(id)
		broken := slices.ContainsFunc(tr.parents, func(p int32) bool { return t.breaks(p, int32(i), failed[p], stops[p]) })
		failed[i], stops[i] = broken, broken
		switch {
		case ok:
			failed[i], stops[i], end = done.failed, done.large, max(end, done.at)
		case tr.history || tr.leftOut || broken:
		default:
			whole = false
		}
		if !ok && !s.r.lost[id] {
			continue
		}
		begun = true
		row, err := s.opt.Sessions.Trees.row(t, i, s.opt.Sessions.recycle())
		if err != nil {
			return begun, end, err
		}
		if s.known != nil {
			s.known(id, row)
		}
		if !ok {
			s.r.gap.Again++
			s.r.addTwice(id, row)
		}
	}
	if !whole {
		end = math.MaxInt64
	}
	return begun, end, nil
}
