//go:build !unix

package host

// FileLimit is how many files the process may have open: there is no limit to ask.
func FileLimit() int64 { return 1 << 30 }
