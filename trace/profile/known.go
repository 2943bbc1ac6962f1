package profile

import (
	"reprise/trace"
	"reprise/trace/block"
)

// A KnownPass counts for each row how many of its leading prompt tokens earlier
// rows carried: what a cache that never evicts would know. A replay puts it
// beside what the server reports.
//
// It counts every row it is given, whatever its status: give it the rows that
// are sent, in the order in which they are. Memory is a bit for each distinct block whose id
// is about as small as there are blocks, as ids of a trace are, and some 40 bytes for any other.
type KnownPass struct {
	size      int
	generated bool
	tail      TailOf
	template  TemplateOf
	seen      idSet
	fresh     []uint64            // blocks of the row at hand
	sent      map[uint64]sentPart // by a block, where all of it was not sent or a prompt ended with it
}

// A sentPart is what prompts with a template had of a block.
type sentPart struct {
	missing int32 // tokens at its end that were in none, since the template's stood there
	ends    bool  // whether one ended with it
}

// A TemplateOf returns how many tokens of a row's prompt are those of a chat template,
// before the content and after it.
type TemplateOf func(r *trace.Request) (before, after int32)

// A TailOf returns the partial block that a block completes and how many tokens
// that has, with which the block begins; no tokens mean that it completes none.
type TailOf func(block uint64) (partial uint64, tokens int32)

// A KnownOption changes a [KnownPass] at its making.
type KnownOption func(*KnownPass)

// WithTails says which blocks repeat the tokens of a partial one, so that a
// server with smaller blocks can know a part of a new block. It costs up to 8
// bytes more for each block that is partial.
func WithTails(of TailOf) KnownOption { return func(k *KnownPass) { k.tail = of } }

// WithTemplate says what of a prompt is a chat template's. The tokens before the content are
// known from the beginning, and those after it only to the same prompt again: any other
// prompt has its own tokens in their place. It costs some 40 bytes for each block that a
// prompt ends with.
func WithTemplate(of TemplateOf) KnownOption {
	return func(k *KnownPass) { k.template, k.sent = of, map[uint64]sentPart{} }
}

// NewKnownPass begins a pass over rows with blocks of blockSize tokens. With
// generated, the blocks of outputs are known as well: the server keeps the KV
// it generated, and is sent its own replies.
func NewKnownPass(blockSize int, generated bool, opts ...KnownOption) *KnownPass {
	k := &KnownPass{size: blockSize, generated: generated}
	for _, o := range opts {
		o(k)
	}
	return k
}

// Touch takes the next row and returns its known tokens, counted in blocks of
// the trace. Where two prompts part inside a block, its tokens are not known,
// except for those of a known tail.
func (k *KnownPass) Touch(r *trace.Request) (knownTokens int32) {
	k.fresh = k.fresh[:0]
	hit, leading, tail := 0, true, int32(0)
	for _, b := range r.Blocks {
		known := k.touch(b)
		if leading && known {
			hit++
			continue
		}
		if t := k.touchTails(b, known); leading {
			tail = t
		}
		leading = false
	}
	if k.generated {
		for _, b := range r.OutputBlocks {
			k.touchTails(b, k.touch(b))
		}
	}
	knownTokens = min(hitTokens(hit, r, k.size)+tail, max(r.InputTokens, 0))
	if k.template != nil {
		knownTokens = k.touchTemplate(r, hit, knownTokens)
	}
	for _, b := range k.fresh {
		k.seen.put(b)
	}
	return knownTokens
}

// touch tells whether a block is known from earlier rows; from the next row on it is.
func (k *KnownPass) touch(block uint64) bool {
	if k.seen.has(block) {
		return true
	}
	k.fresh = append(k.fresh, block)
	return false
}

