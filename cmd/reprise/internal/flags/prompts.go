package flags

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/trace/objectstore"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/token"
)

// PromptText says what the prompts of a workload are like; synth records it.
type PromptText struct {
	shareTails   bool
	Text, corpus string
}

// textStable names words without meaning, which metadata do not name.
const textStable = "stable"

// Register adds the flags.
func (f *PromptText) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	_, rest := Sections(fl, PromptFlags)
	rest.BoolVar(&f.shareTails, "share-tails", false,
		"a prompt that continues another also shares its last, partial block. On by default; the mirror of a "+
			"workload takes it from there")
	rest.StringVar(&f.Text, "text", "", "text of prompts: stable (random words) or words (common English words)")
	rest.StringVar(&f.corpus, "corpus", "",
		"make prompts from slices of this text `file`. Only its digest is recorded: replay needs the file again")
}

// Describe puts into the metadata of a workload how its prompts are made. What
// no flag sets stays as it is; tails, where nothing was set before, are
// as shareTails says.
func (f *PromptText) Describe(cmd *cobra.Command, meta *trace.Meta, shareTails bool) error {
	if cmd.Flags().Changed("share-tails") {
		shareTails, meta.SharedTails = f.shareTails, ""
	}
	if shareTails {
		meta.SharedTails = trace.TailsShared
	}
	switch {
	case f.Text != "" && f.corpus != "":
		return cli.Usagef("give one of --text and --corpus")
	case f.corpus != "":
		corpus, err := objectstore.Open(f.corpus)
		if err != nil {
			return err
		}
		defer corpus.Close()
		digest, err := prompt.CorpusDigest(corpus)
		if err != nil {
			return err
		}
		meta.Text, meta.Corpus = trace.TextCorpus, digest
	case f.Text == textStable:
		meta.Text, meta.Corpus = "", ""
	case f.Text == trace.TextWords:
		meta.Text, meta.Corpus = trace.TextWords, ""
	case f.Text != "":
		return cli.Usagef("--text: want %s or %s", textStable, trace.TextWords)
	}
	return nil
}

// Prompts are what makes the prompts of a workload beside what the workload
// says about them.
type Prompts struct {
	Tokenizer string // --tokenizer, empty for the workload's
	Seed      string // --seed, empty for the workload's
	Corpus    string // --corpus, a path
	// Of a run that a command makes by itself. The seed is the command's, and not
	// the user's, so that cold caches may need another: coldSeed, or a random one.
	OwnSeed  bool
	ColdSeed string
	PlanOnly bool // no prompt is sent, so another tokenizer may stand for one that is not here

	learnt *learnt // shared by the runs of a command; nil if it makes one
}

// KeepLearnt keeps what the runs of a command learn of servers.
func (f *Prompts) KeepLearnt() { f.learnt = &learnt{words: map[string][]int{}} }

// Register adds the flags. What the tokenizer and the seed are used for differs from
// command to command.
func (f *Prompts) Register(fl *pflag.FlagSet, tokenizer, seed string) {
	everyday, rest := Sections(fl, PromptFlags)
	everyday.StringVar(&f.Tokenizer, "tokenizer", "", tokenizer)
	everyday.StringVar(&f.Seed, "seed", "", seed)
	rest.StringVar(&f.Corpus, "corpus", "", "text `file` that the workload was made with (synth --corpus)")
}

// Reseeded is the seed of prompts that match nothing in a cache. It is an error to
// ask for one where the user said which prompts to send.
func (f *Prompts) Reseeded() (uint64, error) {
	switch {
	case f.Seed != "" && !f.OwnSeed:
		return 0, ErrSeedGiven
	case f.ColdSeed != "":
		return strconv.ParseUint(f.ColdSeed, 10, 64)
	}
	return NewSeed()
}

// ErrSeedGiven is the error of [Prompts.Reseeded] where the seed is the user's.
var ErrSeedGiven = errors.New("--seed forbids other prompts")

