package profile

import (
	"math"
	"strconv"

	"reprise/trace/doc"
)

// Values of [Sessions].Origin.
const (
	originSource   = "source"
	originInferred = "inferred"
)

// sessionRule is the rule of a [SessionFinder], for people.
const sessionRule = "a next turn holds the prompt before it and its answer, and comes after a pause; where that is " +
	"not clear there is no session"

// Sessions describes who comes back.
type Sessions struct {
	// Origin is source or inferred, as the trace says; empty when it does not.
	Origin string `json:"origin"`
	Rule   string `json:"rule,omitempty"` // by which sessions were inferred
	// Doubt is the share of inferred turns that may be chance, as import estimated it; null where that is not known.
	Doubt    *float64 `json:"doubt,omitempty"`
	Sessions int64    `json:"sessions"`
	Requests int64    `json:"requests"` // that belong to a session
	Turns    *Stats   `json:"turns"`    // requests of a session
	// TurnGap is from the arrival of one turn to that of the next, in seconds.
	// Where sessions are the source's, the earlier turn is the request of the
	// session before it; where they are inferred, it is the request that last
	// touched the deepest hit block, since an inferred session may hold
	// branches that take turns. Where blocks are of a sample, it is the request of the
	// session before it there too.
	TurnGap *Stats `json:"turn_gap_s"`
	// Sampling is null while all sessions are kept apart. Beyond, the number of sessions,
	// turns and gaps are of a sample, and the earlier turn is always the request of the
	// session before it.
	Sampling *SessionSampling `json:"sampling,omitempty"`
}

// sessions gathers turns: 24 bytes for each of the first sessions, and then a sample of all
// of them, some 50 MB.
type sessions struct {
	bound    int // sessions that are kept apart
	ids      numbering
	last     []int64 // arrival of the latest request
	turns    []int32 // requests so far
	names    []int64 // of the sessions
	requests int64
	gaps     distribution
	sampled  *sampleOf[sessionTurns] // in place of the lists, above the bound
}

// sessionTurns is what is kept of a session in a sample.
type sessionTurns struct {
	last  int64
	turns int32
}

// exactSessions is how many sessions are kept apart, and sampleSessions how many of a sample.
const exactSessions, sampleSessions = 1 << 22, 1 << 20

// add takes a request and returns the gap before it and how many such it stands for, unless
// it is the first of its session or not in the sample. parent is the arrival of the request
// that it builds on, where that is known, and otherwise negative.
func (s *sessions) add(session, arrival, parent int64) (gap, weight int64) {
	s.requests++
	if s.sampled != nil {
		return s.addSampled(session, arrival)
	}
	n, _ := s.ids.number(uint64(session)) // no more are numbered than have numbers
	i := int(n)
	if i == len(s.last) {
		if i == s.bound {
			s.sample()
			return s.addSampled(session, arrival)
		}
		s.last, s.turns, s.names = append(s.last, 0), append(s.turns, 0), append(s.names, session)
	}
	s.turns[i]++
	if parent < 0 {
		parent = s.last[i]
	}
	s.last[i] = arrival
	if s.turns[i] == 1 {
		return 0, 0
	}
	s.gaps.add(arrival - parent)
	return arrival - parent, 1
}

// sample goes on with a sample of the sessions so far.
func (s *sessions) sample() {
	s.sampled = &sampleOf[sessionTurns]{limit: s.bound / (exactSessions / sampleSessions)}
	for i, name := range s.names {
		if s.sampled.has(uint64(name)) {
			s.sampled.put(uint64(name), sessionTurns{s.last[i], s.turns[i]})
		}
	}
	s.ids, s.last, s.turns, s.names = numbering{}, nil, nil, nil
}

func (s *sessions) addSampled(session, arrival int64) (gap, weight int64) {
	id := uint64(session)
	if !s.sampled.has(id) {
		return 0, 0
	}
	one, later := s.sampled.held[id]
	gap, weight = arrival-one.last, s.sampled.weight()
	one.last, one.turns = arrival, one.turns+1
	s.sampled.put(id, one)
	if !later {
		return 0, 0
	}
	s.gaps.addTimes(gap, weight)
	return gap, weight
}

// eachTurns calls f with the requests of each session and how many sessions that is of.
func (s *sessions) eachTurns(f func(turns, weight int64)) {
	for _, n := range s.turns {
		f(int64(n), 1)
	}
	if s.sampled != nil {
		for _, one := range s.sampled.held {
			f(int64(one.turns), s.sampled.weight())
		}
	}
}

func (s *sessions) summary(origin, doubt string) *Sessions {
	if s.requests == 0 {
		return nil
	}
	var turns distribution
	s.eachTurns(func(n, weight int64) { turns.addTimes(n, weight) })
	rule := ""
	if origin == originInferred {
		rule = sessionRule
	}
	out := &Sessions{Origin: origin, Rule: rule, Sessions: turns.n, Requests: s.requests,
		Turns: turns.stats(1), TurnGap: s.gaps.stats(second)}
	if share, err := strconv.ParseFloat(doubt, 64); err == nil && share >= 0 && share <= 1 && rule != "" {
		out.Doubt = &share
	}
	if p := s.sampled; p != nil {
		// Each is in the sample with the chance of its rate, apart from the others.
		rate := 1 / float64(p.weight())
		out.Sampling = &SessionSampling{Rate: rate, Tracked: len(p.held),
			Error: 2 * math.Sqrt((1-rate)/float64(max(len(p.held), 1)))}
	}
	return out
}

// SessionSampling says that the figures of sessions are of a sample of them.
type SessionSampling struct {
	Rate    float64 `json:"rate"`             // share of the sessions in the sample
	Tracked int     `json:"tracked_sessions"` // that are in it
	Error   float64 `json:"sessions_error"`   // 95 %, of the number of sessions, as a share of it
}

// inferred says in a sentence, without an end, how many of so many requests are in inferred sessions.
func (g *Sessions) inferred(requests int64) string {
	if g.Doubt == nil {
		return doc.Count(g.Requests) + " of " + doc.Many(requests, "request") + " are in inferred sessions"
	}
	return InferredSessions{Requests: g.Requests, Sessions: g.Sessions, Doubt: *g.Doubt}.Words(requests)
}

// SessionShares says how many requests carry an identifier of a session, and
// whether the source gave it or it was inferred from shared prefixes. The
// shares are of all requests, and null where that is not known.
type SessionShares struct {
	Source        int64    `json:"requests_with_source_session"`
	Inferred      int64    `json:"requests_with_inferred_session"`
	Unknown       int64    `json:"requests_with_session_of_unknown_origin"`
	Without       int64    `json:"requests_without_session"`
	SourceShare   *float64 `json:"source_share"`
	InferredShare *float64 `json:"inferred_share"`
}

func (s *sessions) shares(origin string, requests int64) SessionShares {
	shares := SessionShares{Without: requests - s.requests}
	switch {
	case origin == originSource:
		shares.Source = s.requests
	case origin == originInferred:
		shares.Inferred = s.requests
	default:
		shares.Unknown = s.requests
	}
	if shares.Unknown == 0 {
		shares.SourceShare, shares.InferredShare = share(shares.Source, requests), share(shares.Inferred, requests)
	}
	return shares
}
