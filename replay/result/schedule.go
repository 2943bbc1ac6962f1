package result

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Drift says how far a causal run moved the turns after a first one: due less
// recorded time, the latter divided by the speed. Above zero the server, or the
// client, took longer than in the source. Durations are nanoseconds.
type Drift struct {
	Turns  int64   `json:"turns"` // that were sent
	MeanNS float64 `json:"mean_ns"`
	P50NS  int64   `json:"p50_ns"`
	P99NS  *int64  `json:"p99_ns"` // null below 100 turns
	MaxNS  int64   `json:"max_ns"`
	Sample int64   `json:"sample"` // turns that the percentiles are of
}

// DriftOf sums up the drift of n turns, with their sum and the largest, and some or all of the
// values, which it sorts. It is nil of no turns. Quantiles are by linear interpolation between
// order statistics.
func DriftOf(n int64, sum float64, most time.Duration, values []time.Duration) *Drift {
	if n == 0 {
		return nil
	}
	slices.Sort(values)
	quantile := func(p float64) int64 {
		pos := p * float64(len(values)-1)
		i := int(pos)
		low := values[i]
		if i+1 == len(values) {
			return int64(low)
		}
		return int64(low) + int64(math.Round((pos-float64(i))*float64(values[i+1]-low)))
	}
	d := &Drift{Turns: n, MeanNS: math.Round(sum / float64(n)), MaxNS: int64(most), P50NS: quantile(0.5),
		Sample: int64(len(values))}
	if len(values) >= 100 {
		d.P99NS = new(quantile(0.99))
	}
	return d
}

// An Asked is the part of the schedule that was asked for and that [Run] does not say
// elsewhere.
type Asked struct {
	DurationNS       int64 `json:"duration_ns,omitempty"`
	WarmupNS         int64 `json:"warmup_ns,omitempty"`
	WarmupRequests   int64 `json:"warmup_requests,omitempty"`
	CooldownNS       int64 `json:"cooldown_ns,omitempty"`
	CooldownRequests int64 `json:"cooldown_requests,omitempty"`
	IncludeFailed    bool  `json:"include_failed,omitempty"`
}

// A Place is one in the order in which requests are due, ties in the order of
// their rounds and rows.
type Place struct {
	DueNS int64 `json:"due_ns"`
	Row   int64 `json:"row"`
	Round int32 `json:"round,omitempty"`
}

// Before says that p is due before o.
func (p Place) Before(o Place) bool {
	return cmp.Or(cmp.Compare(p.DueNS, o.DueNS), cmp.Compare(p.Round, o.Round), cmp.Compare(p.Row, o.Row)) < 0
}

// CutSessions are sessions of which a run left requests unsent: they were due after its
// duration or its early end. Those of which it sent none may be among them.
type CutSessions struct {
	Sessions []SessionKey `json:"sessions"` // in their order
	// Incomplete says that there are more than a run keeps, so that a session that is not
	// listed may have been cut too.
	Incomplete bool `json:"incomplete,omitempty"`
}

// A Window says which results are measured. Those outside were sent as well: to
// bring the server to its steady state, and to keep it there while the last that
// are measured come to their ends.
type Window struct {
	From *Place `json:"from"` // the first that is measured; null is the first of all
	To   *Place `json:"to"`   // the first that is not any more; null has no end
}

// Holds says whether a result is measured. A nil Window holds all.
func (w *Window) Holds(r *Result) (before, after bool) {
	if w == nil {
		return false, false
	}
	at := Place{r.DueNS, r.RowID, r.Round}
	return w.From != nil && at.Before(*w.From), w.To != nil && !at.Before(*w.To)
}

// Span is the time of a window in nanoseconds from the start, in a run that was over
// at some instant.
func (w *Window) Span(over int64) (from, to int64) {
	to = over
	if w == nil {
		return 0, to
	}
	if w.From != nil {
		from = min(w.From.DueNS, math.MaxInt64/2)
	}
	if w.To != nil {
		to = min(w.To.DueNS, to)
	}
	return from, to
}

// Threads says what became of the turns of a run with replay.Threading. Every turn
// that was prepared is threaded, apart, without a reply or without room.
type Threads struct {
	Threaded int64 `json:"threaded"` // turns whose prompt holds the server's own reply
	// of these, without a block of the source that holds some of the reply: only lengths agree
	Assumed int64 `json:"assumed"`
	Apart   int64 `json:"apart"` // turns that do not go on from a parent's reply, by blocks or lengths
	// turns whose parent has no reply to repeat: it was empty, over 1 MiB, or never asked for
	NoReply int64 `json:"no_reply"`
	NoRoom  int64 `json:"no_room"` // turns whose parent's text did not fit in memory
	Joined  int64 `json:"joined"`  // further parents of threaded turns, whose replies are not in the prompt
	// replies in prompts that may not encode to the tokens that were generated; they are expected to be found up to the
	// first other one
	Recoded  int64 `json:"recoded"`
	Longer   int64 `json:"longer"`    // prompts that are longer than recorded, since the reply left no room
	LongerBy int64 `json:"longer_by"` // by so many tokens in all

	ReplyTokens int64 `json:"reply_tokens"` // of the server's replies, each counted in the first prompts that hold it
	// LostTokens are prompt tokens that other rows would find known if every
	// reply were the one recorded.
	LostTokens int64 `json:"lost_tokens"`
	PeakBytes  int64 `json:"peak_bytes"` // of prompts and replies kept in memory
}

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
	Rows        int64  `json:"rows"`              // of a round
	OfRows      *int64 `json:"of_rows"`           // of the workload; null where the rest of it was not read
	FromNS      int64  `json:"from_ns,omitempty"` // the window, in times of the workload
	ToNS        int64  `json:"to_ns,omitempty"`   // its end; 0 is that of the workload
	MaxRequests int64  `json:"max_requests,omitempty"`
	Turns       int64  `json:"turns,omitempty"` // only so many first ones of each conversation
	// Outputs is what stood for output lengths that the workload does not tell, as
	// --output-tokens says it.
	Outputs string `json:"outputs,omitempty"`

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
