package report

import (
	"cmp"
	"slices"

	"reprise/trace/page"
)

// checkNames say what each check holds against its limit.
var checkNames = []struct{ code, name string }{
	{CodeNoSamples, "successful requests, at least"},
	{CodeLagP50, "send lag, p50"},
	{CodeLagP99, "send lag, p99"},
	{CodeLagP999, "send lag, p99.9"},
	{CodeLagDrift, "drift of the send lag"},
	{CodeCPU, "the client's CPU, below"},
	{CodeGCPause, "longest GC pause"},
	{CodeStalled, "the client stood still"},
	{CodeStalledTTFT, "stalls in times to first token"},
	{CodeStalledGap, "stalls in a token gap, p99"},
	{CodeClock, "jump of the wall clock"},
	{CodeHeldBack, "held back at the limit"},
	{CodeConnect, "found no connection"},
	{CodeRefused, "refused with 429 or 503"},
	{CodeErrors, "failed"},
	{CodeSkipped, "turns not sent after a failure"},
	{CodeEndedEarly, "left by an early end"},
	{CodeNotSent, "never sent"},
	{CodeUnprepared, "without a prompt"},
	{CodeRowsMissing, "results, at least"},
}

var checkHead = []string{"check", "measured", "allowed"}

// checkRows are what was measured beside what is allowed.
func checkRows(s *Summary) [][]string {
	var rows [][]string
	for _, c := range s.Verdict.Checks {
		i := slices.IndexFunc(checkNames, func(n struct{ code, name string }) bool { return n.code == c.Code })
		if i < 0 || c.Allowed == nil {
			continue
		}
		name := checkNames[i].name
		if !c.Holds {
			name += " (!)"
		}
		rows = append(rows, []string{name, cmp.Or(c.Says, inUnit(c.Measured, c.Unit)), inUnit(c.Allowed, c.Unit)})
	}
	return rows
}

func inUnit(v *float64, unit string) string {
	switch {
	case v == nil:
		return "–"
	case unit == "share":
		return page.Percent(*v)
	case unit == "requests":
		return page.Brief(int64(*v))
	}
	return page.Number(*v) + " " + unit
}
