package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/token"
)

// textFlags say what the prompts of a workload are like; synth records it.
type textFlags struct {
	shareTails   bool
	text, corpus string
}

// textStable names words without meaning, which metadata do not name.
const textStable = "stable"

func (f *textFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.shareTails, "share-tails", false, "a prompt that continues another repeats the tokens of its last, partial block; on, but in a mirror only where its source has it on")
	fl.StringVar(&f.text, "text", "", "what prompts are written in: stable (words without meaning) or words (common English ones)")
	fl.StringVar(&f.corpus, "corpus", "", "`file` with a text whose slices prompts are made of; replay needs it again, since only its digest is recorded")
}

// describe puts into the metadata of a workload how its prompts are made. What
// no flag says stays as it is; tails, where nothing was said of them before, are
// as given.
func (f *textFlags) describe(cmd *cobra.Command, meta *trace.Meta, shareTails bool) error {
	if cmd.Flags().Changed("share-tails") {
		shareTails, meta.SharedTails = f.shareTails, ""
	}
	if shareTails {
		meta.SharedTails = trace.TailsShared
	}
	switch {
	case f.text != "" && f.corpus != "":
		return usagef("give one of --text and --corpus")
	case f.corpus != "":
		digest, err := corpusDigest(f.corpus)
		if err != nil {
			return err
		}
		meta.Text, meta.Corpus = trace.TextCorpus, digest
	case f.text == textStable:
		meta.Text, meta.Corpus = "", ""
	case f.text == trace.TextWords:
		meta.Text, meta.Corpus = trace.TextWords, ""
	case f.text != "":
		return usagef("--text: want %s or %s", textStable, trace.TextWords)
	}
	return nil
}

func corpusDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return prompt.CorpusDigest(f)
}

// promptFlags are what makes the prompts of a workload beside what the workload
// says of them.
type promptFlags struct {
	tokenizer string
	seed      string
	corpus    string
	// Of a run that a command makes by itself. The seed is the command's, and not
	// the user's, so that cold caches may need another: coldSeed, or a random one.
	ownSeed  bool
	coldSeed string
}

// reseeded is the seed of prompts that match nothing in a cache. It is an error to
// ask for one where the user said which prompts to send.
func (f *promptFlags) reseeded() (uint64, error) {
	switch {
	case f.seed != "" && !f.ownSeed:
		return 0, errSeedGiven
	case f.coldSeed != "":
		return strconv.ParseUint(f.coldSeed, 10, 64)
	}
	return newSeed()
}

var errSeedGiven = errors.New("--seed forbids other prompts")

