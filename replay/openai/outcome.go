package openai

import (
	"math"
	"time"

	"reprise/trace/usage"
)

// NoInstant stands for an instant that never came, and becomes null where results are
// written. It is not 0 or -1, since both are instants: the clock's start may lie
// before or after the event.
const NoInstant = time.Duration(math.MinInt64)

// An Outcome is what became of one request, as far as its stream tells. Instants are on
// the Scanner's clock, NoInstant when they never came. Its slices belong to the
// Collector and are valid until its Reset.
//
// The request succeeded if Err is nil, as package ending decides: tokens came, none of them
// was an error, and the stream said that the generation was over, by [DONE] after at least
// one chunk, by a finish reason for every choice seen that is not one of giving up, by the
// last event of the Responses API, or by embeddings. What
// the transport did after that is forgiven, since nothing of the answer is missing.
// When Err is not nil, the other fields hold what came before.
type Outcome struct {
	// FirstEvent is the first data event other than keep-alives and [DONE]: a role, a
	// progress report, a token or an error. It is no measure of the first token.
	FirstEvent time.Duration
	// FirstToken and LastToken are the first and last token event: one with generated
	// content, which is non-empty content, reasoning, tool-call deltas or completion text.
	FirstToken, LastToken time.Duration
	// FirstContent is the first token event with something else than reasoning.
	FirstContent time.Duration
	// Finished is the first finish reason.
	Finished time.Duration
	// Done is the first [DONE] or last event of the Responses API, or the end of the
	// stream if there was none.
	Done time.Duration

	// Queue and Prefill are how long the request waited at the server to be scheduled, and from there to its first
	// token, as the server says; nil where it does not.
	Queue, Prefill *time.Duration

	// TokenEvents counts the token events; one may carry several tokens, or none that
	// the server counts.
	TokenEvents int
	// Gaps are the times between successive token events, TokenEvents-1 of them.
	Gaps []time.Duration
	// EventTokens is how many tokens each token event carried, by the running usage that
	// came with it; empty unless a stream of one choice had it in every token event.
	EventTokens []int32

	// ReadDelays are the [Event.ReadDelay] of the token events; empty unless every one
	// has it.
	ReadDelays []int32

	// Reasoning says that reasoning was generated.
	Reasoning bool
	// Choices is how many parallel answers were seen; with more than one, gaps are
	// between events of any of them.
	Choices int
	// Usage holds the last value that was not zero of each count. A total that came
	// without choices stands above counts that came with them; the latter are summed
	// over the choices. Nil when the server counted nothing.
	Usage *Usage
	// Found is what the counts of the usage break, or how they had to be taken.
	Found usage.Findings
	// Counts are the counts as the server wrote them, those included that are in no Usage.
	Counts usage.Counts
	// Bytes is how long the text of all choices is: content, reasoning, and what was sent of
	// calls of tools. Opaque says that something without a text was generated, too.
	Bytes  int64
	Opaque bool
	// Embedded says that the answer is an embedding.
	Embedded bool
	// FinishReason is that of choice 0, or the first that came from another: "stop",
	// "length", "tool_calls", "content_filter" or what else the server calls it, "other"
	// if that is not an identifier of at most 64 bytes; "" if none came.
	FinishReason string
	// ID and Model are what the server called the answer and the model, cut to 128
	// bytes. Ids are not unique on every server.
	ID, Model string

	// DoneMarkers counts [DONE], or the last events of an API that has none: 0 or 2 on a
	// few servers.
	DoneMarkers int
	// Events counts data events other than keep-alives and [DONE], malformed ones included.
	Events int
	// Comments counts keep-alives: comment lines, data events that are empty or hold a
	// comment, and events that are named ping or have that type.
	Comments int
	// Malformed counts events that were not a JSON object. They say nothing.
	Malformed int

	// Text is the generated text, when the Collector was told to keep it.
	Text Text

	// Err is nil, or says how the request failed.
	Err *StreamError
}

// MissingDone reports a success that lacked the end mark.
func (o *Outcome) MissingDone() bool { return o.Err == nil && o.DoneMarkers == 0 }

// Text is what the first choice (index 0) generated, in the order of arrival. It is
// needed to count tokens where usage is missing, and to put a server's own answer into
// the next turn.
type Text struct {
	Content   []byte // content or completion text
	Reasoning []byte
	Tools     []byte // names and arguments of tool calls, each piece as it came
	Truncated bool   // the limit was reached, and nothing was kept after it
	// IDs are the token ids that came with the pieces: vLLM sends them on request
	// (return_token_ids). Some of its versions leave some out, so that they are the whole
	// answer only where they are as many as its usage counts.
	IDs []uint32
	// Ends are where the pieces of the content that had text end in it. A server that sends
	// each token when it has it sends one a piece.
	Ends []int32
}

func (t *Text) size() int { return len(t.Content) + len(t.Reasoning) + len(t.Tools) + 4*len(t.IDs) }
