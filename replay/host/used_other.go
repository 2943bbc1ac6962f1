//go:build !linux

package host

// OpenFiles returns 0: the number of open files is not known here.
func OpenFiles() int64 { return 0 }

// LocalPorts is how many ports the system gives to outgoing connections; 0 when it
// does not say.
func LocalPorts() int64 { return 0 }