// touchTemplate takes from the known tokens of a row, of which the first hit blocks are
// whole, what no prompt had for its template, and notes what this one has.
func (k *KnownPass) touchTemplate(r *trace.Request, hit int, known int32) int32 {
	lead, after := k.template(r)
	content := r.InputTokens - after
	last := len(r.Blocks) - 1
	if same := last >= 0 && hit > last && k.sent[r.Blocks[last]].ends; !same {
		missing := int32(0)
		for i := 0; i < hit && missing == 0; i++ {
			if missing = k.sent[r.Blocks[i]].missing; missing > 0 {
				known = min(known, int32((i+1)*k.size)) - missing
			}
		}
		if tail := known - int32(hit*k.size); hit <= last && missing == 0 && tail > 0 {
			partial, tokens := k.tail(r.Blocks[hit])
			for tokens > tail {
				partial, tokens = k.tail(partial)
			}
			known -= k.sent[partial].missing
		}
		known = min(max(min(known, content), lead), max(r.InputTokens, 0))
	}
	if after == 0 && len(k.sent) == 0 {
		return known
	}
	for i, block := range r.Blocks {
		from := int32(i * k.size)
		had := max(content-from, 0)
		k.note(block, max(min(r.InputTokens-from, int32(k.size))-had, 0), i == last)
		if k.tail == nil {
			continue
		}
		for partial, tokens := k.tail(block); tokens > 0; partial, tokens = k.tail(partial) {
			k.note(partial, max(tokens-had, 0), false)
		}
	}
	return known
}

// note takes what a prompt had of a block.
func (k *KnownPass) note(block uint64, missing int32, ends bool) {
	part := k.sent[block]
	if k.seen.has(block) {
		missing = min(missing, part.missing)
	}
	if part = (sentPart{missing, ends || part.ends}); part == (sentPart{}) {
		delete(k.sent, block)
	} else {
		k.sent[block] = part
	}
}

// touchTails makes the partial blocks known that block completes, one within the
// other, and returns how many of its tokens were known by them. With a block its
// tails are known as well, since it begins with them.
func (k *KnownPass) touchTails(block uint64, known bool) (tokens int32) {
	for !known && k.tail != nil {
		if block, tokens = k.tail(block); tokens == 0 {
			break
		}
		known = k.touch(block)
	}
	return tokens
}

// hitTokens is the tokens in the first hit blocks of r.
func hitTokens(hit int, r *trace.Request, size int) int32 {
	return int32(block.Known(hit, int(r.InputTokens), size))
}

// A ServerReuse adds up the hit ratio by token that a server with its own block
// size can reach: it takes full blocks of that size only, and must compute at
// least the last token of a prompt.
type ServerReuse struct {
	size                     int
	prompts, reach, reusable int64
}

// NewServerReuse makes the sum for a server with blocks of blockSize tokens.
func NewServerReuse(blockSize int) *ServerReuse { return &ServerReuse{size: blockSize} }

// Add counts a row of prompt tokens, the first known of which earlier rows carried.
func (s *ServerReuse) Add(known, prompt int32) {
	s.prompts += int64(max(prompt, 0))
	s.reach += int64(max(min(known, prompt-1), 0))
	s.reusable += int64(block.Reusable(int(known), int(prompt), s.size))
}

// ServerReuseSummary is what a [ServerReuse] found.
type ServerReuseSummary struct {
	BlockSizeTokens int `json:"block_size_tokens"`
	// HitRatio is the tokens that the server can reuse over all prompt tokens.
	HitRatio *float64 `json:"hit_ratio_by_token"`
	// RoundingLoss is the share of all prompt tokens that are known, and not the
	// last of a prompt, and are lost by rounding down to the server's blocks.
	RoundingLoss *float64 `json:"rounding_loss_by_token"`
}

// Summary returns the sums so far as ratios.
func (s *ServerReuse) Summary() ServerReuseSummary {
	return ServerReuseSummary{BlockSizeTokens: s.size,
		HitRatio: share(s.reusable, s.prompts), RoundingLoss: share(s.reach-s.reusable, s.prompts)}
}