// NewSeed is a random seed, which no run had before.
func NewSeed() (uint64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// A PromptMaker makes Prompters for one workload.
type PromptMaker struct {
	Tok       *token.Encoding
	Guessed   bool // nobody named the tokenizer
	Words     *token.Words
	Seed      uint64
	BlockSize int
	Rows      int64 // of the workload
	learnt    *learnt
	kind      string        // of the text, as [trace.Meta].Text
	text      *prompt.Text  // nil for words without meaning
	Tails     *prompt.Tails // nil when they are not shared
}

// Maker reads what the prompts of a workload need: tokenizer, seed, corpus, and
// the tails that its rows share. blockSize is that of its rows.
func (f *Prompts) Maker(cmd *cobra.Command, t *trace.Trace, blockSize int) (*PromptMaker, error) {
	if f.learnt == nil {
		f.KeepLearnt()
	}
	m := &PromptMaker{BlockSize: blockSize, kind: t.Meta.Text, learnt: f.learnt}
	m.learnt.folder = cli.StateFolder(cmd)
	var err error
	if m.Tok, err = f.openTokenizer(cmd, t); err != nil {
		return nil, err
	}
	// Import counts with the usual one too unless told otherwise.
	m.Guessed = f.Tokenizer == "" && m.Tok.Name() == usualTokenizer
	if m.Words = m.Tok.Words(); len(m.Words.Text) == 0 {
		return nil, errNoWords
	}
	if m.Seed, err = strconv.ParseUint(cmp.Or(f.Seed, t.Meta.Seed, "1"), 10, 64); err != nil {
		return nil, cli.Usagef("--seed: want a whole number from 0 to 2^64-1")
	}
	if m.text, err = f.open(cmd, m.Tok, t.Meta); err != nil {
		return nil, err
	}
	switch {
	case t.Meta.SharedTails == "" && t.Meta.IsWorkload():
	case t.Meta.SharedTails != "" && t.Meta.SharedTails != trace.TailsShared:
		return nil, errUnknownText
	case t.Meta.BlockSize > 0:
		rows, err := t.Reader()
		if err != nil {
			return nil, err
		}
		if m.Tails, err = prompt.ReadTails(rows, blockSize); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var errNoWords = errors.New("no prompts can be made with this tokenizer: it has no words of one token")

var errUnknownText = errors.New("the workload needs a kind of prompts that this version does not know: use a " +
	"newer version")

// open opens the text that the workload's prompts are written in.
func (f *Prompts) open(cmd *cobra.Command, tok *token.Encoding, meta trace.Meta) (*prompt.Text, error) {
	if f.Corpus != "" && meta.Text != trace.TextCorpus {
		return nil, cli.Usagef("--corpus: the workload was not made with a corpus: give --corpus to synth")
	}
	switch meta.Text {
	case "":
		return nil, nil
	case trace.TextWords:
		return prompt.English(tok)
	case trace.TextCorpus:
		return f.openCorpus(cmd, tok, meta.Corpus)
	}
	return nil, errUnknownText
}

// openCorpus reads the corpus and refuses another than the workload was made
// with. That is seen before it is taken apart, since it may be large.
func (f *Prompts) openCorpus(cmd *cobra.Command, tok *token.Encoding, digest string) (*prompt.Text, error) {
	if f.Corpus == "" {
		return nil, cli.Usagef("the workload's prompts come from a corpus: give it with --corpus FILE (its "+
			"digest is %s)", digest)
	}
	file, err := objectstore.Open(f.Corpus)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	got, err := prompt.CorpusDigest(file)
	if err != nil {
		return nil, err
	}
	if got != digest {
		return nil, cli.Usagef("--corpus: this is not the file that the workload was made with: its digest "+
			"is %s, not %s", got, digest)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	text, info, err := prompt.ReadCorpus(tok, file)
	if err == nil {
		cli.Notef(cmd, "corpus: %d of %d bytes can be used, %d tokens", info.Kept, info.Bytes, info.Tokens)
	}
	return text, err
}

// Prompter makes a Prompter for a template.
func (m *PromptMaker) Prompter(t result.Template) (*prompt.Prompter, error) {
	opts := []prompt.Option{prompt.WithTemplate(t.Before, t.After)}
	if m.text != nil {
		opts = append(opts, prompt.WithText(m.text))
	}
	if m.Tails != nil {
		opts = append(opts, prompt.WithTails(m.Tails))
	}
	return prompt.New(m.Words, m.Seed, m.BlockSize, opts...)
}

// A RowPrompter makes prompts, and says how many tokens of a corpus it had to fill.
type RowPrompter interface {
	result.Prompter
	Blocks() uint64    // how many it can tell apart
	Filled() int64     // tokens that had to be filled
	ShortTails() int64 // prompts with a block too short to be told from all others
}

// byKind are Prompters for the APIs that rows go to, whose templates differ.
type byKind map[string]*prompt.Prompter

func (b byKind) of(row *trace.Request) *prompt.Prompter { return b[client.KindAPI(row.Kind)] }

func (b byKind) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	return b.of(row).Prompt(row, buf)
}

func (b byKind) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	return b.of(row).Tokens(row, buf)
}

// Blocks is how many blocks all of them can tell apart.
func (b byKind) Blocks() uint64 {
	n := uint64(math.MaxUint64)
	for _, p := range b {
		n = min(n, p.Blocks())
	}
	return n
}

func (b byKind) Filled() (n int64) {
	for _, p := range b {
		n += p.Filled()
	}
	return n
}

func (b byKind) ShortTails() (n int64) {
	for _, p := range b {
		n += p.ShortTails()
	}
	return n
}

// ForAPIs makes the Prompter for APIs with these templates.
func (m *PromptMaker) ForAPIs(templates map[string]result.Template) (RowPrompter, error) {
	all, different := byKind{}, map[[2]int]bool{}
	for api, t := range templates {
		p, err := m.Prompter(t)
		if err != nil {
			return nil, err
		}
		all[api], different[[2]int{t.Before, t.After}] = p, true
	}
	if len(different) == 1 {
		for _, p := range all {
			return p, nil
		}
	}
	return all, nil
}
