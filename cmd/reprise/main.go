// Command reprise turns production LLM traffic into a benchmark that may be
// shared, and plays it back with its original timing.
//
// Each subcommand is one step of the flow, or one look at its result:
//
//	import    a source log becomes a trace, without its text
//	profile   lengths, arrivals and prefix reuse of a trace
//	slice     a window of a trace
//	anonymize a trace that may be shared, with its privacy card
//	audit     attacks on an output before it is shared
//	synth     a workload with fresh ids that shares prefixes as the trace does
//	fidelity  how close a workload is to a trace
//	export    a trace in another tool's format
//	serve     a simulated endpoint to replay against
//	simulate  a workload answered by an engine model in virtual time
//	replay    a workload sent on time, every token of the answers timed
//	report    what a replay measured, and whether it can be trusted
//	compare   two servers under the same workload, and whether one is slower
//	sweep     one load after another, up to the highest that meets a contract
//	bench     a suite of replays, of one server or several
//	capacity  instances, GPUs and cost for a rate
//	demo      all of it, on an embedded log
//
// This package holds flags and wiring only: one file for each subcommand.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"reprise/anonymize"
)

// version is set by the linker.
var version = "unversioned"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ctx = withConfine(ctx, anonymize.Confine)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
