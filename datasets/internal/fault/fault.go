// Package fault says how an input is wrong, and where: faults, which skip a record or stop
// the reading, and notes, which are sentences with the number of records that they apply to.
package fault

import (
	"errors"
	"fmt"
	"io"

	"reprise/trace"
)

// ErrUsage matches, by errors.Is, errors that lie in what was asked for rather than in the input.
var ErrUsage = errors.New("usage error")

type usageError string

func (e usageError) Error() string { return string(e) }

func (e usageError) Is(target error) bool { return target == ErrUsage }

// Usage is an error in what was asked for.
func Usage(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// A Fault says what is wrong with an input and where, without quoting it.
type Fault struct {
	Line, Col int64
	Reason    string
	Err       error // sentinel
	Stop      bool  // nothing can be read beyond it
}

func (f *Fault) Error() string { return f.Reason }

// Bad is a fault of one record, which is skipped.
func Bad(line, col int64, reason string) *Fault { return &Fault{Line: line, Col: col, Reason: reason} }

// Refuse is a fault that stops the reading.
func Refuse(line, col int64, reason string) *Fault {
	return &Fault{Line: line, Col: col, Reason: reason, Stop: true}
}

// CutOff is the fault of an input that ends in the middle of a record.
func CutOff(line, col int64, what string) *Fault {
	return &Fault{Line: line, Col: col, Reason: "unexpected end of file: " + what, Err: io.ErrUnexpectedEOF, Stop: true}
}

// Broken passes on an error of the underlying reader with its place.
func Broken(line, col int64, err error) *Fault {
	return &Fault{Line: line, Col: col, Reason: err.Error(), Err: err, Stop: true}
}

// At is the fault as an error of a file.
func (f *Fault) At(file string) *trace.SourceError {
	return &trace.SourceError{File: file, Line: f.Line, Column: f.Col, Reason: f.Reason, Err: f.Err}
}
