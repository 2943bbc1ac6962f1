// Package token turns text into token ids and back, offline.
//
// It is the first step of an importer with the text of a source log, and the only one that sees the text:
//
//  1. A [Template] renders a chat as its model's server would, into pieces: special tokens and the text between them. The
//     families of most open models are built in; any other template is read from its file, in Jinja.
//  2. A splitter, written by hand for each encoding, cuts the text into pieces: words, numbers, punctuation, white space.
//  3. A piece that is in the vocabulary is one token. Any other is built up from its bytes by merging, at each step, the
//     neighbouring pair whose union has the lowest id, or comes first in a list of merges (byte-pair encoding).
//  4. Recent pieces that needed merging are remembered, so that ordinary text costs little more than the splitting.
//
// For the way back, [Words] is the part of a vocabulary from which prompts can be written that always encode to exactly the
// tokens they were written from.
//
// [Open] gives the encodings of OpenAI's tiktoken (github.com/openai/tiktoken): the same vocabulary files, embedded in the
// binary, and the same split patterns. [OpenAny] also reads the tokenizer.json of an open model, as Hugging
// Face's tokenizers library (github.com/huggingface/tokenizers) does. All are of the type [Encoding].
//
// Other implementations of the patterns run a backtracking regular expression over the text and merge in quadratic time; this
// one is some thirty times faster on prose, does not allocate once it is warm, and takes O(n log n) on a text without a
// single boundary.
package token

// A Tokenizer turns text into token ids and back. Implementations are safe for concurrent use.
type Tokenizer interface {
	// Name is the name that trace metadata records, such as "o200k_base".
	Name() string

	// Append appends the ids of text to dst. The spelling of a special token, such as "<|endoftext|>", is plain text.
	Append(dst []uint32, text string) []uint32

	// AppendText appends the bytes that ids stand for to dst. They need not be valid UTF-8, since a character may be
	// spread over several tokens. An id that the vocabulary lacks is an error, and then dst is returned as it was.
	AppendText(dst []byte, ids []uint32) ([]byte, error)
}
