package trace

import (
	"slices"

	"reprise/trace/ending"
)

// A Request says when a request arrived and how large it was, never what it
// said. It is one row of schema trace/2: a trace's row number is the request's
// id, and rows are sorted by arrival. Missing is null: optional columns are
// pointers or nil slices, never 0.
//
// Block ids are most of a file and are compressed at the fastest level of zstd,
// as the writer says. A tag zstd asks for its usual level, for numbers that look
// random: the fastest hardly makes those smaller.
type Request struct {
	ArrivalNS int64  `parquet:"arrival_ns,delta,zstd"` // nanoseconds since the begin of the trace, see [Meta]
	Session   *int64 `parquet:"session,optional"`      // dense from 0, in order of appearance
	// from 0 within the thread, or the session where threads are not told
	Turn     *int32  `parquet:"turn,optional"`
	Parents  []int64 `parquet:"parents,list"`           // rows that must be done before this one may be sent
	ThinkNS  *int64  `parquet:"think_ns,optional,zstd"` // from the last parent's completion: human time
	ToolNS   *int64  `parquet:"tool_ns,optional,zstd"`  // from the last parent's completion: tool time
	User     *int64  `parquet:"user,optional"`          // pseudonymous end user or tenant, dense
	Model    string  `parquet:"model,optional,dict"`    // relabelled unless kept on request
	Adapter  string  `parquet:"adapter,optional,dict"`  // LoRA or the like, relabelled
	Kind     string  `parquet:"kind,optional,dict"`     // chat, completion, embedding
	Class    *string `parquet:"class,optional,dict"`    // priority or SLO class, relabelled
	Replica  *string `parquet:"replica,optional,dict"`  // which server answered, relabelled
	Category string  `parquet:"category,optional,dict"`

	InputTokens     int32  `parquet:"input_tokens,zstd"`
	OutputTokens    *int32 `parquet:"output_tokens,optional,zstd"` // nil where the source does not tell
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional,zstd"`
	CachedTokens    *int32 `parquet:"cached_tokens,optional,zstd"`
	ImageTokens     *int32 `parquet:"image_tokens,optional"`
	Images          *int32 `parquet:"images,optional"`

	MaxTokens   *int32   `parquet:"max_tokens,optional,zstd"`
	Temperature *float32 `parquet:"temperature,optional"`
	Stream      *bool    `parquet:"stream,optional"`

	// Blocks are the chained prefix-block ids of the input, dense over the
	// trace and unique to their cache domain (model, adapter, salt); the last
	// may be a partial block. OutputBlocks continue the chain over the output:
	// the first of them completes the input's partial block. New ids count up,
	// so their differences are small: a third less to compress and to keep.
	Blocks       []uint64 `parquet:"blocks,list" parquet-element:",delta"`
	OutputBlocks []uint64 `parquet:"output_blocks,optional,list" parquet-element:",delta"`

	Status       string `parquet:"status,optional,dict"`
	FinishReason string `parquet:"finish_reason,optional,dict"`
	TTFTNS       *int64 `parquet:"ttft_ns,optional,zstd"` // as recorded in production
	E2ENS        *int64 `parquet:"e2e_ns,optional,zstd"`  // as recorded in production

	// LengthSource says what InputTokens are, and ReuseSource what Blocks are made of,
	// see [LengthUsage] and [ReuseText]. Files of earlier versions do not say.
	LengthSource string `parquet:"length_source,optional,dict"`
	ReuseSource  string `parquet:"reuse_source,optional,dict"`

	// Thread numbers the conversations of a session from 0, its root; the others are
	// sub-agents and side calls. It is nil where the source does not tell.
	Thread *int32 `parquet:"thread,optional"`
}

// Values of LengthSource.
const (
	LengthUsage = "usage" // the source counted, or an operator named its field
	LengthText  = "text"  // the text was counted
)

// Values of ReuseSource; it is empty where a row has no blocks.
const (
	ReuseText     = "text"     // of the prompt
	ReuseHashes   = "hashes"   // that the source made, of blocks or of messages
	ReuseInferred = "inferred" // from cached tokens, sessions and tools: an estimate
)

// Values of Status.
const (
	StatusOK        = string(ending.OK)
	StatusFailed    = string(ending.Failed) // kept, left out of replay by default
	StatusCancelled = string(ending.WasCut) // load: sent, and disconnected at the recorded instant
)

var (
	statuses = []string{StatusOK, StatusFailed, StatusCancelled}
	kinds    = []string{"chat", "completion", "embedding", "responses"}
)

// Closed maps a string from a source onto its closed list, or to "other", so
// that no free text reaches a column.
func closed(list []string, s string) string {
	if slices.Contains(list, s) {
		return s
	}
	return "other"
}

// ClosedSource maps what a length or reuse is made of onto the closed lists; empty stays
// empty.
func ClosedSource(s string) string {
	return closed([]string{"", LengthUsage, LengthText, ReuseHashes, ReuseInferred}, s)
}

// ClosedStatus maps a source's status onto the closed list, as [ending.Status] reads it; empty
// means ok.
func ClosedStatus(s string) string {
	if s == "" {
		return StatusOK
	}
	fate, _ := ending.Status(s)
	return closed(statuses, string(fate))
}

// ClosedFinish maps a finish reason of any provider onto the closed list of [ending.Finish];
// empty stays empty.
func ClosedFinish(s string) string { return ending.Finish(s) }

// ClosedKind maps a request kind onto the closed list; empty means chat.
func ClosedKind(s string) string {
	if s == "" {
		return "chat"
	}
	return closed(kinds, s)
}

// OutputOr is the output's length in tokens, or what stands for one that the source does not
// tell: 0 in a sum over the known lengths, -1 in a key.
func (r *Request) OutputOr(unknown int32) int32 {
	if r.OutputTokens == nil {
		return unknown
	}
	return *r.OutputTokens
}

func (Request) textFree() {}

// Ptr returns a pointer to a copy of v, for the optional columns.
func Ptr[T any](v T) *T { return &v }
