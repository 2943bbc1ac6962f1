package report

import (
	"fmt"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// The tables that the text and the page share, as rows of strings.

// schedule says what made requests due.
func schedule(r *result.Run) string {
	switch {
	case r.Read != nil && r.Timing != result.ClosedLoop:
		return "as " + textpage.Plain(r.Read.Tool) + " sent them"
	case r.Sessions != nil && r.Sessions.Live > 0:
		return fmt.Sprintf("closed loop of %s: the server sets the rate",
			doc.Many(int64(r.Sessions.Live), "live session"))
	case r.Sessions != nil:
		return fmt.Sprintf("whole sessions start by %s", textpage.Plain(r.Sessions.Rate))
	case r.Timing == result.ClosedLoop:
		return fmt.Sprintf("closed loop of %s: the server sets the rate", doc.Many(int64(r.Concurrency), "request"))
	case r.Rate != "" && r.Timing == result.Causal:
		return fmt.Sprintf("%s, sessions start by %s", textpage.Plain(r.Timing), textpage.Plain(r.Rate))
	case r.Rate != "":
		return fmt.Sprintf("%s, %s", textpage.Plain(r.Timing), textpage.Plain(r.Rate))
	}
	return fmt.Sprintf("%s, speed %s", textpage.Plain(r.Timing), doc.Number(r.Speed))
}

func difference(d Difference) string {
	switch {
	case d.Compared == 0:
		return "nothing to compare"
	case d.SumAbs == 0:
		return fmt.Sprintf("all %s matched", doc.Many(d.Compared, "request"))
	}
	return fmt.Sprintf("%s compared: %s longer, %s shorter, by at most %s",
		doc.Many(d.Compared, "request"), doc.Brief(d.More), doc.Brief(d.Fewer), doc.Many(d.MaxAbs, "token"))
}

func unit(v *float64, name string) string {
	if v == nil {
		return "–"
	}
	return doc.Number(*v) + " " + name
}

func numberOrDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return doc.Number(*v)
}

// saidOf is what servers said about the errors of a class, the first time of each status.
func saidOf(run *result.Run, class string) string {
	var words []string
	for _, said := range run.Said {
		if said.Class == class && !slices.Contains(words, said.Words) {
			words = append(words, said.Words)
		}
	}
	return strings.Join(words, "; ")
}

// readVerdict is what can be said of a complete run of another tool.
const readVerdict = "the run is complete. Its client was not watched, so whether it kept up is not known."

// madeBy is what made a run: the name of the field, and its version.
func madeBy(r *result.Run) (name, version string) {
	if r.Read != nil {
		return "Made by", r.Read.Tool
	}
	return "Reprise", r.Version
}
