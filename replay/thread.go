package replay

import (
	"errors"

	"reprise/replay/result"
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
//     be compared, the lengths alone say so, and [result.Threads] counts it as assumed.
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
	// further message, see [client.HTTP.CalibrateTurn].
	TurnOverhead int
	// Whole, when set, counts for every row the known tokens as if every prompt
	// and reply stood where the workload has it. It is called as
	// [Options.Known] is.
	Whole func(*trace.Request) int32

	limit int64 // bytes kept; 0 is threadBytes
}

const threadBytes = 512 << 20

var (
	errThreadOpen  = errors.New("replay: only in a causal run can a reply stand in the next prompt, since only there it has come")
	errNoContinuer = errors.New("replay: the prompter cannot make the end of a prompt, which a reply in it needs")
)

// threading returns the threads of a run, nil without.
func (r *Runner) threading(opt *Options) (*threads, error) {
	if opt.Thread == nil {
		return nil, nil
	}
	prompts, ok := r.Prompter.(result.Continuer)
	if !ok {
		return nil, errNoContinuer
	}
	return newThreads(opt, prompts), nil
}
