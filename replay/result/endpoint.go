package result

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"reprise/trace"
)

// A Call is a request ready to go.
type Call interface {
	// Size is the memory that it holds, in bytes. What waits to be sent is
	// bounded by it.
	Size() int
}

// A Shot is a Call with what its sending needs to know of the run.
type Shot struct {
	Call  Call
	Start time.Time     // of the run: the instants of a Result count from it
	Cut   time.Duration // hang up this long after sending; 0 is never
	Reply *Reply        // takes what the server wrote, once it is whole; nil when nobody asks
}

// NoRow is the number of a row that is not one of the workload's, such as a prompt
// that fills the prefix cache before a run.
const NoRow = -1

// An Endpoint prepares a request ahead of time and sends it when it is due.
type Endpoint interface {
	// Prepare makes everything that can be made before the due time. The id is the
	// row's number in the workload, or [NoRow], and the round says which time it is
	// sent, from 0. It keeps nothing of the row. One goroutine calls it, in the order
	// of [Prompter].
	Prepare(id int64, round int32, row *trace.Request, p Prompter) (Call, error)
	// Launch sends the request if that can be done without waiting, and returns the
	// function that reads the answer, to be called once, in a goroutine of its own.
	// It returns nil, and has sent nothing, when the request would have to wait: then
	// Fire sends it. r is as in Fire.
	//
	// Launch lets the goroutine that waits for due times send by itself. A goroutine
	// that is woken for each request runs only after all those that have an event to
	// read: at 40,000 events a second on two cores, that is most of a request's
	// lateness.
	Launch(ctx context.Context, s Shot, r *Result) (read func())
	// Fire sends the request and reads the answer to its end. It writes into r what
	// happened, a failure included: Sent is the entry to the write. It returns when
	// the request is over, soon after the end of ctx. Many goroutines call it, once
	// for each Call.
	Fire(ctx context.Context, s Shot, r *Result)
	// Report says what the endpoint has learnt so far of its servers and of its
	// connections.
	Report() EndpointReport
}

// An EndpointReport is what an [Endpoint] learnt by the end of a run. Its fields are
// those of [Run] with the same names.
type EndpointReport struct {
	Odd    Odd
	Said   []Said
	Served []Served
	Wire   *Wire // nil where the endpoint has no connections of its own
}

// A Prompter makes the prompt of a row just before it is sent: prompts are
// never stored. One goroutine calls it, in the order in which rows are due as far
// as that is known. It appends to buf[:0], may return a larger slice, and keeps
// neither the row nor the buffer. One that is a [TailCounter] too has [Run] record
// its count.
type Prompter interface {
	// Prompt makes the prompt as text, UTF-8.
	Prompt(row *trace.Request, buf []byte) ([]byte, error)
	// Tokens makes the same prompt as token ids.
	Tokens(row *trace.Request, buf []uint32) ([]uint32, error)
}

// A TailCounter is a [Prompter] that counts the prompts that hold a block too short
// to be told from others.
type TailCounter interface {
	ShortTails() int64
}

// A Continuer is a [Prompter] that can also make the end of a row's prompt, so
// many tokens of it, to follow a reply.
type Continuer interface {
	Prompter
	// Continue appends the end as text, with a space before its first word
	// unless it is bare.
	Continue(row *trace.Request, tokens int, bare bool, buf []byte) ([]byte, error)
	// ContinueTokens appends the token ids of the end after a space.
	ContinueTokens(row *trace.Request, tokens int, buf []uint32) ([]uint32, error)
}

// A Conversation is a [Prompter] whose prompts can be messages. An [Endpoint]
// that sends chats asks for them.
type Conversation interface {
	// Messages appends the texts of the messages to buf and their ends in buf to
	// ends: those of the user and of the assistant in turn, the user first and
	// last.
	Messages(row *trace.Request, buf []byte, ends []int) ([]byte, []int, error)
}

// A Verbatim is a [Prompter] that sends what the source sent, in place of prompts
// that are made.
type Verbatim interface {
	Prompter
	// Input appends the input of a row to buf, as members of the JSON body of a
	// request, and says for which API: [APIChat] or [APICompletions]. fields are the other
	// members that the source's body had, as a JSON object, nil where they are not known. The
	// id is that of the row in the workload, or below 0 for what is none.
	Input(id int64, row *trace.Request, buf []byte) (api string, body, fields []byte, err error)
}

// PromptsVerbatim is [Run].Prompts where they were those of the source.
const PromptsVerbatim = "verbatim"

// A Reply is what a server wrote. It stays in memory, for the next turn's
// prompt: every formatter, encoder and log handler of the standard library
// prints a redaction in its place.
type Reply struct{ written *written }

// written is what a Reply withholds. It is kept by a pointer, since fmt would print
// an unexported field of another struct.
type written struct {
	text []byte
	ids  []uint32
	ends []int32
}

// Set takes a copy of the text, of its token ids where the server sent them, and of where
// the pieces end in which the text came, none where that is not known.
func (r *Reply) Set(text []byte, ids []uint32, ends []int32) {
	r.written = &written{append([]byte(nil), text...), append([]uint32(nil), ids...), append([]int32(nil), ends...)}
}

// Take returns what was set, and leaves the Reply empty. All are nil if nothing was set.
func (r *Reply) Take() (text []byte, ids []uint32, ends []int32) {
	if r.written == nil {
		return nil, nil, nil
	}
	text, ids, ends = r.written.text, r.written.ids, r.written.ends
	r.written = nil
	return text, ids, ends
}

const withheld = "[withheld]"

// String withholds the reply.
func (Reply) String() string { return withheld }

// Format withholds it under every verb.
func (Reply) Format(f fmt.State, _ rune) { fmt.Fprint(f, withheld) }

// MarshalText withholds it from encoders.
func (Reply) MarshalText() ([]byte, error) { return []byte(withheld), nil }

// MarshalJSON withholds it.
func (Reply) MarshalJSON() ([]byte, error) { return []byte(`"` + withheld + `"`), nil }

// MarshalBinary withholds it.
func (Reply) MarshalBinary() ([]byte, error) { return []byte(withheld), nil }

// LogValue withholds it from log/slog.
func (Reply) LogValue() slog.Value { return slog.StringValue(withheld) }
