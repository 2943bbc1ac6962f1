package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// sweepSchema names the layout of a [SweepResult] as JSON.
const sweepSchema = "sweep/1"

// A SweepResult is what a sweep came to, with every level that was measured. Its JSON
// names carry their units as those of a summary do.
type SweepResult struct {
	Schema     string   `json:"schema"`
	Command    string   `json:"command"`              // without secrets
	Hypothesis string   `json:"hypothesis,omitempty"` // as it was before the sweep
	Version    string   `json:"version"`
	Workload   string   `json:"workload_digest"`
	Tier       string   `json:"tier,omitempty"`
	Model      string   `json:"model"`
	Endpoints  []string `json:"endpoints,omitempty"`
	Server     string   `json:"server_version,omitempty"`
	Simulated  string   `json:"simulated,omitempty"`
	// PresetWarning is that of the runs, see [result.Run].
	PresetWarning string `json:"preset_warning,omitempty"`
	// Extrapolates are the bounds of what the engine was fitted to that any level passed.
	Extrapolates []result.Beyond `json:"extrapolates,omitempty"`

	Started string `json:"started,omitempty"` // of the first level
	Seed    string `json:"seed"`
	// what loads are: requests_per_s, requests_in_flight, sessions_per_s or live_sessions
	Unit    string `json:"load_unit"`
	Closed  bool   `json:"closed_loop"`       // loads are requests in flight or live sessions, and saturation is hidden
	Process string `json:"process,omitempty"` // arrivals of an open loop
	// Precision is that which the intervals of levels were wanted at, as half of their width;
	// 0 where each level was one run.
	Precision float64  `json:"precision,omitempty"`
	Contract  []string `json:"contract"` // its clauses
	// GPUs and PricePerGPUHour are those of the contract, 0 when it names none.
	GPUs            int     `json:"contract_gpus,omitempty"`
	PricePerGPUHour float64 `json:"contract_price_per_gpu_hour,omitempty"`

	Environment *result.Environment `json:"environment,omitempty"` // of the first level

	Levels  []Level `json:"levels"` // in the order in which they were measured, with those that did not hold
	Stopped Stop    `json:"stopped"`
	// Saturation is the throughput where an open loop of requests offered more than came out; nil
	// where none did. Levels from 85 % of it on have no intervals.
	Saturation *float64    `json:"saturation_requests_per_s,omitempty"`
	Knee       *KneeResult `json:"knee"` // null when too few levels can be trusted
	Highest    Highest     `json:"highest"`
}

// What the loads of a sweep are.
const (
	unitRate         = "requests_per_s"
	unitInFlight     = "requests_in_flight"
	unitSessionRate  = "sessions_per_s"
	unitLiveSessions = "live_sessions"
)

// bySession tells whether the sweep is over sessions.
func (r *SweepResult) bySession() bool {
	return r.Unit == unitSessionRate || r.Unit == unitLiveSessions
}

// A Stop says why a sweep went no further up.
type Stop struct {
	Code string `json:"code"` // end, saturated, untrusted or resolution
	Text string `json:"text"`
}

// Why a sweep went no further up.
const (
	stoppedEnd       = "end"        // of the ladder
	stoppedSaturated = "saturated"  // the server
	stoppedUntrusted = "untrusted"  // the client was the limit
	stoppedResolved  = "resolution" // an adaptive search found what it sought
)

// about copies a run's description of its surroundings.
func (r *SweepResult) about(run *result.Run) {
	r.Tier, r.Model, r.Endpoints = run.Tier, run.Model, run.Endpoints
	r.Server, r.Simulated, r.PresetWarning, r.Version = run.ServerVersion, run.Simulated, run.PresetWarning, run.Version
	r.Extrapolates = result.JoinBeyond(r.Extrapolates, run.Extrapolates)
	r.Started, r.Environment = cmp.Or(r.Started, run.Started), cmp.Or(r.Environment, run.Environment)
}

