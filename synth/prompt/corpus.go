package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/trace/sample"
	"reprise/trace/token"
)

const (
	maxCorpus = 256 << 20 // bytes
	maxPiece  = 64        // tokens
)

// A CorpusInfo says what became of a corpus.
type CorpusInfo struct {
	Digest string // SHA-256 of the file as "sha256:" and hex
	Bytes  int64  // of the file
	Kept   int64  // bytes of the pieces that can be used
	Tokens int64  // of these
	Pieces int
}

// ReadCorpus makes a text of a corpus of the user's own, UTF-8 of up to 256 MiB.
// After the words that spell its id, a block is a slice of the corpus from a
// place that the seed selects.
//
//  1. The corpus is cut before every space that a letter follows. A piece is
//     mostly a word with what follows it.
//  2. Each piece is encoded between two words, and at the end of a text. It is
//     kept if the words stay as they are and the tokens between them spell the
//     piece. Left out are pieces of more than 64 tokens, those that end in white
//     space, which some chat templates trim, and those that hold the mark of a
//     special token, which a server may read as one.
//  3. All pieces are encoded in one text, in an order of their own. Since that
//     gives the tokens of the pieces, pieces can stand in any order, and a slice
//     is cut where one ends. If it does not, the tokenizer's rules reach across
//     words, and it is an error.
//
// A slice that would have to end inside a piece ends before it, and words
// without meaning make up the rest: see [Prompter.Filled].
//
// Memory is about four times the size of the corpus. Neither its text nor its
// path is ever in an error.
func ReadCorpus(e *token.Encoding, r io.Reader) (*Text, CorpusInfo, error) {
	text, info, err := readCorpus(r, maxCorpus)
	if err != nil {
		return nil, info, err
	}
	words := e.Words()
	if len(words.Text) < 2 {
		return nil, info, errNoWords
	}
	var b lexiconBuilder
	for i := range words.Text {
		b.addWord(words, i)
	}
	t := &Text{words: uint64(len(words.Text)), corpus: new(corpus)}
	c := pieces{encoding: e, words: words, lex: &b}
	for piece := range cutPieces(text) {
		if c.encode(piece) {
			t.corpus.starts = append(t.corpus.starts, uint32(len(b.ids)-len(words.Text)))
			c.add()
			info.Kept += int64(len(piece))
		}
	}
	t.lex = b.done()
	t.corpus.tokens = len(t.lex.ids) - len(words.Text)
	info.Tokens, info.Pieces = int64(t.corpus.tokens), len(t.corpus.starts)
	if info.Pieces == 0 {
		return nil, info, errors.New("the corpus has no words that the tokenizer encodes separately from their " +
			"neighbours")
	}
	if !t.holds(e) {
		return nil, info, errors.New("this tokenizer cannot split a corpus at its words: use prompts of words " +
			"without meaning")
	}
	return t, info, nil
}

var errNoWords = errors.New("the tokenizer has no single-token words")

// CorpusDigest is the digest that [ReadCorpus] finds, of the whole of r.
func CorpusDigest(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func readCorpus(r io.Reader, most int64) (string, CorpusInfo, error) {
	var text strings.Builder
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(&text, h), io.LimitReader(r, most+1))
	info := CorpusInfo{Bytes: n, Digest: "sha256:" + hex.EncodeToString(h.Sum(nil))}
	switch {
	case err != nil:
		return "", info, err
	case n > most:
		return "", info, fmt.Errorf("the corpus has more than %d bytes: give a part of it", most)
	case !utf8.ValidString(text.String()):
		return "", info, errors.New("the corpus is not UTF-8")
	}
	return text.String(), info, nil
}

// cutPieces yields the pieces of a text: what stands between the spaces that are
// followed by a letter and do not follow white space. What is before the first
// is left out.
func cutPieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := -1
		for at, before := 0, rune(0); at < len(text); {
			r, n := utf8.DecodeRuneInString(text[at:])
			if r == ' ' && !unicode.IsSpace(before) {
				if next, _ := utf8.DecodeRuneInString(text[at+1:]); unicode.IsLetter(next) {
					if from >= 0 && !yield(text[from:at]) {
						return
					}
					from = at
				}
			}
			before = r
			at += n
		}
		if from >= 0 {
			yield(text[from:])
		}
	}
}

// special are the beginnings and ends of the marks that chat models are trained
// with. A server may read one in a prompt as its one token.
var special = []string{"<|", "|>", "<｜", "｜>", "<s>", "</s>", "[INST]", "[/INST]", "<bos>", "<eos>", "<pad>",
	"_of_turn>", "<unk>", "<mask>"}

