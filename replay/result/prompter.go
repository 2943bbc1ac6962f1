package result

import (
	"reprise/trace"
)

// A Prompter makes the prompt of a row just before it is sent: prompts are
// never stored. One goroutine calls it, in the order in which rows are due as far
// as that is known. It appends to buf[:0], may return a larger slice, and keeps
// neither the row nor the buffer. One that also has ShortTails() int64 says how
// many prompts hold a block too short to be told from others, and [Run] records it.
type Prompter interface {
	// Prompt makes the prompt as text, UTF-8.
	Prompt(row *trace.Request, buf []byte) ([]byte, error)
	// Tokens makes the same prompt as token ids.
	Tokens(row *trace.Request, buf []uint32) ([]uint32, error)
}

// A Continuer is a [Prompter] that can also make the end of a row's prompt, so
// many tokens of it, to stand behind a reply.
type Continuer interface {
	Prompter
	// Continue appends the end as text, with a space before its first word
	// unless it is bare.
	Continue(row *trace.Request, tokens int, bare bool, buf []byte) ([]byte, error)
	// ContinueTokens appends the token ids of the end behind a space.
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
	// request, and says for which API: [APIChat] or [APICompletions]. The id is that
	// of the row in the workload, or below 0 for what is none.
	Input(id int64, row *trace.Request, buf []byte) (api string, body []byte, err error)
}

// PromptsVerbatim is [Run].Prompts where they were those of the source.
const PromptsVerbatim = "verbatim"
