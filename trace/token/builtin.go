package token

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"

	"reprise/trace/objectstore"
)

// builtin are tiktoken's encodings.
var builtin = []struct {
	name string
	open func() (*Encoding, error)
}{
	{"cl100k_base", embedded("cl100k_base", splitCL100K)},
	{"o200k_base", embedded("o200k_base", splitO200K)},
	{"p50k_base", embedded("p50k_base", splitGPT2, 50256)},
	{"r50k_base", embedded("r50k_base", splitGPT2)},
}

// embedded opens an encoding once, from a vocabulary that package tiktoken-go-loader embeds. That package's own reader
// is not used: it returns a map, which takes five times the time and twice the memory of [vocab].
func embedded(name string, split splitter, special ...uint32) func() (*Encoding, error) {
	return sync.OnceValues(func() (*Encoding, error) {
		file := name + ".tiktoken"
		data, err := assets.Assets.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("open tokenizer %s: %w", name, err)
		}
		v, err := parseVocab(data, special...)
		if err != nil {
			return nil, fmt.Errorf("open tokenizer %s: embedded file %s: %w", name, file, err)
		}
		e := newEncoding(name, v, split)
		e.words = sync.OnceValue(func() *Words { return findWords(e, nil) })
		return e, nil
	})
}

// Names lists the encodings that [Open] knows.
func Names() []string {
	names := make([]string, len(builtin))
	for i, e := range builtin {
		names[i] = e.name
	}
	return names
}

// Open gives an encoding by its name. The first call reads the embedded vocabulary, in tens of milliseconds; later
// calls return the same Encoding. The error for an unknown name lists the known ones.
func Open(name string) (*Encoding, error) {
	for _, e := range builtin {
		if e.name == name {
			return e.open()
		}
	}
	return nil, fmt.Errorf("unknown tokenizer %q: want one of %s", name, strings.Join(Names(), ", "))
}

// OpenAny gives an encoding by its name, as [Open] does, or reads a tokenizer.json, the file of Hugging Face's
// tokenizers library that comes with most open models, by its path or that of its directory. It reads the file anew at
// each call, which takes from a tenth of a second (32,000 tokens) to somewhat over one (262,144).
//
// For a tokenizer.json, Append gives the ids that the library gives without special tokens (add_special_tokens=False,
// encode_special_tokens=True). What the post-processor puts around a text is left out, such as a mark for its
// beginning; truncation and padding are left out too; and the spelling of a special token is plain text. Added tokens
// that are not special are found in the text before anything else, as in the library.
//
// Two families are supported, which most open models belong to:
//
//   - Byte-level BPE (GPT-2, Llama 3 and 4, Qwen 2 to 3, DeepSeek V3 and R1, GPT-OSS, Mistral's Tekken, StarCoder): the
//     pre-tokenizers Split, Digits and ByteLevel, and the normalizer NFC. The split patterns of these models have splitters
//     written for them. Any other is matched by a regular expression engine, some ten times slower, in a time that depends on
//     the pattern. It ignores case by lower-casing, so that a long s is not an s. A pattern that the engine might
//     understand otherwise than the library is refused.
//   - BPE in the manner of SentencePiece (Llama 2, Mistral, Gemma), where a space is "▁" and a character that is not in
//     the vocabulary becomes its bytes: the normalizers Prepend and Replace of spaces, or the pre-tokenizer Metaspace.
//     A "▁" in the text is a space when it comes back. Where the file puts a space before a text, it does so for each text that
//     is encoded, and thus for each piece of a [Template].
//
// The ids are those of tokenizers 0.23, except for characters newer than the tables of Go's package unicode.
//
// Anything else that would change the encoding is an error that names it, as are other models (Unigram, WordPiece,
// WordLevel). Errors name the file and the path in the JSON. The name that a trace records for a tokenizer.json does
// not say where the file is; the error for such a name asks for the path.
func OpenAny(nameOrPath string) (*Encoding, error) {
	for _, name := range Names() {
		if name == nameOrPath {
			return Open(name)
		}
	}
	info, err := objectstore.Stat(nameOrPath)
	if err == nil && info.IsDir() {
		return openFile(objectstore.Join(nameOrPath, fileName))
	}
	if err == nil {
		return openFile(nameOrPath)
	}
	if digest, ok := strings.CutPrefix(nameOrPath, fileName+":"); ok {
		return nil, fmt.Errorf("tokenizer %.40q is a %s whose SHA-256 begins with the digits behind the colon "+
			"(%.16q): want its path",
			nameOrPath, fileName, digest)
	}
	if filepath.IsAbs(nameOrPath) || strings.HasPrefix(nameOrPath, ".") || filepath.Ext(nameOrPath) == ".json" {
		return nil, fmt.Errorf("tokenizer: there is no file or folder %s", nameOrPath)
	}
	return nil, fmt.Errorf("unknown tokenizer %q: want one of %s, or the path of a %s or of the folder with it",
		nameOrPath, strings.Join(Names(), ", "), fileName)
}

// parseVocab reads a tiktoken file: on each line a token in base64, a space and its id, which counts from 0 and leaves
// out the ids of special tokens. An error names the line. Every single byte must be a token, or some text could not be
// encoded.
func parseVocab(data []byte, special ...uint32) (*vocab, error) {
	lines := bytes.Count(data, []byte{'\n'}) + 1
	if lines > maxTokens {
		return nil, fmt.Errorf("%d lines are more than the %d tokens a vocabulary may have", lines, maxTokens)
	}
	text := make([]byte, 0, len(data)/2)
	off := make([]uint32, 1, lines+1)
	for n := 1; len(data) > 0; n++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		for slices.Contains(special, uint32(len(off)-1)) {
			off = append(off, uint32(len(text)))
		}
		code, id, ok := bytes.Cut(line, []byte{' '})
		if i, err := strconv.Atoi(string(id)); !ok || err != nil || i != len(off)-1 {
			return nil, fmt.Errorf("line %d: want a token in base64, a space and the id %d", n, len(off)-1)
		}
		before := len(text)
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, code); err != nil || len(text) == before {
			return nil, fmt.Errorf("line %d: the token is empty or not base64", n)
		}
		off = append(off, uint32(len(text)))
	}
	v := newVocab(string(text), slices.Clip(off))
	v.clear()
	line := 0
	for id := range uint32(v.len()) {
		t := v.token(id)
		if t == "" {
			continue // a special token
		}
		line++
		if !v.insert(t, id) {
			return nil, fmt.Errorf("line %d: the token was on an earlier line", line)
		}
		v.longest = max(v.longest, len(t))
		switch len(t) {
		case 1:
			v.single[t[0]] = id
		case 2:
			v.double[uint(t[0])<<8|uint(t[1])] = id
		}
	}
	if b := slices.Index(v.single[:], none); b >= 0 {
		return nil, fmt.Errorf("no token stands for the byte 0x%02x alone", b)
	}
	return v, nil
}
