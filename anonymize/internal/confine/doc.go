// Package confine takes from the process what a step that handles prompt text
// does not need, so that a fault in it, or in a library that it uses, has nowhere
// to send the text to. [Process] does it in three parts, each as far as the
// system allows:
//
//  1. core dumps are switched off, and with them other processes of the user
//     reading this one's memory;
//  2. a seccomp filter refuses sockets, io_uring, tracing and the starting of
//     programs, in all threads (Linux, seccomp(2));
//  3. a Landlock domain leaves reading of the inputs, writing beside the outputs
//     and temporary files (Linux, landlock(7)).
//
// It cannot be undone: what was confined stays so to the end of the process.
package confine

// Paths are the files that the process still needs.
type Paths struct {
	Read  []string // files, or directories with all that is below them
	Write []string // files that will be written, each beside its name first
	Temp  string   // directory for temporary files
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
