//go:build !linux

package pace

import (
	"errors"
	"fmt"
	"time"
)

// A Thread is the Pacer for a program that has more to do than to wait. Only Linux
// has one that differs from a Timer.
type Thread struct{ *Timer }

// NewThread returns a Thread whose due times count from start, which must come from
// time.Now. Close it after use.
func NewThread(start time.Time) (*Thread, error) {
	t, err := New(start)
	return &Thread{t}, err
}

// NewRealtime returns an error of errors.ErrUnsupported.
func NewRealtime(time.Time) (*Thread, error) {
	return nil, fmt.Errorf("pace: realtime threads: %w", errors.ErrUnsupported)
}
