package anonymize

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"reprise/anonymize/internal/confine"
	"reprise/trace"
	"reprise/trace/token"
)

// Internal is the tier of pseudonymous records for use inside the house that
// they came from: exact relative times, exact lengths, every block id.
const Internal = "internal"

// A Policy says how entries become rows.
type Policy struct {
	Tier      string // [Internal]: others are made of its rows, see [Release]
	BlockSize int    // tokens in a block of text; 1 to 1<<16

	// SourceBlock is the block size of ids that the source hashed itself; 0
	// when it has none. It wins over BlockSize, as ids cannot be cut again.
	SourceBlock int

	// Tokenizer counts and cuts text. It may be nil for sources without text.
	Tokenizer token.Tokenizer
	Template  token.Template // rendered around messages; the zero Template adds nothing

	// Capture is the declared window that all entries must be in: rows then count
	// from its begin. Without one they count from the first of them.
	Capture trace.Capture

	KeepModel    bool   // keep model names as the source spells them
	GlobalBlocks *int   // depth of the global prefix, instead of measuring it
	SpillDir     string // for private spill files; os.TempDir when empty
	Workers      int    // goroutines that tokenise; 0 means GOMAXPROCS

	// Raw, when set, gets the text of the rows, for verbatim replay: a raw file,
	// which [OpenRaw] reads. It is the one way for text out of this package, so it
	// must be a file that its owner alone can read. The source must have text.
	Raw io.Writer

	// KTemplate, when above 0, has [Card].Templates keep the system prompts that
	// at least so many users have, as text.
	KTemplate int

	Confined *Confinement // of this process, for the card; nil where it is not confined

	// Progress, when set, is called now and then with the number of entries
	// or rows that a step has done.
	Progress func(step string, done int64)

	// Renaming is nil. Only audits set it.
	Renaming *Renaming

	limits limits
}

// limits are for tests: 0 is what is right outside them.
type limits struct {
	distinct int   // blocks that are numbered in memory
	refs     int   // references to blocks in a partition
	sharing  int64 // bytes for the units of blocks
}

func (l *limits) settle() {
	if l.distinct == 0 {
		l.distinct = maxDistinct
	}
	if l.sharing == 0 {
		l.sharing = sharingBytes
	}
}

func (p *Policy) check() error {
	if p.Tier != Internal {
		return fmt.Errorf("entries become rows of tier %s, and those rows of other tiers", Internal)
	}
	if size := p.blockSize(); size < 1 || size > 1<<16 {
		return fmt.Errorf("a block of %d tokens: want 1 to %d", size, 1<<16)
	}
	switch {
	case (p.Raw != nil || p.KTemplate != 0) && p.Tokenizer == nil:
		return errors.New("text cannot be kept of a source that has none")
	case p.KTemplate != 0 && (p.KTemplate < 2 || p.KTemplate > maxKTemplate):
		return errTemplateK
	}
	p.limits.settle()
	return nil
}

func (p *Policy) workers() int {
	if p.Workers > 0 {
		return p.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (p *Policy) blockSize() int {
	if p.SourceBlock > 0 {
		return p.SourceBlock
	}
	return p.BlockSize
}

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
