package trace

import "fmt"

// A SourceError says where an input is at fault and why, without quoting it.
type SourceError struct {
	File   string
	Line   int64 // from 1; 0 when the input has no lines
	Column int64 // from 1, in bytes; 0 when the whole line is meant
	Reason string
	Err    error // a sentinel for errors.Is, such as io.ErrUnexpectedEOF; never one that quotes input
}

// Error formats as file:line:column: reason.
func (e *SourceError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Unwrap returns the sentinel.
func (e *SourceError) Unwrap() error { return e.Err }
