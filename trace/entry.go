package trace

import (
	"fmt"
	"strings"
	"time"
)

// A Role says who speaks. Readers map every spelling of a source to one of these.
type Role uint8

// The roles of a chat. Developer messages count as system ones, function
// results as tool ones.
const (
	System Role = iota
	User
	Assistant
	Tool
)

// String returns the role as chat APIs spell it.
func (r Role) String() string {
	switch r {
	case System:
		return "system"
	case User:
		return "user"
	case Assistant:
		return "assistant"
	case Tool:
		return "tool"
	}
	return "unknown"
}

// RoleOf is the role of a spelling, in any case: those of OpenAI's API, of ShareGPT and of what
// models are trained with.
func RoleOf(name string) (role Role, ok bool) {
	switch strings.ToLower(name) {
	case "system", "developer":
		return System, true
	case "user", "human", "prompter":
		return User, true
	case "assistant", "gpt", "chatgpt", "bing", "bard", "bot", "function_call", "tool_call":
		return Assistant, true
	case "tool", "function", "observation", "tool_response", "ipython":
		return Tool, true
	}
	return 0, false
}

// A Message is one turn of a chat as the source recorded it.
type Message struct {
	withheld
	Role    Role
	Content Text
	Calls   Text // of tools, by the assistant: a JSON list in the shape of OpenAI's API, or empty
	CallID  Text // of the call that a tool's message answers
	Name    Text // of that tool
}

// An Entry is one line of a source log. It may hold text: package anonymize
// consumes it, and writes text only where an operator asks to keep it. Identifiers
// are as secret as text, so they are Texts too; otherwise a %p would print them
// without calling the methods.
//
// A field that the source does not have is nil or zero; a zero Time is no time.
type Entry struct {
	withheld
	Time     time.Time // arrival
	User     Text      // as the source spells it, like Session, Model and the rest
	Session  Text
	Thread   *int32 // of its session: 0 is the root, see [Request]
	Turn     *int32
	Parents  []int64 // earlier Entries that had to be done first, by position in the reader's output from 0
	Think    *time.Duration
	Tool     *time.Duration
	Messages []Message // the input, whole: earlier turns included, sharing their Texts
	Tools    Text      // definitions that the request offered: a JSON list in the shape of OpenAI's API, or empty
	Reply    *Text     // the output, when it was recorded as text

	// ReplyCalls are calls of tools in the output, as those of a Message.
	ReplyCalls Text

	// Fields are the members of the body of a request to OpenAI's chats or completions that
	// this Entry has no field for, such as tool_choice and stop, and all that say how to
	// generate: a JSON object. It is empty where the source has no such body, or nobody asked
	// for it.
	Fields Text

	// Response is the id of the answer, and Previous that of the answer that the request
	// goes on from, where a server keeps conversations.
	Response Text
	Previous Text

	// PromptIDs are the prompt, whole, where that was sent as ids of tokens. There are no
	// Messages then.
	PromptIDs []uint32

	InputTokens  *int32 // as the source counted; the length when there are no Messages
	InputGiven   bool   // an operator named the field of InputTokens: it is the length, with Messages too
	OutputTokens *int32
	Reasoning    *int32 // output tokens that were reasoning
	Cached       *int32 // input tokens that the server took from its cache
	ImageTokens  *int32
	Images       *int32

	SourceBlocks []uint64 // prefix-block ids that the source hashed itself
	Model        Text
	Adapter      Text
	Salt         Text // cache salt or tenant: a cache domain of its own
	PrefixKey    Text // names what the prompt begins with, such as OpenAI's prompt_cache_key
	Class        Text
	Replica      Text
	MaxTokens    *int32
	Temperature  *float32
	Stream       *bool

	Kind         string // from the closed list, see [ClosedKind]
	Status       string // from the closed list, see [ClosedStatus]
	FinishReason string // from the closed list, see [ClosedFinish]
	TTFT         *time.Duration
	E2E          *time.Duration
}

// An EntryReader yields Entries in the order of the source. Like [Reader], it
// fills a prefix of the batch and returns io.EOF, possibly with rows, at the
// end. Read overwrites every field of the rows it fills and keeps nothing of
// the batch.
type EntryReader interface {
	Read(batch []Entry) (int, error)
}

// PlainEntries are entries that have a time, both lengths and ids of blocks and nothing else, as most of a source
// that has ids do, column by column: an [Entry] takes longer to make than such a line to read. Times are in
// nanoseconds since 1970.
type PlainEntries struct {
	UnixNS        []int64
	Input, Output []int32
	Ends          []int    // of the ids of each
	IDs           []uint64 // of blocks, at least one for each
}

// Len is how many entries there are.
func (p *PlainEntries) Len() int { return len(p.UnixNS) }

// IDsOf are those of entry i.
func (p *PlainEntries) IDsOf(i int) []uint64 {
	from := 0
	if i > 0 {
		from = p.Ends[i-1]
	}
	return p.IDs[from:p.Ends[i]:p.Ends[i]]
}

// Entry is entry i. It points to what these hold.
func (p *PlainEntries) Entry(i int) Entry {
	return Entry{Time: time.Unix(0, p.UnixNS[i]).UTC(), InputTokens: &p.Input[i], OutputTokens: &p.Output[i],
		SourceBlocks: p.IDsOf(i)}
}

// Clear forgets the entries and keeps memory for others, but for that of outputs, to which rows may point.
func (p *PlainEntries) Clear() {
	*p = PlainEntries{p.UnixNS[:0], p.Input[:0], make([]int32, 0, cap(p.Output)), p.Ends[:0], p.IDs[:0]}
}

// A PlainReader is an EntryReader whose next entries may be plain. ReadPlain appends these, until there are most of
// them, and stops before one that is not. An error, or the end, is for Read to tell.
type PlainReader interface {
	EntryReader
	ReadPlain(p *PlainEntries, most int)
}

// A SourceError tells the place of an error in an input, and its reason, without
// quoting the input.
type SourceError struct {
	File   string
	Line   int64 // from 1; 0 when the input has no lines
	Column int64 // from 1, in bytes; 0 when the whole line is meant
	Reason string
	Err    error // a sentinel for errors.Is, such as io.ErrUnexpectedEOF; never one that quotes input
}

// Error formats as file:line:column: reason.
func (e *SourceError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Unwrap returns the sentinel.
func (e *SourceError) Unwrap() error { return e.Err }

// FarTime reports whether a time is outside the years 1970 to 2200, by its own clock.
func FarTime(t time.Time) bool {
	const first, last = 1 << 20, 7_289_000_000 // seconds that are inside by any clock
	if s := t.Unix(); s > first && s < last {
		return false
	}
	return t.Year() < 1970 || t.Year() > 2200
}
