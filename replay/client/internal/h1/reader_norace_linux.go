//go:build linux && (amd64 || arm64) && !race

package h1

// readOrdered is for the race detector alone.
func readOrdered(uintptr) {}
