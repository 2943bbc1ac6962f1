package synth

import (
	"math/rand/v2"
	"strconv"

	"reprise/trace"
)

// A talk says what a generated trace has.
type talk struct {
	block    int
	models   int  // cache domains, at least 1
	sessions bool // the source gave sessions, with parents and think times
	users    int
	failed   bool // some rows failed or were cancelled
}

// rows makes a trace of chats with templates, next turns, branches inside full
// and partial blocks, and duplicates. A token is a byte, so prompts that look
// alike are alike, and a block's id stands for the prefix that it ends.
func (k talk) rows(seed uint64, n int) []trace.Request {
	rng := rand.New(rand.NewPCG(seed, 9))
	ids := map[string]uint64{}
	tokens := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		return string(b)
	}
	some := func() int { return 1 + rng.IntN(5*k.block) }
	type chat struct {
		prompt, reply string
		session       int64
		turn          int32
		row           int64
		user          int64
		model         string
	}
	var chats []chat
	latest := map[int64]int{} // row of each session
	systems := make([]string, k.models)
	for i := range systems {
		systems[i] = tokens(2*k.block + 3)
	}
	rows := make([]trace.Request, n)
	at, sessions := int64(0), int64(0)
	for i := range rows {
		domain := rng.IntN(k.models)
		c := chat{session: sessions, row: int64(i), model: "model-" + strconv.Itoa(domain), prompt: tokens(some())}
		if k.users > 0 {
			c.user = int64(min(rng.IntN(k.users), rng.IntN(k.users)))
		}
		if rng.IntN(5) > 0 {
			c.prompt = systems[domain] + c.prompt
		}
		var parent *chat
		if i > 0 {
			old := &chats[i-1-rng.IntN(min(i, 40))]
			kind := rng.IntN(7)
			if kind < 3 {
				old = &chats[latest[old.session]]
			}
			c.model = old.model
			switch kind {
			case 0, 1, 2:
				c.prompt = old.prompt + old.reply + tokens(some())
				c.session, c.turn, c.user, parent = old.session, old.turn+1, old.user, old
			case 3:
				c.prompt = old.prompt
			case 4:
				c.prompt = old.prompt[:rng.IntN(len(old.prompt))] + tokens(some())
			default:
				c.model = "model-" + strconv.Itoa(domain)
			}
		}
		if len(c.prompt) > 60*k.block {
			c.prompt = c.prompt[:20*k.block+rng.IntN(k.block)]
		}
		c.reply = tokens(some())
		r := &rows[i]
		*r = trace.Request{ArrivalNS: at, Model: c.model, Kind: "chat", Status: trace.StatusOK,
			InputTokens: int32(len(c.prompt)), OutputTokens: trace.Ptr(int32(len(c.reply)))}
		for end := k.block; end < len(c.prompt)+k.block; end += k.block {
			key := c.model + ":" + c.prompt[:min(end, len(c.prompt))]
			id, ok := ids[key]
			if !ok {
				id = uint64(len(ids))
				ids[key] = id
			}
			r.Blocks = append(r.Blocks, id)
		}
		if k.sessions {
			r.Session, r.Turn = trace.Ptr(c.session), trace.Ptr(c.turn)
			if parent != nil {
				r.Parents = []int64{parent.row}
				since := at - rows[parent.row].ArrivalNS
				r.ThinkNS = trace.Ptr(since - rng.Int64N(since/2+1)) // the rest is the answer
			}
		}
		if c.session == sessions {
			sessions++
		}
		if k.users > 0 {
			r.User = trace.Ptr(c.user)
		}
		if k.failed {
			r.Status = []string{trace.StatusOK, trace.StatusOK, trace.StatusFailed, trace.StatusCancelled}[rng.IntN(4)]
		}
		chats = append(chats, c)
		latest[c.session] = i
		at += int64(rng.IntN(3)) * int64(rng.IntN(4e8))
	}
	return rows
}

// succeeded leaves the rows that did not fail.
func succeeded(rows []trace.Request) []trace.Request {
	var out []trace.Request
	for _, r := range rows {
		if r.Status != trace.StatusFailed {
			out = append(out, r)
		}
	}
	return out
}
