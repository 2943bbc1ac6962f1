package report

import (
	"fmt"
	"regexp"
	"strings"

	"reprise/replay/result"
	"reprise/trace/page"
)

// A Status says whether a point of the checklist held.
type Status string

// The three that there are.
const (
	Held    Status = "held"
	NotHeld Status = "not held"
	Unknown Status = "unknown" // the run does not say
)

// A Point is one thing that a measurement needs before others can rely on it.
// Points do not make a run untrustworthy, as a [Reason] does: a run may be as it
// should be and still be too short for a claim.
type Point struct {
	Code   string `json:"code"` // one of the Point constants
	Name   string `json:"name"`
	Status Status `json:"status"`
	Says   string `json:"says"` // the figures that it rests on
}

// Codes of the points, in their order.
const (
	pointWarmUp   = "warm_up"
	pointOpenLoop = "open_loop"
	pointTails    = "tails"
	pointLengths  = "realistic_lengths"
	pointSweep    = "rate_sweep"
	pointDuration = "duration"
	pointHardware = "hardware"
	pointPrecise  = "precision"
	pointBatch    = "concurrency"
	pointPhases   = "both_phases"
)

// What a claim needs at least.
const (
	leastWarmUp   = 50 // requests
	leastDuration = 60 // s, of a level of the load
)

// checklist says which points of the method held in this run.
func (c *collector) checklist(s *Summary) []Point {
	var out []Point
	add := func(code, name string, status Status, format string, args ...any) {
		out = append(out, Point{code, name, status, fmt.Sprintf(format, args...)})
	}
	warm, says := warmUp(s)
	add(pointWarmUp, "Warm-up of 50 or more", warm, "%s", says)
	open, says := openLoop(&s.Run)
	add(pointOpenLoop, "Open loop", open, "%s", says)
	tails, says := tailsGiven(&s.Latency)
	add(pointTails, "Tails: p99 given", tails, "%s", says)
	lengths, says := c.lengthsVary(s)
	add(pointLengths, "Realistic lengths", lengths, "%s", says)
	add(pointSweep, "Several rates", NotHeld, "this is one run, at one load; where the server saturates shows in a sweep of the rate")
	long, says := longEnough(s)
	add(pointDuration, "60 s or longer", long, "%s", says)
	hardware, says := hardwareKnown(s)
	add(pointHardware, "Hardware stated", hardware, "%s", says)
	precision, says := precisionKnown(&s.Run)
	add(pointPrecise, "Precision stated", precision, "%s", says)
	batch, says := batchKnown(s)
	add(pointBatch, "Concurrency stated", batch, "%s", says)
	phases, says := bothPhases(s)
	add(pointPhases, "Prefill and decode", phases, "%s", says)
	return out
}

func held(is bool) Status {
	if is {
		return Held
	}
	return NotHeld
}

func warmUp(s *Summary) (Status, string) {
	n := s.Requests.WarmUp
	says := page.Many(n, "request") + " before those that are measured"
	if c := s.Run.Cache; c != nil && c.WarmRequests > 0 {
		n += c.WarmRequests
		says += fmt.Sprintf(", %s in a pass to warm the caches", page.Brief(c.WarmRequests))
	}
	return held(n >= leastWarmUp), says
}

func openLoop(r *result.Run) (Status, string) {
	switch {
	case r.Timing == result.ClosedLoop:
		return NotHeld, schedule(r)
	case r.HeldBack > 0:
		return NotHeld, fmt.Sprintf("%s waited for the limit of %d in flight", page.Many(r.HeldBack, "request"), r.InFlightLimit)
	case r.Timing == "":
		return Unknown, "the results do not say what made requests due"
	case r.Timing == result.Causal:
		return Held, schedule(r) + ": sessions come on their own account, and a turn waits for the one before as its user does"
	}
	return Held, schedule(r)
}

// tailsGiven asks for the p99 of what users feel; an answer that came whole has
// no time between tokens.
func tailsGiven(l *Latency) (Status, string) {
	var has, lacks []string
	for _, m := range []struct {
		name string
		stat *Stat
	}{{"TTFT", &l.FromSent.TTFT}, {"TPOT", &l.TPOT}, {"E2E", &l.FromSent.E2E}} {
		switch {
		case m.stat.P99 != nil:
			has = append(has, m.name)
		case m.stat.Count > 0:
			lacks = append(lacks, fmt.Sprintf("%s over %s", m.name, page.Many(m.stat.Count, "value")))
		}
	}
	switch {
	case len(lacks) > 0:
		return NotHeld, "no p99 of " + strings.Join(lacks, ", ")
	case len(has) == 0:
		return NotHeld, "no latency was measured"
	}
	return Held, "p99 of " + strings.Join(has, ", ")
}

func (c *collector) lengthsVary(s *Summary) (Status, string) {
	in, out := c.input.distinct(), c.output.distinct()
	switch {
	case s.Requests.Succeeded == 0:
		return Unknown, "no request succeeded"
	case in < 2 && out < 2:
		return NotHeld, "every prompt is as long as the others, and so is every output"
	case in < 2:
		return NotHeld, "every prompt is as long as the others"
	case out < 2 && c.output.any():
		return NotHeld, "every output is as long as the others"
	}
	return Held, fmt.Sprintf("prompts fall into %d buckets of length and outputs into %d, eight to each doubling", in, out)
}

