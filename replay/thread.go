package replay

import (
	"errors"

	"reprise/trace"
)

// Threading has a causal run put the server's own replies into the prompts of
// the turns that follow, so that the KV that it generated is reused as in
// production.
//
// The prompt of a turn is then what was sent for the turn before, the reply to
// it, and an end of the turn's own, which is as much longer or shorter as makes
// the whole as long as recorded. What the whole has so far is taken from the
// server's own count of the turn before, so that errors at seams do not add up.
// A turn goes on from that of its parents whose prompt is the longest, if the
// workload says, or does not contradict, that the parent's prompt and reply
// stand at its beginning:
//
//   - it is as long as the two together, and
//   - it begins with the full blocks of the parent's prompt, and where the output
//     was seen with those of the parent's output. Where no block of the reply can
//     be compared, the lengths alone say so, and [Threads] counts it as assumed.
//
// Any other row has the prompt that it has without threads. One that shares
// blocks of a reply with a session other than its own does not find them on the
// server, and that is counted too.
//
// Replies and prompts are kept in memory while turns may follow, up to 512 MB,
// and are in nothing that is written.
type Threading struct {
	// BlockSize is that of the rows. 0 says that their blocks tell nothing of
	// what they share: a turn that is long enough goes on from its parent.
	BlockSize int
	// Encode appends the token ids of a text, as the endpoint's tokenizer makes
	// them. It is called from many goroutines.
	Encode func(dst []uint32, text string) []uint32
	// Word is a word that is one token, also before a space and a further word.
	Word string
	// TurnOverhead is how many tokens the chat template adds with a reply and a
	// further message, see [HTTP.CalibrateTurn].
	TurnOverhead int
	// Whole, when set, counts for every row the known tokens as if every prompt
	// and reply stood where the workload has it. It is called as
	// [Options.Known] is.
	Whole func(*trace.Request) int32

	limit int64 // bytes kept; 0 is threadBytes
}

const threadBytes = 512 << 20

// Threads says what became of the turns of a run with [Threading]. Every turn
// that was prepared is threaded, apart, without a reply or without room.
type Threads struct {
	Threaded int64 `json:"threaded"`  // turns whose prompt holds the server's own reply
	Assumed  int64 `json:"assumed"`   // of these, without a block of the source that holds some of the reply: only lengths agree
	Apart    int64 `json:"apart"`     // turns that do not go on from a parent's reply, by blocks or lengths
	NoReply  int64 `json:"no_reply"`  // turns whose parent has no reply to repeat: it was empty, over 1 MiB, or never asked for
	NoRoom   int64 `json:"no_room"`   // turns whose parent's text did not fit in memory
	Joined   int64 `json:"joined"`    // further parents of threaded turns, whose replies are not in the prompt
	Recoded  int64 `json:"recoded"`   // replies in prompts that may not encode to the tokens that were generated; their reuse is not expected
	Longer   int64 `json:"longer"`    // prompts that are longer than recorded, since the reply left no room
	LongerBy int64 `json:"longer_by"` // by so many tokens in all

	ReplyTokens int64 `json:"reply_tokens"` // of the server's replies, each counted in the first prompts that hold it
	// LostTokens are prompt tokens that other rows would find known if every
	// reply were the one recorded.
	LostTokens int64 `json:"lost_tokens"`
	PeakBytes  int64 `json:"peak_bytes"` // of prompts and replies kept in memory
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

var (
	errThreadOpen  = errors.New("replay: only in a causal run can a reply stand in the next prompt, since only there it has come")
	errNoContinuer = errors.New("replay: the prompter cannot make the end of a prompt, which a reply in it needs")
)

// threading returns the threads of a run, nil without.
func (r *Runner) threading(opt *Options) (*threads, error) {
	if opt.Thread == nil {
		return nil, nil
	}
	prompts, ok := r.Prompter.(Continuer)
	if !ok {
		return nil, errNoContinuer
	}
	return newThreads(opt, prompts), nil
}
