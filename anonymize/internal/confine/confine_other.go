//go:build !linux

package confine

// Process does nothing here.
func Process(Paths) Status {
	no := notAvailable("Linux alone has it")
	return Status{no, no, no}
}
