//go:build !linux && !darwin

package host

// kernelAndMemory is not known here.
func kernelAndMemory() (kernel string, memory int64) { return "", 0 }
