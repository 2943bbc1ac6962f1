//go:build clouds

package objectstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const linked = true

// Main is the fetch process: it answers requests from stdin on stdout until stdin ends, and returns the exit code.
// An interrupt is for the process that asks, which ends this one.
func Main() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	out := os.Stdout
	os.Stdout = os.Stderr // a library may print there
	if err := serve(context.Background(), bufio.NewReader(os.Stdin), out, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "reprise: the process that speaks to object stores:", err)
		return 1
	}
	return 0
}
