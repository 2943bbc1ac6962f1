package anonymize

import (
	"os"
	"strings"

	"reprise/anonymize/internal/confine"
)

// A Confinement says what the process that looked at the text could not do: in a
// word or two each, or "not available" and why.
type Confinement struct {
	Network   string `json:"network"`    // seccomp
	Files     string `json:"files"`      // landlock and its version
	CoreDumps string `json:"core_dumps"` // off
}

// Confine shuts the network off for the whole process, leaves to it the files
// that it is to read, or that are below directories to read, the directories of
// those that it is to write, and that of temporary files, and switches core dumps
// off. On Linux that is done by seccomp and Landlock, as far as the kernel has
// them. It cannot be undone.
func Confine(read, write []string) Confinement {
	return Confinement(confine.Process(confine.Paths{Read: read, Write: write, Temp: os.TempDir()}))
}

// Missing lists what could not be applied, for people.
func (c Confinement) Missing() []string {
	var out []string
	for _, part := range []struct{ name, said string }{{"network", c.Network}, {"files", c.Files}, {"core dumps", c.CoreDumps}} {
		if strings.HasPrefix(part.said, confine.NotAvailable) {
			out = append(out, part.name+" "+part.said)
		}
	}
	return out
}
