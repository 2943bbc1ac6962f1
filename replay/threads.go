package replay

import (
	"cmp"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
)

// Threading puts the server's own replies into the prompts of the turns that follow, in
// a causal run, so that the KV that the server generated is reused as in production.
//
// The prompt of a turn is then what was sent for the turn before, the reply to it, and
// an end of the turn's own. That end is as much longer or shorter as makes the whole
// prompt as long as recorded. The length of the part before it is the server's own count
// of the turn before, so that errors where the parts join do not add up.
// Of its parents, a turn goes on from the one with the longest prompt. The workload must
// say, or not contradict, that the turn's prompt begins with the parent's prompt and
// reply:
//
//   - it is as long as the two together, and
//   - it begins with the full blocks of the parent's prompt, and where the output
//     was seen with those of the parent's output. Where no block of the reply can
//     be compared, only the lengths say so, and [result.Threads] counts it as assumed.
//
// Any other row has the prompt that it has without threads. A row that shares
// blocks of a reply with a session other than its own does not find them on the
// server, and that is counted too.
//
// Replies and prompts are kept in memory while turns may follow, up to 512 MB.
// They are never written anywhere.
type Threading struct {
	// BlockSize is the number of tokens in a block of the rows. 0 says that their blocks
	// do not tell what they share: a turn that is long enough goes on from its parent.
	BlockSize int
	// Encode appends the token ids of a text, as the endpoint's tokenizer makes
	// them. It is called from many goroutines.
	Encode func(dst []uint32, text string) []uint32
	// Decode appends the text of token ids. It is called from many goroutines. nil says that
	// it is not known, and a reply is then compared by the number of its tokens alone.
	Decode func(dst []byte, ids []uint32) ([]byte, error)
	// Word is a word that is one token, also before a space and a further word.
	Word string
	// TurnOverhead is how many tokens the chat template adds with a reply and a
	// further message, see [client.HTTP.CalibrateTurn].
	TurnOverhead int
	// After is how many tokens the chat template puts after a prompt.
	After int
	// Whole, when set, counts for every row the known tokens as if every prompt
	// and reply were the one of the workload. It is called in the same way as
	// [Options.Known].
	Whole func(*trace.Request) int32

	limit int64 // bytes kept; 0 is threadBytes
}

const threadBytes = 512 << 20

// threads keep the prompts and replies of sessions that go on. They belong to the
// feeder.
type threads struct {
	opt       *Threading
	following func(id int64) int // how many rows wait for a row
	prompts   result.Continuer
	limit     int64
	rows      map[int64]*thread // rows that were prepared and that turns may follow
	bytes     int64
	current   turn
	stats     result.Threads
}

func newThreads(opt *Threading, following func(id int64) int, prompts result.Continuer) *threads {
	t := &threads{opt: opt, following: following, prompts: prompts, limit: opt.limit, rows: map[int64]*thread{}}
	t.limit = cmp.Or(t.limit, threadBytes)
	return t
}

// A thread is a row that was prepared: what its prompt has of its own, and the
// reply. Its whole prompt is that of the thread before, the reply there, and its
// own part.
type thread struct {
	id     int64
	before *thread  // nil where the prompt is all its own
	own    *segment // nil when there was no room
	reply  *segment // nil until it has come
	tokens int      // of the reply
	sure   bool     // the reply encodes to the tokens that were generated
	same   int      // tokens at its begin that were generated, and have KV
	total  int      // tokens of the prompt, as the server counts
	size   int64    // in memory

	input, output        int // tokens as recorded
	blocks, outputBlocks []uint64
	followers            *followers // nil where only one turn can follow

	pending  int // turns that may follow it
	extended int // threads that begin with it
}

// A turn is the row whose prompt is being made.
type turn struct {
	id     int64
	row    *trace.Request
	before *thread        // that it goes on from, or nil
	stats  result.Threads // what to add once the prompt is made
	prefix *threadPrefix  // what is known of the prompt, of one that goes on
	total  int
	own    *segment // of the prompt, while something may follow
	seam   string   // that the reply follows
	ids    bool     // the prompt is token ids
}

// startTurn takes the row that is prepared next, and finds what it goes on from.
func (t *threads) startTurn(id int64, row *trace.Request) {
	t.current = turn{id: id, row: row}
	u := &t.current
	var noRoom, noReply, assumed bool
	var parents int64
	for i, p := range row.Parents {
		if p < 0 || p >= id || slices.Contains(row.Parents[:i], p) {
			continue
		}
		parents++
		th := t.rows[p]
		if th == nil || th.own != nil && th.reply == nil {
			noReply = true
			continue
		}
		ok, seen := th.precedes(row, t.opt.BlockSize)
		if !ok {
			continue
		}
		if th.own == nil {
			noRoom = true
			continue
		}
		if u.before == nil || th.input > u.before.input {
			u.before, assumed = th, !seen
		}
	}
	switch s := &u.stats; {
	case u.before != nil:
		s.Threaded, s.Joined = 1, parents-1
		if assumed {
			s.Assumed = 1
		}
		if !u.before.sure {
			s.Recoded = 1
		}
		s.ReplyTokens = int64(u.before.tokens)
	case noRoom:
		s.NoRoom = 1
	case noReply:
		s.NoReply = 1
	case parents > 0:
		s.Apart = 1
	}
}

