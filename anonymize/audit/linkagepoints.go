package audit

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"reprise/trace/sample"
)

// A pointRisk is how often a few requests that are known of a session, drawn at
// random, are in no other one: U_p, the unicity of de Montjoye et al., "Unique in
// the Crowd", Scientific Reports 2013.
type pointRisk struct {
	Known   string  `json:"known"`  // of each request
	Points  int     `json:"points"` // requests that are known: p
	Draws   int     `json:"draws"`  // sessions that were drawn, of those with p requests or more
	Unique  float64 `json:"unique_share"`
	Low     float64 `json:"low"` // of the interval of 95 %
	High    float64 `json:"high"`
	Sampled float64 `json:"sampled_sessions_share"` // below 1, Unique is too high rather than too low
}

const (
	mostPoints = 4
	drawsEach  = 1000
)

// A pointDraw is what is known of one session.
type pointDraw struct {
	p       int
	session uint32
	turns   []uint32 // which of its rows are known
	keys    []uint64 // what is known of them
}

// A sessionPoint is a row of a session.
type sessionPoint struct {
	key     uint64
	session uint32
}

// points draws sessions and looks who else they may be.
func (m *linkMeasure) points(ctx context.Context) error {
	draws := m.draw()
	if len(draws) == 0 {
		return nil
	}
	for _, k := range m.knowledge() {
		points, sampled, err := m.sessionPoints(ctx, k, draws)
		if err != nil {
			return err
		}
		var alone, n [mostPoints + 1]int
		for i := range draws {
			n[draws[i].p]++
			if matches(points, draws[i].keys) == 1 { // itself
				alone[draws[i].p]++
			}
		}
		for p := 1; p <= mostPoints; p++ {
			if n[p] == 0 {
				continue
			}
			lo, hi := sample.ClopperPearson(float64(alone[p])/float64(n[p]), float64(n[p]), 0.95)
			m.out.Points = append(m.out.Points,
				pointRisk{k.words, p, n[p], float64(alone[p]) / float64(n[p]), lo, hi, sampled})
		}
	}
	return nil
}

// draw chooses sessions, with replacement, and turns of each, without.
func (m *linkMeasure) draw() []pointDraw {
	rng := rand.New(rand.NewPCG(m.o.seed, 0x11bca6e))
	var draws []pointDraw
	for p := 1; p <= mostPoints; p++ {
		var long []uint32
		for s, n := range m.turns {
			if n >= uint32(p) {
				long = append(long, uint32(s))
			}
		}
		for range min(drawsEach, drawsEach*len(long)) {
			s := long[rng.IntN(len(long))]
			var turns []uint32
			for len(turns) < p {
				if t := rng.Uint32N(m.turns[s]); !slices.Contains(turns, t) {
					turns = append(turns, t)
				}
			}
			draws = append(draws, pointDraw{p: p, session: s, turns: turns})
		}
	}
	return draws
}

// sessionPoints lists the rows of sessions by what is known of them, and fills in
// what is known of those that were drawn. With too many it keeps a part of the
// sessions, and those that were drawn.
func (m *linkMeasure) sessionPoints(ctx context.Context, k knowledge,
	draws []pointDraw) ([]sessionPoint, float64, error) {
	of := map[uint32][]int{}
	for i := range draws {
		draws[i].keys = draws[i].keys[:0]
		of[draws[i].session] = append(of[draws[i].session], i)
	}
	rows := int64(0)
	for _, n := range m.turns {
		rows += int64(n)
	}
	shift := uint(0)
	for rows>>shift > 2*int64(m.limit) {
		shift++
	}
	var points []sessionPoint
	turns := make([]uint32, len(m.turns))
	err := m.each(ctx, func(r *linkRow) {
		if r.Session == nil {
			return
		}
		s := uint32(m.sessions.ID(uint64(*r.Session)))
		turn := turns[s]
		turns[s]++
		drawn := of[s]
		if len(drawn) == 0 && mixKey(5, uint64(s))>>(64-shift) != 0 {
			return
		}
		key := k.key(r)
		points = append(points, sessionPoint{key, s})
		for _, i := range drawn {
			if slices.Contains(draws[i].turns, turn) {
				draws[i].keys = append(draws[i].keys, key)
			}
		}
	})
	sortPoints(points)
	return points, 1 / float64(int64(1)<<shift), err
}

// A posting is the rows with one key, by session, and how many of them a session
// must have.
type posting struct {
	points []sessionPoint
	need   int
}

// matches is how many sessions have all that is known of one; 2 stands for more. The lists
// of the sessions that have each of the points are walked together.
func matches(points []sessionPoint, keys []uint64) (n int) {
	slices.Sort(keys)
	var lists []posting
	for i, key := range keys {
		if i > 0 && key == keys[i-1] {
			lists[len(lists)-1].need++
			continue
		}
		from, _ := slices.BinarySearchFunc(points, key, func(p sessionPoint, key uint64) int {
			return cmp.Compare(p.key, key)
		})
		n, _ := slices.BinarySearchFunc(points[from:], key, func(p sessionPoint, key uint64) int {
			if p.key == key {
				return -1
			}
			return 1
		})
		lists = append(lists, posting{points[from : from+n], 1})
	}
	slices.SortFunc(lists, func(a, b posting) int { return cmp.Compare(len(a.points), len(b.points)) })
	for rarest := lists[0].points; len(rarest) > 0 && n < 2; {
		s := rarest[0].session
		for len(rarest) > 0 && rarest[0].session == s {
			rarest = rarest[1:]
		}
		if all(lists, s) {
			n++
		}
	}
	return n
}

// sortPoints puts points in the order that [matches] wants.
func sortPoints(points []sessionPoint) {
	slices.SortFunc(points, func(a, b sessionPoint) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.session, b.session))
	})
}

// all steps all lists to a session, and reports whether it has enough of the rows of
// each.
func all(lists []posting, session uint32) bool {
	for i := range lists {
		p := &lists[i]
		for len(p.points) > 0 && p.points[0].session < session {
			p.points = p.points[1:]
		}
		if len(p.points) < p.need || p.points[p.need-1].session != session {
			return false
		}
	}
	return true
}
