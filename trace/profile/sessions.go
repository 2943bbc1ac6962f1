package profile

import "reprise/trace"

// Values of [Sessions].Origin.
const (
	originSource   = "source"
	originInferred = "inferred"
)

// SessionRule is the rule of a [Classifier] for sessions, for people.
const SessionRule = "a request that shares more than the global prefix joins the session of the request that last touched the last block it shares"

// Sessions describes who comes back.
type Sessions struct {
	// Origin is source or inferred, as the trace says; empty when it does not.
	Origin   string `json:"origin"`
	Rule     string `json:"rule,omitempty"` // by which sessions were inferred
	Sessions int64  `json:"sessions"`
	Requests int64  `json:"requests"` // that belong to a session
	Turns    *Stats `json:"turns"`    // requests of a session
	// TurnGap is from the arrival of one turn to that of the next, in seconds.
	// Where sessions are the source's, the earlier turn is the request of the
	// session before it; where they are inferred, it is the request that last
	// touched the deepest hit block, since an inferred session may hold
	// branches that take turns.
	TurnGap *Stats `json:"turn_gap_s"`
}

// sessions gathers turns: 16 bytes for each session, and 8 for its number.
type sessions struct {
	ids      trace.Renumber
	last     []int64 // arrival of the latest request
	turns    []int64 // requests so far
	requests int64
	gaps     distribution
}

// add takes a request and returns the gap before it, unless it is the first of
// its session. parent is the arrival of the request that it builds on, where
// that is known, and otherwise negative.
func (s *sessions) add(session, arrival, parent int64) (gap int64, ok bool) {
	i := int(s.ids.ID(uint64(session)))
	if i == len(s.last) {
		s.last, s.turns = append(s.last, 0), append(s.turns, 0)
	}
	s.requests++
	s.turns[i]++
	if parent < 0 {
		parent = s.last[i]
	}
	s.last[i] = arrival
	if s.turns[i] == 1 {
		return 0, false
	}
	s.gaps.add(arrival - parent)
	return arrival - parent, true
}

func (s *sessions) summary(origin string) *Sessions {
	if s.requests == 0 {
		return nil
	}
	var turns distribution
	for _, n := range s.turns {
		turns.add(n)
	}
	rule := ""
	if origin == originInferred {
		rule = SessionRule
	}
	return &Sessions{Origin: origin, Rule: rule, Sessions: turns.n, Requests: s.requests,
		Turns: turns.stats(1), TurnGap: s.gaps.stats(second)}
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
