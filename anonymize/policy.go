package anonymize

import (
	"cmp"
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

// Internal is the tier of pseudonymous records for use inside the organisation
// that they came from: exact relative times, exact lengths, every block id.
const Internal = "internal"

// Partner is the tier of sessions that are drawn from noisy counts, for a partner under
// contract. No row of the source is in it. Package synth/release draws them.
const Partner = "partner"

// Raw is the tier of text that an operator keeps for verbatim replay: a file
// beside a trace of tier internal, see [Policy].Raw and [OpenRaw].
const Raw = "raw"

// A Policy holds the settings of [Run].
type Policy struct {
	Tier      string // must be [Internal]; other tiers are made from its rows
	BlockSize int    // tokens in a block of text; 1 to 1<<16

	// SourceBlock is the number of tokens in a block whose id the source hashed
	// itself, or 0 if the source has no ids. It overrides BlockSize, because ids
	// cannot be cut again.
	SourceBlock int

	// Tokenizer counts and cuts text. It may be nil for sources without text.
	Tokenizer token.Tokenizer
	Template  token.Template // rendered around messages; the zero Template adds nothing

	// Lengths says which count is the length of a prompt that has text and a count of
	// the source: [LengthsUsage] or [LengthsText]. When empty it is the source's, and
	// the two may not contradict each other.
	Lengths string

	// Capture is the declared window that all entries must be in. Arrivals count
	// from its begin, or from the first arrival if there is no window. With a window
	// the rows may become a release, and no entry changes what becomes of another
	// user's: no count of text and usage, no short text that many have and no cached
	// prefix is learnt across users.
	Capture trace.Capture

	KeepModel bool   // keep model names as the source spells them
	SpillDir  string // for private spill files; os.TempDir when empty
	Workers   int    // goroutines that tokenise; 0 means GOMAXPROCS

	// Raw, when set, receives the text of the rows for a verbatim replay, in the
	// format that [OpenRaw] reads. It must be a file that only its owner can read.
	// The source must have text.
	Raw io.Writer

	// KTemplate, when above 0, keeps the text of the system prompts that at least
	// this many users have, in [Card].Templates.
	KTemplate int

	Confined *Confinement // of this process, for the card; nil where it is not confined

	// Progress, when set, is called now and then with the number of entries
	// or rows that a step has done.
	Progress func(step string, done int64)

	limits limits
}

// apart reports whether nothing is learnt across users: a trace with a declared window may be
// released, and then no request of one user may change what becomes of another's.
func (p *Policy) apart() bool { return p.Capture.Declared() }

// Units of privacy: what is counted, and hidden among others of its kind.
const (
	UnitUser    = "user"
	UnitSession = "session" // of the source, never an inferred one
	UnitRequest = "request" // hides a request among others, not a person
)

// A Source is a trace of tier internal that can be read several times.
type Source struct {
	Meta trace.Meta
	Open func() (trace.Reader[trace.Request], error)
}

// limits are for tests: 0 is what is right outside them.
type limits struct {
	distinct int // blocks that are numbered in memory
	pages    int // of keys of these
	inferred int // blocks that are inferred in memory
	refs     int // references to blocks in a partition
}

func (l *limits) settle() {
	l.distinct, l.pages, l.inferred = cmp.Or(l.distinct, maxDistinct), cmp.Or(l.pages, maxPages),
		cmp.Or(l.inferred, maxInferred)
}

// maxDistinct is how many distinct blocks are numbered in memory, for 4 bytes each, 2 more where prompts end in part of
// a block, and up to 20 for one in which a hit ends, on up to maxPages pages of 56 bytes: see [block.IDs]. Ids that
// come in their order share pages. Ids that are hashes share none, and a million of them are numbered in memory. The
// published traces have less than a hundredth of either.
const (
	maxDistinct = 1 << 27
	maxPages    = 1 << 23
	maxInferred = 1 << 20
)

func (p *Policy) check() error {
	if p.Tier != Internal {
		return fmt.Errorf("entries become rows of tier %s, and these become rows of other tiers", Internal)
	}
	if size := p.blockSize(); size < 1 || size > 1<<16 {
		return fmt.Errorf("a block of %d tokens: want 1 to %d", size, 1<<16)
	}
	switch {
	case p.Lengths != "" && p.Lengths != LengthsUsage && p.Lengths != LengthsText:
		return fmt.Errorf("lengths of %s: want %s or %s", p.Lengths, LengthsUsage, LengthsText)
	case (p.Raw != nil || p.KTemplate != 0) && p.Tokenizer == nil:
		return errors.New("the source has no text to keep")
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

// A Confinement says by what means the process that looked at the text was
// confined, in a word or two each, or "not available" and why.
type Confinement struct {
	Network   string `json:"network"`    // seccomp
	Files     string `json:"files"`      // landlock and its version
	CoreDumps string `json:"core_dumps"` // off
}

// Confine shuts the network off for the whole process, switches core dumps off, and
// leaves three kinds of files: those to read, with all that is below them; the
// directories of those to write; and the directory of temporary files. Linux does
// that by seccomp and Landlock, if the kernel has them. It cannot be undone.
func Confine(read, write []string) Confinement {
	return Confinement(confine.Process(confine.Paths{Read: read, Write: write, Temp: os.TempDir()}))
}

// ConfineRecorder switches core dumps off for the whole process and lets it write to
// files in the directory of write alone. It keeps the network, and may read what its user
// may. It cannot be undone.
func ConfineRecorder(write string) Confinement {
	return Confinement(confine.Process(confine.Paths{Write: []string{write}, Serves: true}))
}

// NoCoreDumps switches core dumps off for the whole process, and keeps other processes of
// its user from reading its memory, where the system can. It cannot be undone.
func NoCoreDumps() error { return confine.NoDumps() }

// Missing lists the parts that could not be applied, in words for people.
func (c Confinement) Missing() []string {
	var out []string
	for _, part := range []struct{ name, said string }{{"network", c.Network}, {"files", c.Files},
		{"core dumps", c.CoreDumps}} {
		if strings.HasPrefix(part.said, confine.NotAvailable) {
			out = append(out, part.name+" "+part.said)
		}
	}
	return out
}

func (p *Policy) progress(step string, done int64) {
	if p.Progress != nil {
		p.Progress(step, done)
	}
}

// DefaultKTemplate is how many users must have a system prompt for it to be kept.
const DefaultKTemplate = 20

const maxKTemplate = 10_000

var errTemplateK = fmt.Errorf("k_template must be 2 to %d", maxKTemplate)
