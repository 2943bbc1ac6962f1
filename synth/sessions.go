package synth

// sessions are those of one population, where the source told them: who joined
// which, and when each was active.
type sessions struct {
	session []int32 // by request; none without one
	turns   []int32 // by session: requests so far
	active  weights // by request: 1 when it is the latest of its session
	last    []int32 // by session: its latest request
}

// enter puts request r, placed below owner, into the session that its tuple asks
// for: that of the request that it extends, or else one that was active as long
// ago; hurry is the cost of following a request so soon. It returns the turn.
func (s *sessions) enter(t *tuple, r, owner int32, hurry func(last int32) int64) int32 {
	session := int32(none)
	switch t.join {
	case joinless:
		s.session = append(s.session, none)
		s.active.push(0)
		return 0
	case byTree:
		if owner != none {
			session = s.session[owner]
		}
	case byRecency:
		session = s.recent(t, hurry)
	}
	if session == none {
		session = int32(len(s.turns))
		s.turns, s.last = append(s.turns, 0), append(s.last, none)
	} else {
		s.active.add(int(s.last[session]), -1)
	}
	s.session = append(s.session, session)
	s.active.push(1)
	s.last[session] = r
	s.turns[session]++
	return s.turns[session] - 1
}

// recent looks among the sessions that were active about as long ago as the
// tuple says for the one that has most nearly as many turns.
func (s *sessions) recent(t *tuple, hurry func(last int32) int64) int32 {
	n := s.active.total
	if n == 0 {
		return none
	}
	back := max(1, min(t.back, n))
	best, found := int64(unfound), int32(none)
	for o := range int64(candidates) {
		for _, b := range [2]int64{back + o, back - o} {
			if b < 1 || b > n {
				continue
			}
			session := s.session[s.active.find(b)]
			cost := hurry(s.last[session]) + abs(log2(b)-log2(back)) + turnWeight*abs(log2(int64(s.turns[session])+1)-log2(int64(t.turn)+1))
			if cost < best {
				best, found = cost, session
			}
		}
	}
	return found
}

func abs(x int64) int64 { return max(x, -x) }
