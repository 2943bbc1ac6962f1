// Package token turns text into token ids and back, offline. It also renders chats with the chat templates of models.
//
// An importer gives it the text of a source log. It is the first step, and the only one that sees the text:
//
// 1. A [Template] renders a chat as its model's server would, into pieces: special tokens and the text between them.
// The
//
//	   families of most open models are built in; any other template is read from its file, in Jinja.
//	2. A splitter, written by hand for each encoding, cuts the text into pieces: words, numbers, punctuation, white space.
//	3. A piece that is in the vocabulary is one token. Any other is built up from its bytes by merging, at each step, the
//	   neighbouring pair whose union has the lowest id, or comes first in a list of merges (byte-pair encoding).
//	4. Recent pieces that needed merging are remembered, so that ordinary text costs little more than the splitting.
//
// For the way back, [Words] is the part of a vocabulary from which prompts can be written that always encode to exactly
// the tokens they were written from.
//
// [Open] gives the encodings of OpenAI's tiktoken (github.com/openai/tiktoken): the same vocabulary files, embedded in
// the binary, and the same split patterns. [OpenAny] also reads the tokenizer.json of an open model, as Hugging Face's
// tokenizers library (github.com/huggingface/tokenizers) does. Each is an [Encoding].
//
// Other implementations of the patterns run a backtracking regular expression over the text and merge in quadratic
// time. This one is some thirty times faster on prose, does not allocate once it is warm, and takes O(n log n) on a
// text without a single boundary.
//
// # Files
//
//   - builtin.go: the tokenizers by name (cl100k_base, o200k_base and the others of tiktoken), embedded vocabularies,
//     Open and OpenAny
//   - encoding.go: Encoding: text to ids and back, with added tokens, the space before a text and normalisation
//   - document.go: the fields of a tokenizer.json: vocabulary, merges, added tokens; its bounds and JSON errors
//   - build.go: an encoding made of a tokenizer.json: byte alphabets, byte fallback, table of merges
//   - plan.go: which normalizers, pre-tokenizers, decoders and post-processors of a tokenizer.json are supported, and
//     the errors for the others
//   - pattern.go: the split patterns of a tokenizer.json: the known ones, and the regular expressions that are refused
//   - split.go: splitters written by hand: cl100k, o200k, Qwen, GPT-2, Tekken, DeepSeek; where SentencePiece text can
//     be cut
//   - class.go: character classes for the splitters: letters, numbers, white space
//   - nfc.go: Unicode normal form C
//   - vocab.go: the vocabulary and the list of merges as hash tables
//   - merge.go: byte-pair merging of a piece, and the cache of recent pieces
//   - added.go: added and special tokens found in a text
//   - words.go: words that encode to one token each and always re-encode to themselves, for synthetic prompts
//   - renderer.go: the renderer of chats: messages, replies, tool calls and tools as every built-in template uses them;
//     its memory between chats; whether the tokenizer has the template's special tokens, which shows that
//     it is the model's
//   - piece.go: the pieces of a rendered chat, special tokens and text, and their tokens; the ids that stand for
//     special tokens which a vocabulary lacks
//   - template.go: the names of the built-in templates, auto by model name, and the templates none and chatml
//   - templatefile.go: a template in Jinja from a file, tokenizer_config.json or directory: its variables, limits and
//     strftime_now; chats that it refuses; contents that spell a special token
//   - qwen.go: the templates qwen2.5 and qwen3
//   - llama.go: the templates llama2, llama3, llama3.1 and llama3.2
//   - mistral.go: the templates mistral-v1 and mistral-v3
//   - gemmaphi.go: the templates gemma and phi3
//   - deepseek.go: the template deepseek-v3
//   - harmony.go: the template gpt-oss, with tools as TypeScript
//
// Exported names may change in any release.
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
