package result

// Primed says what a replay.Primer sent. None of it is in the results.
type Primed struct {
	CapacityTokens int64 `json:"capacity_tokens"` // of the cache that the prompts are from
	LiveTokens     int64 `json:"live_tokens"`     // that it holds
	Prompts        int64 `json:"prompts"`         // sent
	Tokens         int64 `json:"prompt_tokens"`   // of them; prefixes that prompts share are counted in each
	Failed         int64 `json:"failed"`          // of the prompts
	TookNS         int64 `json:"took_ns"`
}

// A Selection says which part of a workload a run sent, and how often. It is
// missing from a run that sent all of it once.
type Selection struct {
	Rows        int64 `json:"rows"`              // of a round
	OfRows      int64 `json:"of_rows"`           // of the workload
	FromNS      int64 `json:"from_ns,omitempty"` // the window, in times of the workload
	ToNS        int64 `json:"to_ns,omitempty"`   // its end; 0 is that of the workload
	MaxRequests int64 `json:"max_requests,omitempty"`

	Sample *Sample `json:"sample,omitempty"`
	Prime  *Primed `json:"prime,omitempty"` // missing when nothing was to be primed
	Loop   *Rounds `json:"loop,omitempty"`
}

// A Sample says how a sample of whole sessions was taken, and how it differs.
type Sample struct {
	Share      float64 `json:"share"` // that was asked for
	Seed       string  `json:"seed"`
	Sessions   int64   `json:"sessions"`    // rows without a session, parents or children are one each
	OfSessions int64   `json:"of_sessions"` // of the window
	Rows       int64   `json:"rows"`
	OfRows     int64   `json:"of_rows"`
	// Measures set the sample beside what it is from, in the terms of a fidelity
	// report.
	Measures []Measure `json:"measures"`
}

// A Measure is a figure of a whole and of its sample, and how far they are apart.
// Each is null where there is none.
type Measure struct {
	Name     string   `json:"name"`
	Whole    *float64 `json:"whole"`
	Sample   *float64 `json:"sample"`
	Distance *float64 `json:"distance"`
}

// Rounds says how a workload was played several times.
type Rounds struct {
	Rounds   int64 `json:"rounds"` // asked for; 0 is as many as the duration has
	PeriodNS int64 `json:"period_ns"`
	Same     bool  `json:"same_prompts"` // in every round
}
