package token

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	fileName = "tokenizer.json"
	maxFile  = 256 << 20 // Gemma 3 has 33 MB
)

// OpenFile reads a tokenizer.json, the file of Hugging Face's tokenizers library that comes with most open models. It reads
// the file anew at each call, which takes from a tenth of a second (32,000 tokens) to somewhat over one (262,144).
//
// Append then gives the ids that the library gives without special tokens (add_special_tokens=False,
// encode_special_tokens=True): what the post-processor puts around a text is left out, such as a mark for its beginning; so
// are truncation and padding; and the spelling of a special token is plain text. Added tokens that are not special are found
// in the text before all else, as there.
//
// Two families are read, which most open models belong to:
//
//   - Byte-level BPE (GPT-2, Llama 3 and 4, Qwen 2 to 3, DeepSeek V3 and R1, GPT-OSS, Mistral's Tekken, StarCoder): the
//     pre-tokenizers Split, Digits and ByteLevel, and the normalizer NFC. The split patterns of the models named are taken by
//     splitters written for them; any other by a regular expression engine, some ten times slower, and in a time that is
//     up to the pattern. It ignores case as lower-casing does, so that a long s is not an s. A pattern that it might
//     understand otherwise than the library is refused.
//   - BPE in the manner of SentencePiece (Llama 2, Mistral, Gemma), where a space is "▁" and a character that is not in
//     the vocabulary becomes its bytes: the normalizers Prepend and Replace of spaces, or the pre-tokenizer Metaspace.
//     A "▁" in the text is a space when it comes back. Where the file puts a space before a text, it does so for each that is
//     encoded, and thus for each piece of a [Template].
//
// The ids are those of tokenizers 0.23, but for characters newer than the tables of Go's package unicode.
//
// Anything else that would change the encoding is an error that names it, as are other models (Unigram, WordPiece,
// WordLevel). Errors name the file and the path in the JSON.
func OpenFile(path string) (*Encoding, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("larger than 256 MiB")
	}
	var e *Encoding
	if err == nil {
		e, err = parseFile(data)
	}
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: %w", path, err)
	}
	return e, nil
}

// parseFile makes an encoding of the text of a tokenizer.json.
func parseFile(data []byte) (*Encoding, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	p, err := doc.plan()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return doc.encoding(fileName+":"+hex.EncodeToString(sum[:8]), p)
}
