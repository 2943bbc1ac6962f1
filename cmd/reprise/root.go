package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes. The first that applies in the order 2, 1, 4, 3 is used.
const (
	exitGood      = 0
	exitFailure   = 1
	exitUsage     = 2
	exitCheck     = 3 // a check did not hold
	exitUntrusted = 4 // the run is not trustworthy
)

// An exitError carries an exit code other than 1.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usagef is an error in how the command was called.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	began := false
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	root.SetArgs(vllmLists(args))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitGood
	}
	var exit *exitError
	code := exitFailure
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case !began: // cobra's own errors: unknown commands, flags and arguments
		code = exitUsage
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted; nothing was written")
	}
	fmt.Fprintf(stderr, "reprise: %v\n", err)
	if code == exitUsage {
		fmt.Fprintln(stderr, "Run with --help for how to use it.")
	}
	return code
}

// rootCommand is the tree of commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "Turn LLM traffic into a benchmark that may be shared, and replay it on time",
		Long: `Reprise imports production LLM logs and public traces, without their text,
synthesises prompts that share prefixes as the real ones did, and replays them
with their original timing against any OpenAI-compatible endpoint.

Begin with:  reprise demo`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(importCommand(), profileCommand(), sliceCommand(), anonymizeCommand(), auditCommand(), synthCommand(), fidelityCommand(), exportCommand(),
		serveCommand(), simulateCommand(), replayCommand(), reportCommand(), compareCommand(), sweepCommand(), benchCommand(), capacityCommand(), demoCommand())
	return root
}