// warned is what to know of a simulated engine, and from which level on it extrapolates.
func (r *SweepResult) warned() string {
	out := report.Warned(r.PresetWarning, r.Extrapolates)
	for _, l := range r.Ladder() {
		if len(l.Extrapolates) > 0 {
			return out + ", from " + l.Name + " on"
		}
	}
	return out
}

// Under takes over the contract that the levels were held against, nil when there was
// none.
func (r *SweepResult) Under(c *contract.Contract) {
	if r.Contract = []string{}; c == nil {
		return
	}
	for i := range c.Clauses {
		r.Contract = append(r.Contract, c.Clauses[i].Whole())
	}
	r.GPUs, r.PricePerGPUHour = c.GPUs, c.PricePerGPUHour
}

// Reprice takes GPUs and price of a contract for those of the sweep. It must have the
// clauses that the sweep was held against, in any order.
func (r *SweepResult) Reprice(c *contract.Contract) error {
	if len(r.Contract) == 0 {
		return errors.New("the sweep had no contract")
	}
	if err := r.SameContract(c); err != nil {
		return err
	}
	r.GPUs, r.PricePerGPUHour = cmp.Or(c.GPUs, r.GPUs), cmp.Or(c.PricePerGPUHour, r.PricePerGPUHour)
	return nil
}

// SameContract refuses a contract, nil for none, whose clauses are not the sweep's, in any order.
func (r *SweepResult) SameContract(c *contract.Contract) error {
	var given SweepResult
	given.Under(c)
	is, was := slices.Sorted(slices.Values(given.Contract)), slices.Clone(r.Contract)
	for i, clause := range was {
		if rest, ok := strings.CutPrefix(clause, "attainment "); ok { // as earlier versions printed it
			was[i] = "goodput " + rest
		}
	}
	slices.Sort(was)
	if slices.Equal(is, was) {
		return nil
	}
	clauses := func(all []string) string { return cmp.Or(strings.Join(all, "; "), "nothing") }
	return fmt.Errorf("the sweep was made under another contract: %s; this one says: %s",
		clauses(r.Contract), clauses(given.Contract))
}

// Ladder are the levels of the ladder in ascending order, without the runs that
// confirm.
func (r *SweepResult) Ladder() []*Level {
	var out []*Level
	for _, l := range byLoad(r.Levels) {
		if l.Role == roleLevel {
			out = append(out, l)
		}
	}
	return out
}

// heldBelow is the highest level of the ladder below a load that held, nil without one.
func (r *SweepResult) heldBelow(load float64) (held *Level) {
	for _, l := range r.Ladder() {
		if l.Load < load && l.Outcome == outcomeHolds {
			held = l
		}
	}
	return held
}

// stopped says why the ladder ended at its last level.
func (r *SweepResult) stopped() Stop {
	if len(r.Levels) == 0 {
		return Stop{Code: stoppedEnd, Text: "there is no level"}
	}
	last := &r.Levels[len(r.Levels)-1]
	at := fmt.Sprintf("%s, at %s: ", last.Outcome, last.Name)
	switch {
	case last.Outcome == outcomeUntrusted:
		return Stop{stoppedUntrusted, at + last.Why}
	case last.Outcome == outcomeSaturated:
		return Stop{stoppedSaturated, at + last.Why}
	case last.Load < r.Ladder()[len(r.Ladder())-1].Load:
		return Stop{stoppedResolved, "the search has the resolution that was asked for"}
	}
	return Stop{stoppedEnd, "the last level of the ladder was measured"}
}

// Loosened are the limits by which levels are trusted, as far as they allow more than their defaults.
func (r *SweepResult) Loosened() report.LoosenedLimits {
	for i := range r.Levels {
		if loosened := r.Levels[i].Loosened; len(loosened) > 0 {
			return loosened
		}
	}
	return nil
}

