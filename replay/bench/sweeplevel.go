package bench

import (
	"fmt"
	"time"

	"reprise/replay/report"
)

// Roles of a level in a sweep.
const (
	RoleLevel   = "level"   // of the ladder
	RoleConfirm = "confirm" // at the highest load that was estimated
	RoleSustain = "sustain" // the same for longer
)

// Outcomes of a level.
const (
	Holds     = "holds"     // the contract does, and the server follows
	Fails     = "fails"     // the contract does not hold
	Saturated = "saturated" // see [Sweep.StopTTFT]
	Unjudged  = "unjudged"  // the run is too short for what the contract asks
	Untrusted = "untrusted" // the client was the limit: it says nothing of the server
)

// A Level is what was measured at one load.
type Level struct {
	Name      string  `json:"name"` // also of its directory
	Role      string  `json:"role"` // one of the Role constants
	Load      float64 `json:"load"` // requests per second, or requests in flight of a closed loop
	Seed      string  `json:"seed"` // of its prompts and arrivals
	Warmup    string  `json:"warm_up"`
	DurationS float64 `json:"duration_s"` // of sending, with the warm-up

	Requests    report.Requests `json:"requests"`
	Flow        Flow            `json:"flow"`
	OutputPerS  *float64        `json:"output_tokens_per_s"` // over the whole run, with its tail
	PromptPerS  *float64        `json:"prompt_tokens_per_s"`
	OutputMean  *float64        `json:"output_tokens_per_request"`
	PromptMean  *float64        `json:"prompt_tokens_per_request"`
	GoodShare   *float64        `json:"goodput_share"`  // from due; null without objectives
	InFlight    *float64        `json:"in_flight_mean"` // over the whole run, with its tail; that of [Flow] is without
	TTFTDue     report.Stat     `json:"ttft_from_due"`
	TTFTSent    report.Stat     `json:"ttft_from_sent"`
	TPOT        report.Stat     `json:"tpot"`
	ITL         report.Stat     `json:"itl_chunk"`
	E2EMean     *float64        `json:"e2e_from_due_mean_ms"`
	Trustworthy bool            `json:"trustworthy"`

	Contract *report.ContractResult `json:"contract,omitempty"`
	Outcome  string                 `json:"outcome"` // one of Holds and the constants after it
	Why      string                 `json:"why,omitempty"`
	Note     string                 `json:"note,omitempty"` // how far the level can be trusted
	// Sure tells that the outcome is beyond what chance does in a sample of
	// independent requests, at 95 %. See [Sure].
	Sure bool `json:"sure"`
}

// ofServer are the reasons against a run that are the server's doing. All others
// are about the client, or about a run that was not the one asked for.
var ofServer = map[string]bool{report.CodeErrors: true, report.CodeRefused: true, report.CodeSkipped: true, report.CodeNoSamples: true}

// take takes over what the summary says.
func (l *Level) take(s *report.Summary) {
	l.Requests, l.InFlight, l.Trustworthy, l.Contract = s.Requests, s.InFlight.Mean, s.Verdict.Trustworthy, s.Contract
	l.OutputPerS, l.PromptPerS = s.Throughput.OutputTokensPerS, s.Throughput.PromptTokensPerS
	l.TTFTDue, l.TTFTSent = s.Latency.FromDue.TTFT, s.Latency.FromSent.TTFT
	l.TPOT, l.ITL, l.E2EMean = s.Latency.TPOT, s.Latency.ITLChunk, s.Latency.FromDue.E2E.Mean
	if n := s.Requests.Succeeded; n > 0 {
		output, prompt := float64(s.Tokens.Output)/float64(n), float64(s.Tokens.Prompt)/float64(n)
		l.OutputMean, l.PromptMean = &output, &prompt
	}
	if s.Goodput != nil {
		l.GoodShare = s.Goodput.FromDue.Share
	}
}

// farBeyond is how many times what a contract allows is so far beyond it that no
// higher load is of interest.
const farBeyond = 4

// judge settles the outcome. stop is the p99 of TTFT at which a server counts as
// saturated.
func (l *Level) judge(s *report.Summary, closed bool, stop time.Duration) {
	if why := clientLimit(s); why != "" {
		l.Outcome, l.Why = Untrusted, why
		return
	}
	if l.E2EMean != nil && *l.E2EMean/1e3 > l.Flow.Seconds {
		l.Note = fmt.Sprintf("a request takes %s s on average, and half of the level %s s: the server may not be in its steady state", figure(*l.E2EMean/1e3), figure(l.Flow.Seconds))
	}
	if why := l.saturation(s, closed, stop); why != "" {
		l.Outcome, l.Why = Saturated, why
		return
	}
	switch c := s.Contract; {
	case c == nil || c.Holds:
		l.Outcome = Holds
	case c.Fails():
		l.Outcome, l.Why = Fails, c.String()
	default:
		l.Outcome, l.Why = Unjudged, c.String()
	}
}

// clientLimit says why a run says nothing of the server, "" when it does.
func clientLimit(s *report.Summary) string {
	for _, r := range s.Verdict.Reasons {
		if !ofServer[r.Code] {
			return r.Text
		}
	}
	return ""
}

// saturation says why the server is saturated, "" when it is not.
func (l *Level) saturation(s *report.Summary, closed bool, stop time.Duration) string {
	for _, r := range s.Verdict.Reasons {
		return r.Text // all that are left are of the server
	}
	if p99 := l.TTFTDue.P99; p99 != nil && *p99 > float64(stop)/1e6 {
		return fmt.Sprintf("p99 TTFT from due is %s s, beyond %v", figure(*p99/1e3), stop)
	}
	if f := &l.Flow; !closed && !f.Follows() {
		return fmt.Sprintf("the queue grows: %s of %s requests per second came out, and those in flight went from %d to %d",
			figure(*f.AchievedPerS), figure(*f.OfferedPerS), f.OpenBefore, f.OpenAfter)
	}
	if s.Contract == nil {
		return ""
	}
	for i := range s.Contract.Clauses {
		if c := &s.Contract.Clauses[i]; c.Unit == "ms" && c.Margin != nil && *c.Margin <= 1-farBeyond {
			return fmt.Sprintf("far beyond the contract: %s", s.Contract)
		}
	}
	return ""
}
