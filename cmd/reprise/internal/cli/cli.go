// Package cli holds what the commands of reprise have in common: exit codes and the
// errors that carry them, messages and progress on stderr, and opening and writing the
// files that a command line names.
//
// # Files
//
//   - cli.go: exit codes and the errors that carry them, messages on stderr, --quiet; two
//     signals that are one
//   - files.go: input files and stdin, output files and stdout, refusing to overwrite an
//     input
//   - finding.go: what a command found, as text, JSON and a page
//   - kinds.go: the kind of a file that a command does not take, and the command that takes it
//   - memory.go: the heap size that a command aims to stay below
//   - output.go: an output that exists, a folder or an input that does not; errors of files
//     in plain words
//   - progress.go: bars and lines of progress
//   - staged.go: outputs in a store that grow: kept on the machine, uploaded at the end; the folder
//     in which commands remember things of a user
//   - text.go: wrapped help texts and lists in them, the values of a repeated flag,
//     indented JSON, figures with a dash for none
package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// The linker sets what was built. Where it set nothing, Version is the module's.
var (
	Version    = unversioned
	Commit     string // of a release; of other builds Go may know it
	CommitDate string
)

const unversioned = "unversioned"

// go install gives the linker no version, and notes the version of the module instead.
func init() {
	if info, ok := debug.ReadBuildInfo(); ok && Version == unversioned {
		Version = moduleVersion(info.Main.Version)
	}
}

// moduleVersion is a version as Go notes it: none, or (devel), where it was not fetched.
func moduleVersion(noted string) string {
	if noted == "" || noted == "(devel)" {
		return unversioned
	}
	return noted
}

// Exit codes. Where several apply, the first of 2, 1, 4, 3 is used; but a clause of a
// contract that fails (3) goes before one that cannot be judged (4).
const (
	Good      = 0
	Failure   = 1
	Usage     = 2
	Check     = 3 // a check did not hold
	Untrusted = 4 // the run is not trustworthy
)

// SameSignal is how long after a first interrupt a second one is taken for the same.
const SameSignal = time.Second

// An ExitError carries an exit code other than [Failure].
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of Err.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap is Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit makes err end the program with this code.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usagef is an error in how the command was called.
func Usagef(format string, args ...any) error {
	return Exit(Usage, fmt.Errorf(format, args...))
}

// UsageIf makes err a usage error where it is, or wraps, target.
func UsageIf(err, target error) error {
	if errors.Is(err, target) {
		return Exit(Usage, err)
	}
	return err
}

// Warnf writes a [Message] to stderr, with --quiet too: what changes how a result is to be read, or what somebody
// must do.
func Warnf(cmd *cobra.Command, format string, args ...any) {
	Message(cmd.ErrOrStderr(), fmt.Sprintf(format, args...))
}

// Notef writes a [Message] to stderr about a step, a choice or what may help, which --quiet leaves out.
func Notef(cmd *cobra.Command, format string, args ...any) {
	if !On(cmd, "quiet") {
		Warnf(cmd, format, args...)
	}
}

type onceKey struct{}

// Once is a context in which [Oncef] and [WarnOncef] say each message once.
func Once(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, new(sync.Map))
}

// Oncef writes a message as [Notef] does, but not a second time under the same [Once]: what each of many runs finds
// anew is said once.
func Oncef(cmd *cobra.Command, format string, args ...any) {
	if !On(cmd, "quiet") {
		WarnOncef(cmd, format, args...)
	}
}

// WarnOncef is [Oncef] for what [Warnf] is for.
func WarnOncef(cmd *cobra.Command, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if ctx := cmd.Context(); ctx != nil {
		if said, ok := ctx.Value(onceKey{}).(*sync.Map); ok {
			if _, again := said.LoadOrStore(text, true); again {
				return
			}
		}
	}
	Message(cmd.ErrOrStderr(), text)
}
