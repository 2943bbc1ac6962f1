//go:build !linux

package confine

import "errors"

// Process does nothing here.
func Process(Paths) Status {
	no := notAvailable("Linux alone has it")
	return Status{no, no, no}
}

// NoDumps does nothing here.
func NoDumps() error { return errors.New("Linux alone has it") }