// newSeed is a random seed, which no run had before.
func newSeed() (uint64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

const corpusUsage = "`file` that the workload's prompts are slices of, where it was made with one"

// A promptMaker makes Prompters for one workload.
type promptMaker struct {
	tok       *token.Encoding
	seed      uint64
	blockSize int
	text      *prompt.Text  // nil for words without meaning
	tails     *prompt.Tails // nil when they are not shared
}

// maker reads what the prompts of a workload need: tokenizer, seed, corpus, and
// the tails that its rows share. blockSize is that of its rows.
func (f *promptFlags) maker(cmd *cobra.Command, t *trace.Trace, blockSize int) (*promptMaker, error) {
	m := &promptMaker{blockSize: blockSize}
	var err error
	if m.tok, err = openTokenizer(f.tokenizer, t.Meta); err != nil {
		return nil, err
	}
	if len(m.tok.Words().Text) == 0 {
		return nil, errNoWords
	}
	if m.seed, err = promptSeed(f.seed, t.Meta); err != nil {
		return nil, err
	}
	if m.text, err = f.open(cmd, m.tok, t.Meta); err != nil {
		return nil, err
	}
	switch {
	case t.Meta.SharedTails == "":
	case t.Meta.SharedTails != trace.TailsShared:
		return nil, errUnknownText
	case t.Meta.BlockSize > 0:
		rows, err := t.Reader()
		if err != nil {
			return nil, err
		}
		if m.tails, err = prompt.ReadTails(rows, blockSize); err != nil {
			return nil, err
		}
		notef(cmd, "tails: %d blocks repeat %d tokens of the partial block that they complete", m.tails.Len(), m.tails.Tokens())
	}
	return m, nil
}

var errNoWords = errors.New("no prompts can be made for this tokenizer: it has no words that are one token each")

var errUnknownText = errors.New("the workload asks for prompts of a kind that this version does not know")

// open opens the text that the workload's prompts are written in.
func (f *promptFlags) open(cmd *cobra.Command, tok *token.Encoding, meta trace.Meta) (*prompt.Text, error) {
	if f.corpus != "" && meta.Text != trace.TextCorpus {
		return nil, usagef("--corpus: the workload was not made with a corpus; give it to synth")
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
func (f *promptFlags) openCorpus(cmd *cobra.Command, tok *token.Encoding, digest string) (*prompt.Text, error) {
	if f.corpus == "" {
		return nil, usagef("the workload's prompts are made of a corpus: say where it is with --corpus FILE (its digest is %s)", digest)
	}
	file, err := os.Open(f.corpus)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	got, err := prompt.CorpusDigest(file)
	if err != nil {
		return nil, err
	}
	if got != digest {
		return nil, usagef("--corpus: this is not the file that the workload was made with: its digest is %s, not %s", got, digest)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	text, info, err := prompt.ReadCorpus(tok, file)
	if err == nil {
		notef(cmd, "corpus: %d of %d bytes can be used, %d tokens", info.Kept, info.Bytes, info.Tokens)
	}
	return text, err
}

// prompter makes a Prompter.
func (m *promptMaker) prompter(overhead int) (*prompt.Prompter, error) {
	opts := []prompt.Option{prompt.WithOverhead(overhead)}
	if m.text != nil {
		opts = append(opts, prompt.WithText(m.text))
	}
	if m.tails != nil {
		opts = append(opts, prompt.WithTails(m.tails))
	}
	return prompt.New(m.tok.Words(), m.seed, m.blockSize, opts...)
}

// A rowPrompter makes prompts, and says how many tokens of a corpus it had to fill.
type rowPrompter interface {
	replay.Prompter
	Blocks() uint64
	Filled() int64
	ShortTails() int64
}

// byKind are Prompters for the APIs that rows go to, whose templates differ.
type byKind map[string]*prompt.Prompter

func (b byKind) of(row *trace.Request) *prompt.Prompter { return b[replay.KindAPI(row.Kind)] }

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

// forAPIs makes the Prompter for APIs with templates of so many tokens.
func (m *promptMaker) forAPIs(overheads map[string]int) (rowPrompter, error) {
	all, lengths := byKind{}, map[int]bool{}
	for api, overhead := range overheads {
		p, err := m.prompter(overhead)
		if err != nil {
			return nil, err
		}
		all[api], lengths[overhead] = p, true
	}
	if len(lengths) == 1 {
		for _, p := range all {
			return p, nil
		}
	}
	return all, nil
}

// threadFlags say whether the server's replies go into the next turn's prompt.
type threadFlags struct {
	thread bool
}

func (f *threadFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.thread, "thread", false, "put the server's own reply into the prompt of the turn that follows, so that the KV it generated is reused; needs turns that wait for others")
}

// checkThreads refuses flags that contradict each other.
func (f *replayFlags) checkThreads() error {
	switch {
	case !f.thread:
	case f.OpenLoop:
		return usagef("--thread and --open-loop contradict each other: a turn sent at its recorded time may be sent before the reply to the one it follows")
	case f.Concurrency != 0:
		return usagef("--thread and --concurrency contradict each other: a closed loop does not wait for the turn before")
	case f.verify:
		return usagef("--thread and --verify contradict each other: what a server replies need not encode to the tokens that it generated")
	case f.resume:
		return usagef("--thread and --resume contradict each other: replies are in memory alone, and went with the run that was killed")
	case f.API != replay.APICompletions && f.API != replay.APIChat:
		return usagef("--thread is for --api %s and %s", replay.APICompletions, replay.APIChat)
	case f.loop != "":
		return usagef("--thread and --loop cannot be had together: replies belong to rows of one round")
	}
	return nil
}

// threading has the run put replies into prompts. It is nil unless asked for.
func (f *threadFlags) threading(cmd *cobra.Command, part *workloadPart, lineage *replay.Lineage, e *replay.HTTP, m *promptMaker) (*replay.Threading, error) {
	if !f.thread {
		return nil, nil
	}
	words := m.tok.Words()
	overhead, err := e.CalibrateTurn(cmd.Context(), words.Text[0])
	if errors.Is(err, replay.ErrUncounted) {
		notef(cmd, "threads: the server sends no usage, so what its template adds with a turn is not known and not left room for")
		err = nil
	}
	if err != nil {
		return nil, err
	}
	t := &replay.Threading{Encode: m.tok.Append, Word: words.Text[0], TurnOverhead: overhead,
		Whole: profile.NewKnownPass(m.blockSize, true, profile.WithTails(m.tails.Of)).Touch}
	shares, err := sharesBlocks(part.w)
	switch {
	case err != nil:
		return nil, err
	case shares:
		t.BlockSize = m.blockSize
	default:
		notef(cmd, "threads: no two requests of the workload share a block, so it tells nothing of what turns repeat: every turn that is long enough goes on from the reply before it")
	}
	return t, nil
}

var errShares = errors.New("a block is shared") // ends the reading

// sharesBlocks tells whether any block of a workload stands in two rows. If none
// does, its blocks were made up for want of others: the least that turns of a
// session share is how their prompts begin.
func sharesBlocks(w *trace.Trace) (bool, error) {
	if w.Meta.BlockSize == 0 {
		return false, nil
	}
	rows, err := w.Reader()
	if err != nil {
		return false, err
	}
	var ids trace.Renumber
	shares := false
	err = trace.Each(rows, func(_ int64, r *trace.Request) error {
		for _, id := range r.Blocks {
			known := uint64(ids.Len())
			shares = shares || ids.ID(id) < known
		}
		if shares {
			return errShares
		}
		return nil
	})
	if shares {
		return true, nil
	}
	return false, err
}

// noteThreads says what became of the turns.
func noteThreads(cmd *cobra.Command, t *replay.Threads) {
	if t == nil {
		return
	}
	turns := t.Threaded + t.Apart + t.NoReply + t.NoRoom
	notef(cmd, "threads: %d of %d turns hold the server's own reply, %d of them by their lengths alone; %d do not go on from a reply, %d found none, %d had no room in memory",
		t.Threaded, turns, t.Assumed, t.Apart, t.NoReply, t.NoRoom)
	if t.Joined+t.Recoded+t.Longer+t.LostTokens > 0 {
		notef(cmd, "threads: %d replies of further parents are not in a prompt; %d replies may encode to other tokens than were generated; %d prompts are longer than recorded, by %d tokens; %d tokens that others would share with a reply are lost",
			t.Joined, t.Recoded, t.Longer, t.LongerBy, t.LostTokens)
	}
}
