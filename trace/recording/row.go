package recording

import (
	"encoding/binary"
	"encoding/hex"

	"reprise/trace"
	"reprise/trace/block"
)

// A Row is one request of a capture. Of its Request, ArrivalNS is Unix
// time; Session and User are nil; Blocks and OutputBlocks have two words for each block,
// see [Words]; Model, Adapter, Class and Replica are keyed ids, as [ID] writes them,
// unless the capture keeps names of models.
type Row struct {
	trace.Row `parquet:"-" json:"-"`

	Request trace.Request `parquet:"request"`

	Links
	UserID string `parquet:"user_id,optional,dict"` // keyed

	// TextTokens are the input tokens that the tokenizer counted, and UsageTokens those
	// that the server counted, where the other is known too.
	TextTokens  *int32 `parquet:"text_tokens,optional"`
	UsageTokens *int32 `parquet:"usage_tokens,optional"`

	Template string `parquet:"template,optional,dict"` // that the chat was rendered with
	// why the text of the prompt is not its length: marker, empty, short, mapped
	InputGap  string `parquet:"input_gap,optional,dict"`
	OutputGap string `parquet:"output_gap,optional,dict"` // the same of the reply
	Tokenised bool   `parquet:"tokenised"`                // a length or blocks of the row are the tokenizer's
	Refused   bool   `parquet:"refused"`                  // the chat template refuses the chat
	Partly    bool   `parquet:"partly"`                   // some messages are redacted, and the server does not count
	NoOutput  bool   `parquet:"no_output"`                // the length of the reply is not known
}

// Links say which requests belong together. All are keyed, and empty where there is none.
type Links struct {
	SessionID string `parquet:"session_id,optional,dict"` // a [Reader] gives rows without one that of their chain

	// ResponseID is the id of the answer, and PreviousID of the answer that the request goes
	// on from, of the Responses API alone.
	ResponseID string `parquet:"response_id,optional"`
	PreviousID string `parquet:"previous_id,optional"`
}

// Words appends block ids to dst, two words each, the high one first.
func Words(dst []uint64, ids []block.ID) []uint64 {
	for _, id := range ids {
		dst = append(dst, binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
	}
	return dst
}

// Blocks appends to dst the block ids that [Words] wrote.
func Blocks(dst []block.ID, words []uint64) []block.ID {
	for ; len(words) >= 2; words = words[2:] {
		var id block.ID
		binary.BigEndian.PutUint64(id[:8], words[0])
		binary.BigEndian.PutUint64(id[8:], words[1])
		dst = append(dst, id)
	}
	return dst
}

// ID writes a keyed id of 128 bits as 32 digits.
func ID(id block.ID) string { return hex.EncodeToString(id[:]) }