func longEnough(s *Summary) (Status, string) {
	if s.DurationS == nil {
		return Unknown, "nothing was done"
	}
	return held(*s.DurationS >= leastDuration), page.Number(*s.DurationS) + " s"
}

// precisions are the number formats as model names give them.
var precisions = regexp.MustCompile(`(?i)(?:^|[-_/. ])(fp32|bf16|fp16|fp8|nvfp4|mxfp4|fp4|int8|int4|w[48]a(?:16|8|4)|awq|gptq|q[2-8](?:_[0-9k])?(?:_[0-9msl]+)?)(?:$|[-_/. ])`)

func precisionKnown(r *result.Run) (Status, string) {
	if e := r.Environment; e != nil && e.Deployment != nil && e.Deployment.Quantization != "" {
		return Held, Plain(e.Deployment.Quantization) + ", as given"
	}
	if m := precisions.FindStringSubmatch(r.Model); m != nil {
		return Held, Plain(m[1]) + ", by the name of the model"
	}
	return Unknown, "the run does not say in what precision the model computes"
}

func hardwareKnown(s *Summary) (Status, string) {
	if e := s.Efficiency; e != nil && e.GPUsFrom == gpusGiven {
		return Held, gpuModel(&s.Run, e.GPUs)
	}
	return Unknown, "the run does not say what the server runs on"
}

// gpuModel says how many GPUs of what kind there were.
func gpuModel(r *result.Run, n int) string {
	says := page.Many(int64(n), "GPU")
	switch e := r.Environment; {
	case e != nil && e.Deployment != nil && e.Deployment.GPU != "":
		return says + ", " + Plain(e.Deployment.GPU) + ", as given"
	case e != nil && len(e.GPUs) > 0:
		return says + ", " + Plain(e.GPUs[0].Name)
	}
	return says + ", as given; the model of the GPU is for the reader to add"
}

func batchKnown(s *Summary) (Status, string) {
	f := &s.InFlight
	if f.Mean == nil {
		return Unknown, "nothing was in flight"
	}
	says := fmt.Sprintf("%s in flight on average, %s at most", page.Number(*f.Mean), page.Brief(int64(f.Max)))
	if v := s.Servers; v != nil && v.Running != nil {
		says += fmt.Sprintf("; %s running at the servers on average, %s at most", page.Number(v.Running.Mean), page.Number(v.Running.Max))
	}
	return Held, says
}

func bothPhases(s *Summary) (Status, string) {
	l := &s.Latency
	switch {
	case l.FromSent.TTFT.Count == 0 && l.TPOT.Count == 0:
		return NotHeld, "neither TTFT nor TPOT was measured"
	case l.TPOT.Count == 0:
		return NotHeld, "no TPOT: no answer had two tokens or more"
	case l.FromSent.TTFT.Count == 0:
		return NotHeld, "no TTFT"
	}
	return Held, "TTFT and prompt tokens per second; ITL, TPOT and output tokens per second"
}

// The checklist as a table; a sign goes with the word, for those who skim.
var checklistHead = []string{"point", "status", "what it rests on"}

var statusSigns = map[Status]string{Held: "✓ held", NotHeld: "✕ not held", Unknown: "? unknown"}

// sayChecklist counts the points and names those that are not held.
func sayChecklist(points []Point) string {
	var not, unknown []string
	for _, p := range points {
		switch p.Status {
		case NotHeld:
			not = append(not, p.Name)
		case Unknown:
			unknown = append(unknown, p.Name)
		}
	}
	out := fmt.Sprintf("%d of the %d points of the method's checklist held", len(points)-len(not)-len(unknown), len(points))
	if len(not) > 0 {
		out += "; not held: " + strings.Join(not, ", ")
	}
	if len(unknown) > 0 {
		out += "; unknown: " + strings.Join(unknown, ", ")
	}
	return out + "."
}

// sign keeps sign and word on one line of a page.
func (s Status) sign() string { return strings.ReplaceAll(statusSigns[s], " ", "\u00a0") }

func checklistRows(points []Point) (rows [][]string) {
	for _, p := range points {
		rows = append(rows, []string{p.Name, statusSigns[p.Status], p.Says})
	}
	return rows
}

var methodDefinitions = []Definition{
	{"checklist", "held, not held, unknown",
		"What a measurement needs before others can rely on it. Unknown is what the run does not say. A point that does not hold leaves the run trustworthy; it limits what can be claimed of it.",
		"warm-up ≥ 50, duration ≥ 60 s, p99 given, …"},
	{"diagnoses", "as the figures", "What the figures hint at, with those that it rests on, and the measurement that would confirm it or rule it out. They are leads by rules of thumb, no findings.", "p99 ÷ p50 of TTFT ≥ 4, p99 ÷ p50 of ITL ≥ 3, measured < expected − 5 %, …"},
	{"verdict.checks", "as the check", "What was measured beside the most, or for some the least, that a trustworthy run may have. --trust changes what is allowed.", "measured ≤ allowed"},
}
