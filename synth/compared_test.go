package synth

import (
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// A Closeness is how far a workload is from its trace.
type Closeness struct {
	Distance map[string]*float64 // by measure; nil where it cannot be computed
	Warnings []profile.Warning
}

// Compared measures got against ref, each with its metadata. Package fidelity
// imports this one, so an external test sets it.
var Compared func(t testing.TB, refMeta trace.Meta, ref []trace.Request, gotMeta trace.Meta, got []trace.Request) Closeness
