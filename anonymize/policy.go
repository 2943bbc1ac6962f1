package anonymize

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"reprise/anonymize/internal/confine"
	"reprise/trace"
	"reprise/trace/token"
)

// Internal is the tier of pseudonymous records for use inside the organisation
// that they came from: exact relative times, exact lengths, every block id.
const Internal = "internal"

// Partner is the tier of k-anonymous records for a partner under contract: times
// and lengths in buckets that several users share, block ids across users only
// where several have them.
const Partner = "partner"

// Raw is the tier of text that an operator keeps for verbatim replay: a file
// beside a trace of tier internal, see [Policy].Raw and [OpenRaw].
const Raw = "raw"

// A Policy holds the settings of [Run].
type Policy struct {
	Tier      string // must be [Internal]; [Release] makes other tiers from its rows
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
	// from its begin, or from the first arrival if there is no window.
	Capture trace.Capture

	KeepModel    bool   // keep model names as the source spells them
	GlobalBlocks *int   // depth of the global prefix, instead of measuring it
	SpillDir     string // for private spill files; os.TempDir when empty
	Workers      int    // goroutines that tokenise; 0 means GOMAXPROCS

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

	// Renaming is nil. Only audits set it.
	Renaming *Renaming

	limits limits
}

// A PartnerPolicy holds the settings of [Release]. The zero value of a field stands
// for its default.
type PartnerPolicy struct {
	// Unit is [UnitUser], [UnitSession] or [UnitRequest]. When empty it is the
	// user where the trace has users, else the session of the source; a trace
	// with neither is [ErrNoUnit].
	Unit string

	KShare     int           // a block keeps one id for all if at least this many users have it; default 5
	KClass     int           // least users of a pair of lengths, and of a name; default 11
	LinkK      int           // least users of the lengths of a session's turns, for the turns to stay linked; default KClass, 1 links all
	PerOctave  int           // buckets of lengths in an octave; default 2
	Quantum    time.Duration // bin within which times are drawn anew; default 1 s
	DropOwn    bool          // drop blocks that fewer than KShare users have, so that they link nothing; see [Release]
	Suppressed float64       // largest share of the requests that may be left out; default 0.05

	SpillDir string
	Confined *Confinement // of this process, for the card; nil where it is not confined
	Progress func(step string, done int64)

	// Noise is nil, for the system's randomness. Only tests and audits set it.
	Noise io.Reader

	limits limits
	watch  func(row, at int64) // of tests: which row came out at what instant
}

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
	distinct int   // blocks that are numbered in memory
	refs     int   // references to blocks in a partition
	sharing  int64 // bytes for the units of blocks
}

func (l *limits) settle() {
	l.distinct, l.sharing = cmp.Or(l.distinct, maxDistinct), cmp.Or(l.sharing, sharingBytes)
}

// maxDistinct is how many distinct blocks are numbered in memory, for some 100
// bytes each over all steps. The published traces have a fifth of it.
const maxDistinct = 1 << 20

func (p *Policy) check() error {
	if p.Tier != Internal {
		return fmt.Errorf("entries become rows of tier %s, and those rows of other tiers", Internal)
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

func (p *PartnerPolicy) settle() error {
	p.KShare, p.KClass, p.PerOctave = cmp.Or(p.KShare, 5), cmp.Or(p.KClass, 11), cmp.Or(p.PerOctave, 2)
	p.LinkK = cmp.Or(p.LinkK, p.KClass)
	p.Quantum = cmp.Or(p.Quantum, time.Second)
	p.Suppressed = cmp.Or(p.Suppressed, 0.05)
	if p.Noise == nil {
		p.Noise = rand.Reader
	}
	p.limits.settle()
	switch {
	case p.KShare < 1 || p.KShare > 1000 || p.KClass < 1 || p.KClass > 1_000_000:
		return errors.New("k_share must be 1 to 1,000, and k_class 1 to 1,000,000")
	case p.LinkK < 1 || p.LinkK > 1_000_000:
		return errors.New("k_link must be 1 to 1,000,000")
	case p.PerOctave < 1 || p.PerOctave > 16:
		return errors.New("an octave must have 1 to 16 length buckets")
	case p.Quantum < time.Millisecond || p.Quantum > time.Hour:
		return errors.New("the time quantum must be 1 ms to 1 h")
	case !(p.Suppressed > 0 && p.Suppressed < 1):
		return errors.New("the share of requests that may be left out must be between 0 and 1")
	case p.Unit != "" && p.Unit != UnitUser && p.Unit != UnitSession && p.Unit != UnitRequest:
		return errors.New("the unit must be user, session or request")
	}
	return nil
}

// dropsOwn tells whether there are blocks to drop: with KShare of 1 all are shared.
func (p *PartnerPolicy) dropsOwn() bool { return p.DropOwn && p.KShare > 1 }

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

// Missing lists the parts that could not be applied, in words for people.
func (c Confinement) Missing() []string {
	var out []string
	for _, part := range []struct{ name, said string }{{"network", c.Network}, {"files", c.Files}, {"core dumps", c.CoreDumps}} {
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
