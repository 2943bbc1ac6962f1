package replay

import (
	"reprise/replay/result"
	"reprise/trace"
)

// threads keep what was said in the sessions of a run that go on. They belong to
// the feeder.
type threads struct {
	opt     *Threading
	lineage *Lineage
	prompts result.Continuer
	limit   int64
	rows    map[int64]*thread // rows that were prepared and that turns may follow
	bytes   int64
	now     turn
	stats   result.Threads
}

func newThreads(opt *Options, prompts result.Continuer) *threads {
	t := &threads{opt: opt.Thread, lineage: opt.Causal, prompts: prompts, limit: opt.Thread.limit, rows: map[int64]*thread{}}
	if t.limit == 0 {
		t.limit = threadBytes
	}
	return t
}

// A thread is a row that was prepared: what its prompt has of its own, and the
// reply. Its whole prompt is that of the thread before, the reply there, and its
// own part.
type thread struct {
	id     int64
	before *thread // nil where the prompt is all its own
	own    *said   // nil when there was no room
	reply  *said   // nil until it has come
	tokens int     // of the reply
	sure   bool    // the reply encodes to the tokens that were generated
	total  int     // tokens of the prompt, as the server counts
	size   int64   // in memory

	input, output        int // tokens as recorded
	blocks, outputBlocks []uint64
	next                 *followers // nil where only one can

	pending int // turns that may follow it
	held    int // threads that begin with it
}

// said is a piece of a conversation, as text or as token ids. It is kept by a
// pointer, since fmt would print an unexported field of another struct.
type said struct {
	text []byte
	ids  []uint32
}

func (s *said) bytes() int64 { return int64(len(s.text) + 4*len(s.ids)) }

// A turn is the row whose prompt is being made.
type turn struct {
	id     int64
	row    *trace.Request
	before *thread        // that it goes on from, or nil
	stats  result.Threads // what to add once the prompt is made
	share  *share         // what is known of the prompt, of one that goes on
	total  int
	own    *said  // of the prompt, while something may follow
	seam   string // that the reply stands behind
	ids    bool   // the prompt is token ids
}

// begin takes the row that is prepared next, and finds what it goes on from.
func (t *threads) begin(id int64, row *trace.Request) {
	t.now = turn{id: id, row: row}
	u := &t.now
	var noRoom, noReply, assumed bool
	var parents int64
	for i, p := range row.Parents {
		if p < 0 || p >= id || contains(row.Parents[:i], p) {
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

func contains(ids []int64, id int64) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
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
	if n := (th.input+th.output)/size - full; n <= len(th.outputBlocks) {
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

// plan settles how many tokens of its own a turn that goes on has, least or
// more, and what will be known of its prompt.
func (t *threads) plan(least int) (own int) {
	u := &t.now
	b := u.before
	so := b.total + b.tokens + t.opt.TurnOverhead
	own = int(u.row.InputTokens) - so
	if own < least {
		u.stats.Longer, u.stats.LongerBy = 1, int64(least-own)
		own = least
	}
	u.total = so + own
	u.share = &share{seen: b.total - 1, whole: b.total + b.tokens, turn: t.opt.TurnOverhead, size: t.opt.BlockSize,
		aligned: u.stats.Longer == 0, beside: b.next}
	if b.sure {
		u.share.seen = u.share.whole - 1
	}
	return own
}

// finish ends what begin began: the prompt was made, or could not be. It tells
// the flight what it needs to know of it.
func (t *threads) finish(fl *flight, err error) {
	u := &t.now
	if err == nil {
		t.count(&u.stats)
		fl.share = u.share
		if u.own != nil {
			fl.handover = &handover{seam: u.seam, ids: u.ids}
		}
		t.keep()
	}
	t.leave(u.id, u.row)
	t.now = turn{}
}

// keep makes the thread of a row that others may follow.
func (t *threads) keep() {
	u := &t.now
	row := u.row
	if u.own == nil {
		return
	}
	th := &thread{id: u.id, before: u.before, own: u.own, total: u.total, pending: t.lineage.following(u.id),
		input: int(row.InputTokens), output: int(row.OutputTokens), outputBlocks: append([]uint64(nil), row.OutputBlocks...)}
	if size := t.opt.BlockSize; size > 0 {
		th.blocks = append(th.blocks, row.Blocks[:min(th.input/size, len(row.Blocks))]...)
	}
	if th.pending > 1 {
		th.next = new(followers)
	}
	th.size = u.own.bytes() + int64(8*(len(th.blocks)+len(th.outputBlocks))) + 256
	if t.bytes+th.size > t.limit {
		th.own, th.before, th.size = nil, nil, 0
	}
	if th.before != nil {
		th.before.held++
	}
	t.grow(th.size)
	t.rows[u.id] = th
}

func (t *threads) grow(by int64) {
	t.bytes += by
	t.stats.PeakBytes = max(t.stats.PeakBytes, t.bytes)
}

// answered takes the reply to a row.
func (t *threads) answered(id int64, a *handover) {
	th := t.rows[id]
	if th == nil || th.own == nil || a.said == nil {
		return
	}
	size := a.said.bytes()
	if t.bytes+size > t.limit {
		t.forget(th)
		return
	}
	th.reply, th.tokens, th.sure = a.said, a.tokens, a.sure
	if a.input > 0 {
		th.total = a.input
	}
	th.size += size
	t.grow(size)
}

// forget gives up what a thread holds. It stays, so that the turns that follow
// know why there is nothing.
func (t *threads) forget(th *thread) {
	t.bytes -= th.size
	before := th.before
	th.own, th.reply, th.before, th.size = nil, nil, nil, 0
	if before != nil {
		before.held--
		t.release(before)
	}
}

// leave says that a row needs its parents no longer: it was prepared, or is not
// sent.
func (t *threads) leave(id int64, row *trace.Request) {
	for _, p := range row.Parents {
		th := t.rows[p]
		if th == nil || p >= id {
			continue
		}
		th.pending--
		t.release(th)
	}
}

// release lets go of a thread that nothing follows any more, and of those before
// it that it alone held.
func (t *threads) release(th *thread) {
	for th != nil && th.pending == 0 && th.held == 0 {
		t.bytes -= th.size
		delete(t.rows, th.id)
		if th = th.before; th != nil {
			th.held--
		}
	}
}

// count adds up what became of one turn.
func (t *threads) count(one *result.Threads) {
	s := &t.stats
	s.Threaded += one.Threaded
	s.Assumed += one.Assumed
	s.Apart += one.Apart
	s.NoReply += one.NoReply
	s.NoRoom += one.NoRoom
	s.Joined += one.Joined
	s.Recoded += one.Recoded
	s.Longer += one.Longer
	s.LongerBy += one.LongerBy
	s.ReplyTokens += one.ReplyTokens
}
