// Command reprise turns production LLM traffic into a benchmark that may be
// shared, and plays it back with its original timing.
//
// Each subcommand is one step of the flow, or one look at its result:
//
//	import   a source log becomes a trace, without its text
//	profile  what the trace says of lengths, arrivals and prefix reuse
//	slice    a window of a trace
//	synth    a workload with fresh ids that shares prefixes as the trace does
//	fidelity how close a workload is to a trace
//	export   a trace in another tool's format
//	serve    a simulated endpoint to replay against
//	replay   a workload sent on time, every token of the answers timed
//	report   what the replay measured, and whether it can be trusted
//	sweep    one load after another, the knee, and the highest that holds
//	capacity instances, GPUs and cost of that, and what bandwidth would allow
//	bench    a suite of replays, of one server or several
//	demo     all of it, on an embedded log
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