// Untrusted is the first level that was limited by the client, nil when none was.
func (r *SweepResult) Untrusted() *Level {
	for i := range r.Levels {
		if r.Levels[i].Outcome == outcomeUntrusted {
			return &r.Levels[i]
		}
	}
	return nil
}

// Unjudged is the first level of the ladder that was too short for what the contract asks, nil
// when none was.
func (r *SweepResult) Unjudged() *Level {
	for _, l := range r.Ladder() {
		if l.Outcome == outcomeUnjudged {
			return l
		}
	}
	return nil
}

// ReadSweep reads the JSON of a sweep. Errors begin with the name, and with the line
// and the column at fault.
func ReadSweep(name string, in io.Reader) (SweepResult, error) {
	var r SweepResult
	if err := readResult(name, "the result of a sweep", in, sweepSchema, &r, &r.Schema); err != nil {
		return r, err
	}
	if r.Unit == "" { // of an earlier version
		if r.Unit = unitRate; r.Closed {
			r.Unit = unitInFlight
		}
	}
	return r, nil
}

// readResult reads a result as JSON, which has the schema that is wanted in one of its fields.
func readResult(name, what string, in io.Reader, want string, to any, schema *string) error {
	text, err := io.ReadAll(io.LimitReader(in, maxSweepText))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		at := int64(0)
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = e.Offset
		}
		before := text[:max(at-1, 0)]
		line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("%s:%d:%d: it is not %s: %w", name, line, column, what, err)
	}
	if *schema != want {
		return fmt.Errorf("%s:1:1: it is not %s: its schema is not %s", name, what, want)
	}
	return nil
}

// maxSweepText bounds what is read of a file: a level takes 4 kB.
const maxSweepText = 64 << 20

// Highest is the highest load that holds; without a contract, the load at the knee.
type Highest struct {
	// Load is the highest that was confirmed, and sustained where that was asked for; null when
	// no run did. Of an open loop of requests it is never more than what came out at Level.
	Load  *float64 `json:"load"`
	Level string   `json:"level,omitempty"` // that Load is of
	// Estimate is where the contract breaks between the last level that holds and the
	// first that does not, see [interpolate]. Null where no level breaks it, or none
	// holds.
	Estimate *float64 `json:"estimate"`
	// Low and High bound the highest load: the highest at which a level held beyond
	// chance below all that failed beyond chance, and the lowest of those. Null where
	// there is none. They are an interval of 90 % or more where the sweep had a precision.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// AtLeast tells that no level failed, so that the highest load may be any above.
	AtLeast   bool `json:"at_least"`
	Sustained bool `json:"sustained"` // a longer run at Load held as well

	OutputPerRequest *float64 `json:"output_tokens_per_request"` // at Load
	GoodShare        *float64 `json:"goodput_share"`             // at Load, from schedule
	E2EMeanMS        *float64 `json:"e2e_from_due_mean_ms"`      // at Load
	// Of a sweep by session, at Load: sessions that ended a second, and the mean tokens of one.
	SessionsPerS     *float64 `json:"sessions_per_s,omitempty"`
	InputPerSession  *float64 `json:"input_tokens_per_session,omitempty"`
	CachedPerSession *float64 `json:"cached_tokens_per_session,omitempty"`
	OutputPerSession *float64 `json:"output_tokens_per_session,omitempty"`
}

// interpolate estimates where between two loads a contract breaks that holds at the
// first and fails at the second: for each clause that fails, where the straight line
// through both measurements meets what is allowed, and of these the lowest. The line
// is through logarithms where that can be, since latencies grow by factors as a
// server fills. Without a clause that fails it is the load that holds.
func interpolate(lo, hi float64, holds, fails *report.ContractResult) float64 {
	best := math.Inf(1)
	if holds == nil || fails == nil {
		return lo
	}
	for i := range fails.Clauses {
		a, b := &holds.Clauses[i], &fails.Clauses[i]
		if b.Outcome != report.Fails || a.Measured == nil {
			continue
		}
		x, y, limit := *a.Measured, *b.Measured, b.Allowed
		if x > 0 && y > 0 && limit > 0 {
			x, y, limit = math.Log(x), math.Log(y), math.Log(limit)
		}
		if x == y {
			continue
		}
		best = min(best, lo+(hi-lo)*max(0, min(1, (limit-x)/(y-x))))
	}
	if math.IsInf(best, 1) {
		return lo
	}
	return best
}

