package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

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

// A checklist gathers the points of the method that held in a run, and those that did not.
type checklist []Point

func (l *checklist) add(code, name string, status Status, format string, args ...any) {
	*l = append(*l, Point{code, name, status, fmt.Sprintf(format, args...)})
}

// addLoad adds the points about the requests that were sent.
func (l *checklist) addLoad(s *Summary, t *tokenCounts) {
	warmUp := s.Requests.WarmUp
	says := page.Many(warmUp, "request") + " before those that are measured"
	if c := s.Run.Cache; c != nil && c.WarmRequests > 0 {
		warmUp += c.WarmRequests
		says += fmt.Sprintf(", %s in a pass to warm the caches", page.Brief(c.WarmRequests))
	}
	l.add(pointWarmUp, "Warm-up of 50 or more", held(warmUp >= leastWarmUp), "%s", says)

	status, says := Held, schedule(&s.Run)
	switch {
	case s.Run.Timing == result.ClosedLoop:
		status = NotHeld
	case s.Run.HeldBack > 0:
		status, says = NotHeld, fmt.Sprintf("%s waited for the limit of %d in flight", page.Many(s.Run.HeldBack, "request"), s.Run.InFlightLimit)
	case s.Run.Timing == "":
		status, says = Unknown, "the results do not say what made requests due"
	case s.Run.Timing == result.Causal:
		says += ": sessions come on their own account, and a turn waits for the one before as its user does"
	}
	l.add(pointOpenLoop, "Open loop", status, "%s", says)

	status, says = tailsGiven(&s.Latency)
	l.add(pointTails, "Tails: p99 given", status, "%s", says)

	in, out := t.input.distinct(), t.output.distinct()
	status, says = Held, fmt.Sprintf("prompts fall into %d buckets of length and outputs into %d, eight to each doubling", in, out)
	switch {
	case s.Requests.Succeeded == 0:
		status, says = Unknown, "no request succeeded"
	case in < 2 && out < 2:
		status, says = NotHeld, "every prompt is as long as the others, and so is every output"
	case in < 2:
		status, says = NotHeld, "every prompt is as long as the others"
	case out < 2 && t.output.any():
		status, says = NotHeld, "every output is as long as the others"
	}
	l.add(pointLengths, "Realistic lengths", status, "%s", says)

	l.add(pointSweep, "Several rates", NotHeld, "this is one run, at one load; where the server saturates shows in a sweep of the rate")

	status, says = Unknown, "nothing was done"
	if s.DurationS != nil {
		status, says = held(*s.DurationS >= leastDuration), page.Number(*s.DurationS)+" s"
	}
	l.add(pointDuration, "60 s or longer", status, "%s", says)
}

// addSetup adds the points about what the run states of its server.
func (l *checklist) addSetup(s *Summary) {
	status, says := Unknown, "the run does not say what the server runs on"
	if e := s.Efficiency; e != nil && e.GPUsFrom == gpusGiven {
		status, says = Held, page.Many(int64(e.GPUs), "GPU")
		switch env := s.Run.Environment; {
		case env != nil && env.Deployment != nil && env.Deployment.GPU != "":
			says += ", " + textpage.Plain(env.Deployment.GPU) + ", as given"
		case env != nil && len(env.GPUs) > 0:
			says += ", " + textpage.Plain(env.GPUs[0].Name)
		default:
			says += ", as given; the model of the GPU is for the reader to add"
		}
	}
	l.add(pointHardware, "Hardware stated", status, "%s", says)

	status, says = Unknown, "the run does not say in what precision the model computes"
	if e := s.Run.Environment; e != nil && e.Deployment != nil && e.Deployment.Quantization != "" {
		status, says = Held, textpage.Plain(e.Deployment.Quantization)+", as given"
	} else if m := precisions.FindStringSubmatch(s.Run.Model); m != nil {
		status, says = Held, textpage.Plain(m[1])+", by the name of the model"
	}
	l.add(pointPrecise, "Precision stated", status, "%s", says)

	status, says = Unknown, "nothing was in flight"
	if f := &s.InFlight; f.Mean != nil {
		status, says = Held, fmt.Sprintf("%s in flight on average, %s at most", page.Number(*f.Mean), page.Brief(int64(f.Max)))
		if v := s.Servers; v != nil && v.Running != nil {
			says += fmt.Sprintf("; %s running at the servers on average, %s at most", page.Number(v.Running.Mean), page.Number(v.Running.Max))
		}
	}
	l.add(pointBatch, "Concurrency stated", status, "%s", says)

	ttft, tpot := s.Latency.FromSent.TTFT.Count > 0, s.Latency.TPOT.Count > 0
	status, says = Held, "TTFT and prompt tokens per second; ITL, TPOT and output tokens per second"
	switch {
	case !ttft && !tpot:
		status, says = NotHeld, "neither TTFT nor TPOT was measured"
	case !tpot:
		status, says = NotHeld, "no TPOT: no answer had two tokens or more"
		if slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == warnBuffered }) {
			says = "no TPOT: answers came at once, not token by token"
		}
	case !ttft:
		status, says = NotHeld, "no TTFT"
	}
	l.add(pointPhases, "Prefill and decode", status, "%s", says)
}

func held(is bool) Status {
	if is {
		return Held
	}
	return NotHeld
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

// precisions are the number formats as model names give them.
var precisions = regexp.MustCompile(`(?i)(?:^|[-_/. ])(fp32|bf16|fp16|fp8|nvfp4|mxfp4|fp4|int8|int4|w[48]a(?:16|8|4)|awq|gptq|q[2-8](?:_[0-9k])?(?:_[0-9msl]+)?)(?:$|[-_/. ])`)

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
