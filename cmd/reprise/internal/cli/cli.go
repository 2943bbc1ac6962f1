// Package cli holds what every command of reprise has in common: the exit codes,
// errors that carry one, and messages on stderr.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes. The first that applies in the order 2, 1, 4, 3 is used.
const (
	Good      = 0
	Failure   = 1
	Usage     = 2
	Check     = 3 // a check did not hold
	Untrusted = 4 // the run is not trustworthy
)

// An ExitError carries an exit code other than [Failure].
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of the error inside.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap is the error inside.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit has the program end with this code and error.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usagef is an error in how the command was called.
func Usagef(format string, args ...any) error {
	return Exit(Usage, fmt.Errorf(format, args...))
}

// Notef writes a message for people to stderr.
func Notef(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
}

// Stepf writes that a step of something long began or is over, unless --quiet.
func Stepf(cmd *cobra.Command, format string, args ...any) {
	if quiet, _ := cmd.Flags().GetBool("quiet"); !quiet {
		Notef(cmd, format, args...)
	}
}