// interval bounds the highest load by the runs that are beyond chance. Where runs of
// one load differ, as a short and a long one may, it counts as failed.
func (h *Highest) interval(levels []Level) {
	h.Low, h.High = nil, nil
	for i := range levels {
		if l := &levels[i]; l.NotHeld() && l.Sure && (h.High == nil || l.Load < *h.High) {
			h.High = &l.Load
		}
	}
	for i := range levels {
		l := &levels[i]
		if l.Outcome == outcomeHolds && l.Sure && (h.High == nil || l.Load < *h.High) &&
			(h.Low == nil || l.Load > *h.Low) {
			h.Low = &l.Load
		}
	}
}

// findKnee finds where a curve of latency over throughput bends: the point of the
// largest power, which is throughput divided by latency. Before it, more load brings
// more throughput for little delay; after it, more delay for little throughput. The
// points are in ascending order of load. It is not found when the curve is not
// followed beyond its largest power, since it may lie further on.
//
// Power is of Kleinrock, "Power and deterministic rules of thumb for probabilistic
// problems in computer communications" (ICC 1979); that its maximum is the knee, of
// Jain, Ramakrishnan and Chiu, "Congestion avoidance in computer networks with a
// connectionless network layer" (1988). Kneedle (Satopää et al., 2011) was not taken:
// it scales both axes to what was measured, so that one more level far in saturation
// moves the knee.
func findKnee(throughput, latency []float64) (at int, found bool) {
	at = -1
	best := 0.0
	for i := range throughput {
		if latency[i] <= 0 {
			continue
		}
		if power := throughput[i] / latency[i]; power > best {
			at, best = i, power
		}
	}
	return at, at >= 0 && at < len(throughput)-1
}

// A KneeResult is the knee of a sweep.
type KneeResult struct {
	Load  float64 `json:"load"`
	Found bool    `json:"found"` // else the load is the last that was measured, and the knee there or beyond
	Of    string  `json:"of"`    // what the power is made of
}

// knee is that of the levels of the ladder, nil where too few can be trusted. By session the
// delay is what a session waits for the server. Else, in an
// open loop the delay is the mean time to the first token, where a queue shows first;
// a closed loop has no queue, and the delay is that of whole requests. Both are means,
// as in the sources: tails are what a contract is for.
func (r *SweepResult) knee() *KneeResult {
	of := "achieved requests/s ÷ mean TTFT from schedule"
	switch {
	case r.bySession():
		of = "sessions/s ÷ mean server time of a session"
	case r.Closed:
		of = "achieved requests/s ÷ mean E2E"
	}
	var loads, throughput, latency []float64
	for _, l := range r.Ladder() {
		achieved, delay := l.Flow.AchievedPerS, l.TTFTDue.Mean
		switch {
		case l.Sessions != nil:
			achieved, delay = l.Sessions.EndedPerS, l.Sessions.ServerMeanS
		case r.Closed:
			delay = l.E2E.Mean
		}
		if l.Outcome == outcomeUntrusted || delay == nil || achieved == nil {
			continue
		}
		if l.Outcome == outcomeSaturated { // which is beyond every knee
			delay = trace.Ptr(math.Inf(1))
		}
		loads, throughput, latency = append(loads, l.Load), append(throughput, *achieved), append(latency, *delay)
	}
	at, found := findKnee(throughput, latency)
	if at < 0 {
		return nil
	}
	return &KneeResult{Load: loads[at], Found: found, Of: of}
}
