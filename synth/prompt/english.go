package prompt

import (
	_ "embed"
	"errors"
	"slices"
	"strings"

	"reprise/trace/sample"
	"reprise/trace/token"
)

// englishList is a list of common English words, the most frequent first, in
// about that order. It is part of what a seed means: a change of it changes
// every prompt.
//
//go:embed words.txt
var englishList string

// leastEnglish is how many words of the list a tokenizer must have. With fewer,
// three of them could not tell a million blocks apart.
const leastEnglish = 100

// English makes a text of common English words for a tokenizer. It reads like
// English from afar, as much as words that are drawn one by one can: a few words
// make up most of it (their frequency falls as 1/rank: G. K. Zipf, 1935), and
// they form sentences with capitals, commas and full stops.
//
// Every word is one token, after a space as well as without: those of a list
// that comes with the program that are among [token.Words], some 2,300 under
// cl100k_base and o200k_base. A capital stands only where the word is one token
// with it, and marks are used only if no tokenizer's rule reaches across them:
// all words are tried with all marks.
//
// A tokenizer with fewer than a hundred words of the list is an error.
func English(e *token.Encoding) (*Text, error) {
	common := Common(e.Words())
	if len(common.Text) < leastEnglish {
		return nil, errors.New("the tokenizer has too few single-token English words: use prompts of words " +
			"without meaning")
	}
	var b lexiconBuilder
	t := newEnglish(&b, common)
	t.addMarks(e, &b, common.Text)
	return &Text{lex: b.done(), words: uint64(len(common.Text)), english: t}, nil
}

// PlainEnglish is English of these words alone, the most frequent first, without capitals and marks.
func PlainEnglish(words *token.Words) *Text {
	var b lexiconBuilder
	t := newEnglish(&b, words)
	return &Text{lex: b.done(), words: uint64(len(words.Text)), english: t}
}

// Common are those of words that are common English, the most frequent first.
func Common(words *token.Words) *token.Words {
	number := make(map[string]int, len(words.Text))
	for i, w := range words.Text {
		number[w] = i
	}
	var common []int
	for w := range strings.FieldsSeq(englishList) {
		if i, ok := number[w]; ok {
			common = append(common, i)
		}
	}
	return words.Only(common)
}

// An english draws words by their rank, and the marks between them.
type english struct {
	slots    []uint16 // which word a draw of slotBits bits gives
	capitals []uint32 // by word: its entry with a capital, or without if there is none
	marks    bool     // whether there are any
	comma    uint32   // entry
	stop     uint32   // entry
}

// newEnglish adds words, which have no capitals yet.
func newEnglish(b *lexiconBuilder, words *token.Words) *english {
	t := &english{slots: zipf(len(words.Text)), capitals: make([]uint32, len(words.Text))}
	for i := range words.Text {
		b.addWord(words, i)
		t.capitals[i] = uint32(i)
	}
	return t
}

// addMarks adds the capitals and the marks that are stable.
func (t *english) addMarks(e *token.Encoding, b *lexiconBuilder, words []string) {
	single := func(text string) (uint32, bool) {
		ids := e.Append(nil, words[0]+text)
		return ids[len(ids)-1], len(ids) == 2
	}
	comma, ok := single(",")
	stop, ok2 := single(".")
	if !ok || !ok2 {
		return
	}
	// Every word is tried before and after both marks, all in one text, and the marks at
	// its end.
	var text strings.Builder
	var want []uint32
	for i, w := range words {
		text.WriteString(" " + w + ", " + w + ".")
		want = append(want, b.ids[i], comma, b.ids[i], stop)
	}
	want[0] = b.bare[0]
	tried := text.String()[1:]
	if !slices.Equal(e.Append(nil, tried), want) ||
		!slices.Equal(e.Append(nil, tried[:len(tried)-1]+","), append(want[:len(want)-1], comma)) {
		return
	}
	for i, w := range words {
		capital := " " + strings.ToUpper(w[:1]) + w[1:]
		id, ok := single(capital)
		if !ok {
			continue
		}
		// The capital is tried before and after words and marks.
		word := b.buf.String()[b.ends[0]:b.ends[1]]
		got := e.Append(nil, word[1:]+"."+capital+word+capital+","+capital+"."+capital)
		if slices.Equal(got, []uint32{b.bare[0], stop, id, b.ids[0], id, comma, id, stop, id}) {
			t.capitals[i] = uint32(len(b.ids))
			b.add(capital, id)
		}
	}
	t.marks, t.comma, t.stop = true, uint32(len(b.ids)), uint32(len(b.ids))+1
	b.add(",", comma)
	b.add(".", stop)
}

// slotBits is how finely the frequencies of words are distinguished: the rarest of
// 3,600 words, the whole list, is still drawn twice in 65,536.
const slotBits = 16

// zipf shares 2^slotBits slots out among n words, the one of rank i getting a
// share of about 1/(i+2) (Mandelbrot's form of the law). All of it is integer
// arithmetic, so that every machine has the same table.
func zipf(n int) []uint16 {
	weight := func(i int) uint64 { return 1 << 32 / uint64(i+2) }
	var total, sum uint64
	for i := range n {
		total += weight(i)
	}
	slots := make([]uint16, 0, 1<<slotBits)
	for i := range n {
		sum += weight(i)
		for uint64(len(slots))*total < sum<<slotBits {
			slots = append(slots, uint16(i))
		}
	}
	return slots
}

// draw gives a word or a mark as the number at its position and the two before
// it say, so that it can begin anywhere. The top bits choose the word, low ones
// the mark. A mark stands where the numbers want one, unless they wanted one just
// before; a capital after a full stop.
func (t *english) draw(s *segment, dst []uint32) {
	first := s.from + headTokens
	at := func(pos int) uint64 {
		if pos < first {
			return noMark
		}
		return sample.Mix64(s.state + uint64(pos+1)*sample.Golden)
	}
	before, last := at(s.pos-2), at(s.pos-1)
	counter := s.state + uint64(s.pos)*sample.Golden
	for i := range dst {
		counter += sample.Golden
		x := sample.Mix64(counter)
		word := t.slots[x>>(64-slotBits)]
		switch {
		case !t.marks:
			dst[i] = uint32(word)
		case x&markMask == 0 && last&markMask != 0:
			dst[i] = t.comma
			if x&isStop != 0 {
				dst[i] = t.stop
			}
		case last&(markMask|isStop) == isStop && before&markMask != 0:
			dst[i] = t.capitals[word]
		default:
			dst[i] = uint32(word)
		}
		before, last = last, x
	}
}

// One number in eight wants a mark, half of them a full stop.
const (
	markMask = 7
	isStop   = 8
	noMark   = markMask
)
