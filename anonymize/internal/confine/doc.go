// Package confine takes away from the process what it does not need to handle
// prompt text, so that a fault in the process, or in a library, cannot send the
// text anywhere. [Process] does three things, each as far as the system allows:
//
//  1. it switches core dumps off, which also keeps other processes of the user from
//     reading the memory of this one;
//  2. it closes the sockets that it was started with, and installs a seccomp filter in
//     all threads, which refuses sockets, io_uring, tracing and starting programs
//     (Linux, seccomp(2));
//  3. it enters a Landlock domain that allows only reading the inputs, writing next
//     to the outputs, and temporary files (Linux, landlock(7)).
//
// None of this can be undone before the process ends.
//
// # Files
//
//   - confine_linux.go, confine_other.go: Process: core dumps switched off, the seccomp
//     filter installed in all threads; nothing outside Linux
//   - seccomp_linux.go, seccomp_none_linux.go: the seccomp filter: which system calls are
//     refused, by processor
//   - landlock_linux.go: the Landlock rules: which files stay readable and writable
package confine

// Paths are the files that the process still needs.
type Paths struct {
	Read  []string // files, or directories with all that is below them
	Write []string // files that will be written, each beside its name first
	Temp  string   // directory for temporary files

	// Serves says that the process needs the network, and may read what its user may:
	// certificates, names of hosts. It writes no other files all the same.
	Serves bool
}

// A Status says in a word or two what holds of the process. What could not be
// applied is [NotAvailable] and the reason, which quotes no path.
type Status struct {
	Network   string // "seccomp"
	Files     string // "landlock abi 4"
	CoreDumps string // "off"
}

// NotAvailable begins the words for what could not be applied.
const NotAvailable = "not available"

func notAvailable(why string) string { return NotAvailable + ": " + why }
