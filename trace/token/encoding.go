package token

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// An Encoding is one of tiktoken's encodings. It is immutable and safe for concurrent use.
type Encoding struct {
	name   string
	split  splitter
	class  *classTable
	vocab  *vocab
	states sync.Pool // of *state
	words  func() *Words
}

// encodings are those that are reproduced exactly. The older r50k_base and p50k_base have a split pattern of their own, and
// are left out.
var encodings = []struct {
	name string
	open func() (*Encoding, error)
}{
	{"cl100k_base", sync.OnceValues(func() (*Encoding, error) { return load("cl100k_base", splitCL100K) })},
	{"o200k_base", sync.OnceValues(func() (*Encoding, error) { return load("o200k_base", splitO200K) })},
}

// Names lists the encodings that [Open] knows.
func Names() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = e.name
	}
	return names
}

// Open gives an encoding by its name. The first call reads the embedded vocabulary, in tens of milliseconds; later calls
// return the same Encoding. The error for an unknown name lists the known ones.
func Open(name string) (*Encoding, error) {
	for _, e := range encodings {
		if e.name == name {
			return e.open()
		}
	}
	return nil, fmt.Errorf("unknown tokenizer %q: want one of %s", name, strings.Join(Names(), ", "))
}

// load reads a vocabulary from the files that package tiktoken-go-loader embeds. Its own reader is passed over: it returns a
// map, which costs five times the time and twice the memory of [vocab].
func load(name string, split splitter) (*Encoding, error) {
	file := name + ".tiktoken"
	data, err := assets.Assets.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: %w", name, err)
	}
	v, err := parseVocab(data)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: embedded file %s: %w", name, file, err)
	}
	e := &Encoding{name: name, split: split, class: classes(), vocab: v}
	e.states.New = func() any { return new(state) }
	e.words = sync.OnceValue(func() *Words { return newWords(v) })
	return e, nil
}

// Name implements [Tokenizer].
func (e *Encoding) Name() string { return e.name }

// Append implements [Tokenizer]. Each byte that is not part of valid UTF-8 counts as one U+FFFD, as in a range over the
// string; such text is copied first. Nothing else allocates but dst, once the encoder is warm, unless a piece without any
// boundary is longer than some 50,000 bytes; one of 2 GiB is more than it can take.
func (e *Encoding) Append(dst []uint32, text string) []uint32 {
	if !utf8.ValidString(text) {
		text = valid(text)
	}
	st := e.states.Get().(*state)
	for i := 0; i < len(text); {
		end := e.split(e.class, text, i)
		dst = st.append(dst, e.vocab, text[i:end])
		i = end
	}
	e.states.Put(st)
	return dst
}

// valid replaces each invalid byte by U+FFFD. strings.ToValidUTF8 would replace a run of them by one.
func valid(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2*utf8.UTFMax)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// AppendText implements [Tokenizer]. The ids of special tokens are unknown, as Append never gives them. The error names the
// position of the unknown id.
func (e *Encoding) AppendText(dst []byte, ids []uint32) ([]byte, error) {
	before := len(dst)
	for i, id := range ids {
		if int64(id) >= int64(e.vocab.len()) {
			return dst[:before], fmt.Errorf("token %d of %d is not in the vocabulary of %s", i+1, len(ids), e.name)
		}
		dst = append(dst, e.vocab.token(id)...)
	}
	return dst, nil
}

// Words gives the round-trip-stable vocabulary, built at the first call and shared by all: it must not be changed.
func (e *Encoding) Words() *Words { return e.words() }
