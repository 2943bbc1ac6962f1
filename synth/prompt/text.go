package prompt

import (
	"math/bits"
	"strings"

	"reprise/trace/sample"
	"reprise/trace/token"
)

// A Text is what prompts are written in. There are three kinds: words without
// meaning, which every [Prompter] uses unless told otherwise; [English]; and a
// corpus of the user's own, [ReadCorpus].
//
// Whatever the kind, a prompt is a list of segments, each a block or the part
// of one after a shared tail. The first three tokens of a segment are words
// that spell an id, and its other tokens come from the body of the kind, which
// sees to it that a cut at the end of a segment is a cut between tokens.
type Text struct {
	lex     lexicon
	words   uint64   // how many entries, the first ones, are the words that spell ids
	english *english // nil unless of that kind
	corpus  *corpus  // nil unless of that kind
}

// open begins the body of the segment from s.pos to s.end.
func (t *Text) open(s *segment) {
	if t.corpus != nil {
		t.corpus.open(s)
	}
}

// draw gives the entries at the next len(dst) positions of the segment, after
// its head, and does not move it. It is no interface of the kinds, since what
// goes through one no longer stays on the stack.
func (t *Text) draw(s *segment, dst []uint32) {
	switch {
	case t.english != nil:
		t.english.draw(s, dst)
	case t.corpus != nil:
		t.corpus.draw(s, dst, t.words)
	default:
		drawEvenly(s, dst, t.words)
	}
}

// A lexicon holds the tokens that a text is made of, spaces included.
type lexicon struct {
	text string
	ends []uint32 // entry i is text[ends[i]:ends[i+1]]
	ids  []uint32
	bare []uint32 // ids of the words without their space, for the first of a prompt
}

func (l *lexicon) entry(i uint32) string { return l.text[l.ends[i]:l.ends[i+1]] }

// A lexiconBuilder grows a lexicon entry by entry.
type lexiconBuilder struct {
	lexicon
	buf strings.Builder
}

func (b *lexiconBuilder) add(text string, id uint32) {
	if len(b.ends) == 0 {
		b.ends = append(b.ends, 0)
	}
	b.buf.WriteString(text)
	b.ends = append(b.ends, uint32(b.buf.Len()))
	b.ids = append(b.ids, id)
}

// addWord adds word i of a vocabulary after a space.
func (b *lexiconBuilder) addWord(w *token.Words, i int) {
	b.add(" "+w.Text[i], w.Spaced[i])
	b.bare = append(b.bare, w.Bare[i])
}

func (b *lexiconBuilder) done() lexicon {
	b.text = b.buf.String()
	return b.lexicon
}

// stableText is the text of words without meaning, each as likely as any other.
func stableText(w *token.Words) *Text {
	var b lexiconBuilder
	for i := range w.Text {
		b.addWord(w, i)
	}
	return &Text{lex: b.done(), words: uint64(len(w.Text))}
}

// drawEvenly draws from the first entries of a lexicon, so many of them. It
// takes the high half of a product (Lemire, "Fast random integer generation in
// an interval", 2019), whose bias of V in 2^64 is nothing here.
func drawEvenly(s *segment, dst []uint32, words uint64) {
	counter := s.state + uint64(s.pos)*sample.Golden
	for i := range dst {
		counter += sample.Golden
		hi, _ := bits.Mul64(sample.Mix64(counter), words)
		dst[i] = uint32(hi)
	}
}

// A segment is a block, or the part of one that has an owner of its own: a
// shared tail, or what follows it. Positions count from the start of the block.
type segment struct {
	state  uint64             // of the block that owns it, or of a row without blocks
	head   [headTokens]uint32 // spells the id
	headed bool               // whether there is a head
	from   int                // where the owner's tokens begin, with the head
	pos    int                // of the next token
	end    int

	corpusAt, corpusFrom, corpusEnd int // in a corpus: its token at position corpusFrom, and where words take over
}

// headTokens is how many tokens of a block spell its id. Two would tell apart
// 53 million blocks, too few for a day of a large service.
const headTokens = 3

// filled is how many tokens of a segment are words in place of a corpus.
func (s *segment) filled() int {
	if s.corpusFrom == 0 {
		return 0
	}
	return s.end - s.corpusEnd
}
