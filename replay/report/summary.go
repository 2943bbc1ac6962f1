package report

import (
	"fmt"
	"slices"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// schema names the layout of a [Summary] as JSON.
const schema = "summary/1"

// A Summary is everything a report says about a run. Its JSON names are stable
// and carry their units: _ms, _s, _ns, _per_s; ratios and shares are between 0
// and 1. What was not measured is null. [Definitions] says what each means.
type Summary struct {
	Schema        string         `json:"schema"` // [schema]
	Verdict       Verdict        `json:"verdict"`
	Run           result.Run     `json:"run"`
	Requests      Requests       `json:"requests"`
	DurationS     *float64       `json:"duration_s"`
	Throughput    Throughput     `json:"throughput"`
	Goodput       *Goodput       `json:"goodput"` // null without objectives
	InFlight      InFlight       `json:"in_flight"`
	Latency       Latency        `json:"latency"`
	Stalled       *Stalled       `json:"stalled,omitempty"` // absent where nobody watched, as in a simulation
	Receipt       *Receipt       `json:"receipt,omitempty"` // absent without receive timestamps
	LagDriftMS    *float64       `json:"lag_drift_ms"`
	Errors        []ErrorCount   `json:"errors"` // most frequent first
	Tokens        Tokens         `json:"tokens"`
	Cache         Cache          `json:"cache"`
	ByCategory    []Category     `json:"by_category"`
	ByInputLength []LengthBucket `json:"by_input_length"`    // buckets that hold requests
	ByClass       []Class        `json:"by_class,omitempty"` // absent when no row has one
	Tenants       *Tenants       `json:"tenants,omitempty"`  // absent where the workload has no two users
	Sessions      *Sessions      `json:"sessions,omitempty"` // absent when no session has more than one request
	ByTurn        []PlaceGroup   `json:"by_turn,omitempty"`  // absent when no request has a later turn than the first
	// absent when all sessions are chains, whose depths are turns
	ByDepth    []PlaceGroup `json:"by_depth,omitempty"`
	Groups     []Grouping   `json:"groups,omitempty"` // by the columns that were asked for
	Efficiency *Efficiency  `json:"efficiency"`

	Diagnoses []Diagnosis `json:"diagnoses"`
	Warnings  []Warning   `json:"warnings"`
	Servers   *Servers    `json:"servers,omitempty"` // absent when nothing was measured there

	Contract *ContractResult `json:"contract,omitempty"` // absent without one

	// Steady and Peer take further passes over the results: see [SummariseSteady] and
	// package peer. [Summarise] leaves them nil.
	Steady *Steady `json:"steady,omitempty"`
	Peer   *Peer   `json:"peer,omitempty"`

	// Where requests went, when there was a choice, and what they had to try.
	ByEndpoint []Part       `json:"by_endpoint,omitempty"`
	ByHeader   []HeaderPart `json:"by_response_header,omitempty"` // of the headers that were recorded
	Retries    *Retries     `json:"retries,omitempty"`            // null when there was none, and no Retry-After

	Series Series     `json:"-"` // what the plots of [Page] draw
	shown  []Grouping // that have a table without being asked for
}

// Requests counts the rows of the results by how they ended. They add up:
// rows = succeeded + failed + cancelled + not sent.
type Requests struct {
	Rows       int64    `json:"rows"`
	Succeeded  int64    `json:"succeeded"`
	Failed     int64    `json:"failed"`
	Cancelled  int64    `json:"cancelled"` // hung up on purpose, as in the trace
	NotSent    int64    `json:"not_sent"`  // rows without an instant of sending and without an error
	WarmUp     int64    `json:"warm_up"`   // further rows, before the window that is measured
	CoolDown   int64    `json:"cool_down"` // further rows, after it
	ErrorShare *float64 `json:"error_share"`

	// Of the failed.
	Unconnected int64 `json:"unconnected"` // found no connection
	Refused     int64 `json:"refused"`     // HTTP 429 or 503
}

// all counts the rows outside the window as well.
func (r *Requests) all() int64 { return r.WarmUp + r.Rows + r.CoolDown }

// Throughput is what the server finished per second of the duration. Each is
// separate: prompt and output tokens cost different work.
type Throughput struct {
	OfferedPerS      *float64 `json:"offered_requests_per_s"` // rate of the due times
	RequestsPerS     *float64 `json:"requests_per_s"`
	PromptTokensPerS *float64 `json:"prompt_tokens_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`

	// UncachedPerS are the prompt tokens that the server had to compute: those that it did
	// not find in its prefix cache. Null unless it says so of every successful request.
	UncachedPerS *float64 `json:"uncached_prompt_tokens_per_s"`
}

// Goodput counts the requests that met every objective, with latencies from
// sent and from schedule.
type Goodput struct {
	SLO      SLO  `json:"slo"`
	FromSent Good `json:"from_sent"`
	FromDue  Good `json:"from_due"`
}

// Good is a goodput under one origin. Share has errors in its denominator.
type Good struct {
	Requests int64    `json:"requests"`
	PerS     *float64 `json:"requests_per_s"`
	Share    *float64 `json:"share"`
}

// InFlight says how many requests were open at once.
type InFlight struct {
	Mean     *float64 `json:"mean"`
	Max      int      `json:"max"`   // as the runner saw it
	Limit    *int     `json:"limit"` // null is none
	HeldBack int64    `json:"held_back"`
}

// A Stat describes the values of a metric. Null is what too few values cannot
// give: everything without a value, a percentile p below 1/(1−p) of them.
type Stat struct {
	Count  int64    `json:"count"`
	Method string   `json:"method"` // of the percentiles: [exact] or [hdr]
	Mean   *float64 `json:"mean_ms"`
	SD     *float64 `json:"sd_ms"`
	Min    *float64 `json:"min_ms"`
	P50    *float64 `json:"p50_ms"`
	P90    *float64 `json:"p90_ms"`
	P95    *float64 `json:"p95_ms"`
	P99    *float64 `json:"p99_ms"`
	P999   *float64 `json:"p99_9_ms"`
	Max    *float64 `json:"max_ms"`

	TailRatio *float64 `json:"tail_ratio"` // p99 ÷ p50
}

// How the percentiles of a [Stat] were computed.
const (
	exact = "exact"        // from every value
	hdr   = "hdrhistogram" // from a histogram of three significant digits, within 0.1 %
)

// Latency holds the latencies of the successful requests, and the send lag of
// all that were sent.
type Latency struct {
	FromSent Origin `json:"from_sent"`
	FromDue  Origin `json:"from_due"`
	ITLChunk Stat   `json:"itl_chunk"`
	ITLToken Stat   `json:"itl_token"`
	TPOT     Stat   `json:"tpot"`
	SendLag  Stat   `json:"send_lag"`

	// As the servers say in their answers.
	QueueTime   Stat `json:"queue_time"`
	PrefillTime Stat `json:"prefill_time"`
}

// told are statistics of what the answers say, nil where they do not.
func (l *Latency) told(of *Stat) *Stat {
	if of.Count == 0 {
		return nil
	}
	return of
}

// An Origin holds the latencies that begin when a request was sent, or was due.
type Origin struct {
	Headers Stat `json:"headers"`
	TTFT    Stat `json:"ttft"`
	TTFO    Stat `json:"ttfo"`
	E2E     Stat `json:"e2e"`
}

// metric is a Stat with its name in JSON and its label for people.
type metric struct {
	name, label string
	stat        *Stat
}

// MeanLengths are the tokens of a prompt and of an answer, on average over the requests that succeeded; nil without one.
// The answers' length is nil, too, where a server's counts of some of them are impossible.
func (s *Summary) MeanLengths() (prompt, output *float64) {
	n := s.Requests.Succeeded
	if prompt = Ratio(s.Tokens.Prompt, n); s.Tokens.Impossible == nil || s.Tokens.Impossible.OutputRows == 0 {
		output = Ratio(s.Tokens.Output, n)
	}
	return prompt, output
}

// reasoned tells whether answers begin later than their reasoning does.
func (l *Latency) reasoned() bool {
	first, answer := &l.FromSent.TTFT, &l.FromSent.TTFO
	return answer.Count > 0 && (answer.Count != first.Count || *answer.Mean != *first.Mean)
}

// shown are the metrics that differ from each other.
func (l *Latency) shown() []metric {
	return slices.DeleteFunc(l.metrics(), func(m metric) bool {
		return !l.reasoned() && (m.stat == &l.FromSent.TTFO || m.stat == &l.FromDue.TTFO)
	})
}

// metrics lists every latency in the order in which reports show them.
func (l *Latency) metrics() []metric {
	return []metric{
		{"from_sent.ttft", "TTFT from sent", &l.FromSent.TTFT},
		{"from_due.ttft", "TTFT from schedule", &l.FromDue.TTFT},
		{"from_sent.ttfo", "TTFO from sent", &l.FromSent.TTFO},
		{"from_due.ttfo", "TTFO from schedule", &l.FromDue.TTFO},
		{"itl_chunk", "Chunk ITL", &l.ITLChunk},
		{"itl_token", "Token ITL", &l.ITLToken},
		{"tpot", "TPOT", &l.TPOT},
		{"from_sent.e2e", "E2E from sent", &l.FromSent.E2E},
		{"from_due.e2e", "E2E from schedule", &l.FromDue.E2E},
		{"from_sent.headers", "Headers from sent", &l.FromSent.Headers},
		{"from_due.headers", "Headers from schedule", &l.FromDue.Headers},
		{"send_lag", "Send lag", &l.SendLag},
	}
}

// An ErrorCount is an error class from the closed list of the client, or
// "unfinished" for a request whose end was never recorded.
type ErrorCount struct {
	Class string  `json:"class"`
	Count int64   `json:"count"`
	Share float64 `json:"share"`          // of succeeded + failed
	Says  string  `json:"says,omitempty"` // the server, the first time: at most 300 characters, without what it quoted
}

// Tokens says how true the token counts are. All of it counts successful rows.
type Tokens struct {
	Prompt          int64            `json:"prompt_tokens"`
	PromptFromUsage int64            `json:"prompt_from_usage_rows"` // the others count as the workload asked
	PromptError     Difference       `json:"prompt_error"`           // usage − wanted
	Output          int64            `json:"output_tokens"`
	OutputSources   map[string]int64 `json:"output_source_rows"` // usage, tokenizer, none, impossible
	OutputMiss      Difference       `json:"output_miss"`        // got − wanted
	AtLimit         int64            `json:"at_limit_rows"`      // answers that ended at the length that was asked for
	PerEvent        *float64         `json:"tokens_per_event"`   // mean
	// Impossible is null where every count can be.
	Impossible *ImpossibleCounts `json:"impossible_counts,omitempty"`
}

// A Difference compares a count with what was wanted.
type Difference struct {
	Compared int64 `json:"compared_rows"`
	More     int64 `json:"more_rows"`
	Fewer    int64 `json:"fewer_rows"`
	SumAbs   int64 `json:"sum_abs_tokens"`
	MaxAbs   int64 `json:"max_abs_tokens"`
	Wanted   int64 `json:"wanted_tokens"` // of the compared rows
}

// share is by how much of what was wanted the counts are off, nil where nothing was wanted.
func (d *Difference) share() *float64 { return Ratio(d.SumAbs, d.Wanted) }

func (d *Difference) add(got, want int32) {
	diff := int64(got) - int64(want)
	d.Compared++
	d.Wanted += int64(want)
	switch {
	case diff > 0:
		d.More++
	case diff < 0:
		d.Fewer++
	}
	diff = max(diff, -diff)
	d.SumAbs += diff
	d.MaxAbs = max(d.MaxAbs, diff)
}

// Cache compares the prefix cache with what the workload allows: hit ratios by
// token over the same successful rows.
type Cache struct {
	Block        *int64   `json:"server_block_tokens"`
	Rows         int64    `json:"rows"`
	RowsLeftOut  int64    `json:"left_out_rows"` // successful, without what the ratios need
	PromptTokens int64    `json:"prompt_tokens"`
	Measured     *float64 `json:"measured_ratio"`
	Expected     *float64 `json:"expected_ratio"`
	// of the whole run: [fromPrompts], [fromReplies] or [fromWarmUp]
	ExpectedFrom string   `json:"expected_from,omitempty"`
	Difference   *float64 `json:"difference"` // measured − expected
	RoundingLoss *float64 `json:"rounding_loss"`

	otherBlock int64    // tokens of a block with which what was measured is expected, where Block is not it; else 0
	oneLess    bool     // what hit found one block less than expected, nine times in ten
	beyond     *float64 // of real text, the share of the prompts that the caches had and this run had not sent
}

// What the expected hit ratio of a [Cache] takes to be in the server's cache.
const (
	fromPrompts = "prompts"             // what earlier prompts brought there, and not what the server generated
	fromReplies = "prompts and replies" // also what was generated for turns that hold it, see [result.Threads]
	fromWarmUp  = "warm-up pass"        // every prompt, since all were sent before
)

// A Class is a priority or SLO class of the workload.
type Class struct {
	Class string `json:"class"` // "" for rows without one
	Group
}

// Tenants are the users of a workload.
type Tenants struct {
	Tenants int64    `json:"tenants"`
	Left    int64    `json:"left_out"` // requests of users beyond the first 1,024
	Each    []Tenant `json:"each"`     // the most work first, 50 at most
}

// A Tenant is one user.
type Tenant struct {
	User int64 `json:"user"`
	Group
}

// A Category is a prefix-reuse category of the workload.
type Category struct {
	Category string `json:"category"` // "" for rows without one
	Group
}

// A LengthBucket holds the requests whose prompt had Lo to Hi−1 tokens.
type LengthBucket struct {
	Lo int64  `json:"lo_tokens"`
	Hi *int64 `json:"hi_tokens"` // exclusive; null has no end
	Group
}

// A PlaceGroup holds the requests from Lo to Hi−1 of a turn within their thread, or of a
// depth in the tree of their session: the most requests that follow each other up to them.
type PlaceGroup struct {
	Lo int64  `json:"lo"`
	Hi *int64 `json:"hi"` // exclusive; null has no end
	Group
}

// An Efficiency is what the server's owner and its users get of it at once: the
// two axes that batching trades against each other.
type Efficiency struct {
	GPUs     int      `json:"gpus"`
	GPUsFrom string   `json:"gpus_from"`                   // [gpusGiven] or [gpusInstances]
	PerGPU   *float64 `json:"output_tokens_per_s_per_gpu"` // or per instance, as GPUsFrom says
	PerUser  *float64 `json:"tokens_per_s_per_user"`
}

// Where a number of GPUs is from.
const (
	gpusGiven     = "given"     // by who asked for the report, or recorded with the run
	gpusInstances = "instances" // not known: one for each engine or endpoint
)

// A Diagnosis is what may be behind the figures of a run, and the measurement that would
// confirm it or rule it out. It is a lead, no finding: one run cannot tell causes
// apart that look the same from outside.
type Diagnosis struct {
	Code    string `json:"code"`    // one of the Lead constants
	Text    string `json:"text"`    // with the figures that it rests on
	Confirm string `json:"confirm"` // what to measure next
}

// A Warning says how far a number can be trusted. It does not make a run
// untrustworthy; that is what a [Reason] does.
type Warning struct {
	Code    string   `json:"code"`
	Text    string   `json:"text"`
	Metrics []string `json:"metrics,omitempty"` // names under latency
}

// A server that sends no usage leaves the counts of tokens to estimates: an output is
// what a tokenizer makes of the text, and a prompt as long as the workload asks.

// PromptEstimates is how many successful requests have a prompt that the server did
// not count.
func (s *Summary) PromptEstimates() int64 { return s.Requests.Succeeded - s.Tokens.PromptFromUsage }

// OutputEstimates is how many successful requests have an output that a tokenizer
// counted from the text, and not the server.
func (s *Summary) OutputEstimates() int64 { return s.Tokens.OutputSources[result.FromTokenizer] }

// estimateNote marks a figure that rests on n estimates among the counts of so many
// requests.
func estimateNote(n, of int64) string {
	switch {
	case n == 0:
		return ""
	case n == of:
		return ", estimated"
	}
	return fmt.Sprintf(", estimated for %s of %s", doc.Brief(n), doc.Many(of, "request"))
}

// A Verdict says whether the numbers describe the server. It is false when the
// client was late or saturated, or when the run was not the one asked for, and
// the reasons say which. A run without reasons is trustworthy.
type Verdict struct {
	Trustworthy bool           `json:"trustworthy"`
	Reasons     []Reason       `json:"reasons"`
	Loosened    LoosenedLimits `json:"loosened_limits"` // to be said wherever the verdict is
	Checks      []Check        `json:"checks"`          // all that was held against a limit
}

// A Reason is one thing that makes a run untrustworthy.
type Reason struct {
	Code     string  `json:"code"` // one of the Code constants
	Text     string  `json:"text"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`
	Unit     string  `json:"unit"` // of both: ms, share, requests
}

// A Check is what was measured beside what is allowed, whether it holds or not.
type Check struct {
	Code     string   `json:"code"`
	Measured *float64 `json:"measured"` // null where nothing was
	Allowed  *float64 `json:"allowed"`  // null where there is no limit
	Unit     string   `json:"unit"`
	Holds    bool     `json:"holds"`
	Says     string   `json:"says,omitempty"` // why nothing was measured, where that is not plain
}

// Stalled says how much of what was measured the client stood still in, see
// [result.Stalls]. It is of the successful requests of the measured window. An event
// that comes in a stall is timed at its end, so that these shares bound what the
// client added to the latencies.
type Stalled struct {
	// TTFTShare is the part of all times from sent to first token, of an embedding to
	// its answer, in which the client stood still. Null without one.
	TTFTShare *float64 `json:"ttft_share"`
	// GapP99Share is the part of a gap between token events in which the client stood
	// still, at p99 of all gaps: at most one gap in a hundred has more. It is rounded up
	// to a tenth of a percent. Null without a gap.
	GapP99Share *float64 `json:"gap_p99_share"`
	// TTFTLateP99 and E2ELateP99 are how many ms after the kernel's receive timestamp the
	// first and the last token event of a request were read, at p99 of the requests. Null
	// below 100 requests, without timestamps, and where their instants are taken.
	TTFTLateP99 *float64 `json:"ttft_late_p99_ms"`
	E2ELateP99  *float64 `json:"e2e_late_p99_ms"`
	// StalledRequests are those whose time to the first token holds some of a stall.
	StalledRequests int64 `json:"stalled_requests"`
	// EventShare is the part of the token events that stalls may have delayed: some of a
	// stall is between them and the event before, or the sending. Null without an event.
	EventShare *float64 `json:"event_share"`

	// Of the stalls themselves, whatever they met; null without one. Beyond 4,096 stalls
	// the closest neighbours count as one.
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
	Max *float64 `json:"max_ms"`
	// InFlightMax is the longest of those that met a request, due or in flight.
	InFlightMax *float64 `json:"in_flight_max_ms"`
}

// A Receipt says how late the client read what the kernel had received, and which of the
// two instants the latencies rest on. It is of the token events of the successful requests
// of the measured window.
type Receipt struct {
	Instants string   `json:"instants"`      // [InstantsRead] or [InstantsKernel]
	Stamped  *float64 `json:"stamped_share"` // of the token events
	Delay    Stat     `json:"read_delay"`    // from the kernel's timestamp to the read

	// Uncertain are token events that may have come before their timestamp, in the time
	// since the read before, Widest at most. The kernel's instants leave them out.
	Uncertain      int64    `json:"uncertain_events"`
	UncertainFirst int64    `json:"uncertain_first_tokens"`
	Widest         *float64 `json:"widest_ms"` // null without one
}

// A Part is the share of the requests that one server got, or that was answered with
// one value of a response header.
type Part struct {
	Name string `json:"name"` // URL or value
	Group
}

// A HeaderPart says who answered, as a response header tells.
type HeaderPart struct {
	Header string `json:"header"`
	Values []Part `json:"values"` // most frequent first, at most 20; the rest together is "(others)"
	Absent int64  `json:"absent_rows"`
}

// Retries count what was sent again, or was asked to come again later.
type Retries struct {
	Retried    int64 `json:"retried_rows"`
	Succeeded  int64 `json:"retried_succeeded_rows"`
	Attempts   int64 `json:"further_attempts_requests"` // beyond the first of each
	AskedLater int64 `json:"retry_after_rows"`          // answered with Retry-After, whether it was followed or not
	// ByEndpoint is null where retries stayed with their endpoint.
	ByEndpoint []EndpointRetries `json:"by_endpoint,omitempty"`
}

// EndpointRetries say what an endpoint left to the others, and took from them.
type EndpointRetries struct {
	Name     string `json:"name"`
	Attempts int64  `json:"attempts_requests"`            // that went to it
	PassedOn int64  `json:"passed_on_requests"`           // of these, that failed and went on to the next endpoint
	TookOver int64  `json:"took_over_requests"`           // whose last attempt was here, and whose first was not
	Answered int64  `json:"took_over_succeeded_requests"` // of these, that succeeded
}