// Pieces encodes the pieces of a corpus one by one.
type pieces struct {
	encoding *token.Encoding
	words    *token.Words
	lex      *lexiconBuilder

	ids   []uint32
	alone []uint32
	texts []string
	buf   []byte
}

// encode finds the tokens of a piece and reports whether it can be used.
func (c *pieces) encode(piece string) bool {
	last, _ := utf8.DecodeLastRuneInString(piece)
	if unicode.IsSpace(last) || len(piece) > 16*maxPiece ||
		slices.ContainsFunc(special, func(s string) bool { return strings.Contains(piece, s) }) {
		return false
	}
	w := c.words
	c.buf = append(append(append(append(c.buf[:0], w.Text[0]...), piece...), ' '), w.Text[1]...)
	between := string(c.buf)
	c.ids = c.encoding.Append(c.ids[:0], between)
	n := len(c.ids)
	if n < 3 || n > maxPiece+2 || c.ids[0] != w.Bare[0] || c.ids[n-1] != w.Spaced[1] || !c.spell(piece) {
		return false
	}
	c.alone = c.encoding.Append(c.alone[:0], between[:len(between)-1-len(w.Text[1])])
	return slices.Equal(c.alone, c.ids[:n-1])
}

// spell finds the texts of the tokens between the two words and reports whether
// they make up the piece: a tokenizer that normalises may spell otherwise.
func (c *pieces) spell(piece string) bool {
	c.texts = c.texts[:0]
	first := c.words.Text[0]
	for _, id := range c.ids[1 : len(c.ids)-1] {
		// Decoded after a word, since some put a space before the first token and
		// take it off again.
		text, err := c.encoding.AppendText(c.buf[:0], []uint32{c.ids[0], id})
		if err != nil || len(text) <= len(first) || !strings.HasPrefix(piece, string(text[len(first):])) {
			return false
		}
		n := len(text) - len(first)
		c.texts, piece = append(c.texts, piece[:n]), piece[n:]
		c.buf = text
	}
	return piece == ""
}

// add puts the tokens of the last piece into the lexicon.
func (c *pieces) add() {
	for i, text := range c.texts {
		c.lex.add(text, c.ids[1+i])
	}
}

// A corpus is the tokens of pieces that can stand in any order, the last of them
// followed by the first. They are the entries of the lexicon after the words.
type corpus struct {
	tokens int
	starts []uint32 // of the pieces, rising, in tokens
}

// open selects the slice of a segment: where it starts, and how far it goes until
// a piece would have to be cut.
func (c *corpus) open(s *segment) {
	piece, _ := bits.Mul64(sample.Mix64(s.state), uint64(len(c.starts)))
	s.corpusAt, s.corpusFrom = int(c.starts[piece]), s.from+headTokens
	length := max(s.end-s.corpusFrom, 0)
	end := (s.corpusAt + length) % c.tokens
	over := 0
	if i, exact := slices.BinarySearch(c.starts, uint32(end)); !exact {
		over = end - int(c.starts[i-1])
	}
	s.corpusEnd = s.end - min(over, length)
}

// draw gives tokens of the slice, and words after its end.
func (c *corpus) draw(s *segment, dst []uint32, words uint64) {
	n := min(len(dst), max(s.corpusEnd-s.pos, 0))
	at := (s.corpusAt + s.pos - s.corpusFrom) % c.tokens
	for i := range dst[:n] {
		dst[i] = uint32(words) + uint32(at)
		if at++; at == c.tokens {
			at = 0
		}
	}
	if n < len(dst) {
		rest := *s
		rest.pos += n
		drawEvenly(&rest, dst[n:], words)
	}
}

// holds encodes all pieces in one text, in an order of their own, and reports
// whether that gives their tokens.
func (t *Text) holds(e *token.Encoding) bool {
	c := t.corpus
	order := sample.NewPermutation(0, uint64(len(c.starts)))
	var text strings.Builder
	text.WriteString(t.lex.entry(0)[1:])
	want := append(make([]uint32, 0, c.tokens+1), t.lex.bare[0])
	for i := range c.starts {
		p := order.At(uint64(i))
		from, to := int(c.starts[p]), c.tokens
		if p+1 < uint64(len(c.starts)) {
			to = int(c.starts[p+1])
		}
		from, to = from+int(t.words), to+int(t.words)
		text.WriteString(t.lex.text[t.lex.ends[from]:t.lex.ends[to]])
		want = append(want, t.lex.ids[from:to]...)
	}
	return slices.Equal(e.Append(nil, text.String()), want)
}
