package profile_test

import (
	"math/rand/v2"

	"reprise/trace"
)

// A shape says what a generated trace has.
type shape struct {
	block    int
	system   bool // most prompts begin with one system prompt
	output   bool // output blocks
	statuses bool // some rows failed or were cancelled
	sessions bool // the source gave sessions, to some rows
	reach    int  // how many rows back a prompt may build on; 0 means 40
	people   bool // users and models, to some rows; cached tokens, parents; rows without blocks
}

// chains gives token sequences their chained block ids, as a trace has them: an
// id for each prefix that ends at a block, and for a partial last block another
// than for the block that completes it.
type chains struct {
	size int
	ids  map[string]uint64
}

func (c *chains) id(prefix string) uint64 {
	id, ok := c.ids[prefix]
	if !ok {
		id = uint64(len(c.ids))
		c.ids[prefix] = id
	}
	return id
}

// blocks returns the ids of a sequence from its block at from on.
func (c *chains) blocks(tokens string, from int) []uint64 {
	var ids []uint64
	for end := (from + 1) * c.size; end < len(tokens)+c.size; end += c.size {
		ids = append(ids, c.id(tokens[:min(end, len(tokens))]))
	}
	return ids
}

// generate makes a trace of chats with templates, next turns, branches and
// duplicates. A token is a byte, so prompts that look alike are alike.
func generate(seed uint64, n int, s shape) []trace.Request {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &chains{s.block, map[string]uint64{}}
	tokens := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		return string(b)
	}
	some := func() int { return 1 + rng.IntN(6*s.block) }
	if s.reach == 0 {
		s.reach = 40
	}
	system := tokens(3*s.block + 1)
	var chats []string // prompt and reply of every row so far
	var prompts []string
	rows := make([]trace.Request, n)
	at := int64(0)
	for i := range rows {
		r := &rows[i]
		prompt := tokens(some())
		if s.system && rng.IntN(4) > 0 {
			prompt = system + prompt
		}
		if i > 0 {
			old := i - 1 - rng.IntN(min(i, s.reach))
			switch rng.IntN(6) {
			case 0, 1:
				prompt = chats[old] + tokens(some())
			case 2:
				prompt = prompts[old]
			case 3:
				prompt = prompts[old][:rng.IntN(len(prompts[old]))] + tokens(some())
			}
		}
		if len(prompt) > 60*s.block {
			prompt = prompt[:20*s.block]
		}
		reply := tokens(some())
		prompts, chats = append(prompts, prompt), append(chats, prompt+reply)
		*r = trace.Request{ArrivalNS: at, InputTokens: int32(len(prompt)), OutputTokens: trace.Ptr(int32(len(reply))), Blocks: c.blocks(prompt, 0)}
		if s.output && rng.IntN(3) > 0 {
			r.OutputBlocks = c.blocks(prompt+reply, len(prompt)/s.block)
		}
		if s.statuses {
			r.Status = []string{"", trace.StatusOK, trace.StatusFailed, trace.StatusCancelled}[rng.IntN(4)]
		}
		if s.sessions && rng.IntN(2) == 0 {
			r.Session, r.Turn = trace.Ptr(int64(rng.IntN(5))), trace.Ptr(int32(7))
		}
		if s.people {
			addPeople(rng, r, i)
		}
		at += int64(rng.ExpFloat64() * 0.2e9 * float64(rng.IntN(3)))
	}
	return rows
}

func addPeople(rng *rand.Rand, r *trace.Request, row int) {
	if rng.IntN(8) > 0 {
		r.User = trace.Ptr(int64(min(rng.IntN(40), rng.IntN(40))))
	}
	r.Model = []string{"", "small", "large", "large"}[rng.IntN(4)]
	if rng.IntN(2) == 0 {
		r.CachedTokens = trace.Ptr(int32(rng.IntN(int(r.InputTokens)+20) - 5)) // some cannot be
	}
	if row > 0 && rng.IntN(2) == 0 {
		r.Parents = []int64{int64(rng.IntN(row))}
	}
	if rng.IntN(10) == 0 {
		r.Blocks, r.OutputBlocks = nil, nil
	}
}