// precedes says whether a row may go on from the thread's reply, and whether a
// block that holds some of the reply was seen in it.
func (th *thread) precedes(row *trace.Request, size int) (ok, seen bool) {
	if int(row.InputTokens) < th.input+th.output {
		return false, false
	}
	if size == 0 {
		return true, false
	}
	full := th.input / size
	chain := th.blocks
	if n := (th.input+th.output)/size - full; full <= len(chain) && n <= len(th.outputBlocks) {
		chain = append(chain[:full:full], th.outputBlocks[:n]...)
		seen = n > 0
	}
	if len(row.Blocks) < len(chain) {
		return false, false
	}
	for i, b := range chain {
		if row.Blocks[i] != b {
			return false, false
		}
	}
	return true, seen
}

// ownTokens is how many tokens of its own a turn that goes on has, least or more. It
// notes what will be known of the prompt.
func (t *threads) ownTokens(least int) (own int) {
	u := &t.current
	b := u.before
	inherited := b.total + b.tokens + t.opt.TurnOverhead
	own = int(u.row.InputTokens) - inherited
	if own < least {
		u.stats.Longer, u.stats.LongerBy = 1, int64(least-own)
		own = least
	}
	u.total = inherited + own
	u.prefix = &threadPrefix{seen: b.total + b.same, whole: b.total + b.tokens, after: t.opt.After,
		size:    t.opt.BlockSize,
		aligned: u.stats.Longer == 0, followers: b.followers}
	return own
}

// finishTurn ends what startTurn began: the prompt was made, or could not be. It
// returns what the request needs to know of the prompt. The row needs its parents no
// longer.
func (t *threads) finishTurn(err error) (prefix *threadPrefix, reply *threadReply) {
	u := &t.current
	if err == nil {
		prefix = u.prefix
		sum, one := &t.stats, &u.stats
		sum.Threaded += one.Threaded
		sum.Assumed += one.Assumed
		sum.Apart += one.Apart
		sum.NoReply += one.NoReply
		sum.NoRoom += one.NoRoom
		sum.Joined += one.Joined
		sum.Recoded += one.Recoded
		sum.Longer += one.Longer
		sum.LongerBy += one.LongerBy
		sum.ReplyTokens += one.ReplyTokens
	}
	if err == nil && u.own != nil {
		// Others may follow: keep what they go on from.
		row := u.row
		th := &thread{id: u.id, before: u.before, own: u.own, total: u.total, pending: t.following(u.id),
			input: int(row.InputTokens), output: int(row.OutputOr(0)), outputBlocks: append([]uint64(nil),
				row.OutputBlocks...)}
		if size := t.opt.BlockSize; size > 0 {
			th.blocks = append(th.blocks, row.Blocks[:min(th.input/size, len(row.Blocks))]...)
		}
		if th.pending > 1 {
			th.followers = new(followers)
		}
		th.size = u.own.bytes() + int64(8*(len(th.blocks)+len(th.outputBlocks))) + 256
		if t.bytes+th.size > t.limit {
			th.own, th.before, th.size = nil, nil, 0
		}
		if th.before != nil {
			th.before.extended++
		}
		t.addBytes(th.size)
		t.rows[u.id] = th
		reply = &threadReply{seam: u.seam, ids: u.ids}
	}
	t.releaseParents(u.id, u.row)
	t.current = turn{}
	return prefix, reply
}

func (t *threads) addBytes(by int64) {
	t.bytes += by
	t.stats.PeakBytes = max(t.stats.PeakBytes, t.bytes)
}

// setReply takes the reply to a row. Where there is no room for it the thread gives up
// what it holds. It stays, so that the turns that follow know why there is nothing.
func (t *threads) setReply(id int64, a *threadReply) {
	th := t.rows[id]
	if th == nil || th.own == nil || a.found == nil {
		return
	}
	size := a.found.bytes()
	if t.bytes+size > t.limit {
		t.bytes -= th.size
		before := th.before
		th.own, th.reply, th.before, th.size = nil, nil, nil, 0
		if before != nil {
			before.extended--
			t.releaseThread(before)
		}
		return
	}
	th.reply, th.tokens, th.sure, th.same = a.found, a.tokens, a.sure, a.same
	if a.input > 0 {
		th.total = a.input
	}
	th.size += size
	t.addBytes(size)
}

// releaseParents says that a row needs its parents no longer: it was prepared, or is
// not sent.
func (t *threads) releaseParents(id int64, row *trace.Request) {
	for _, p := range row.Parents {
		th := t.rows[p]
		if th == nil || p >= id {
			continue
		}
		th.pending--
		t.releaseThread(th)
	}
}

// releaseThread frees a thread that nothing follows any more, and those before it that
// nothing else extends.
func (t *threads) releaseThread(th *thread) {
	for th != nil && th.pending == 0 && th.extended == 0 {
		t.bytes -= th.size
		delete(t.rows, th.id)
		if th = th.before; th != nil {
			th.extended--
		}
	}
}
