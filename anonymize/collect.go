package anonymize

import (
	"encoding/binary"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/breaker"
	"reprise/trace/profile"
)

// A collector numbers what is unique in the order of the source and hands rows
// to the sorter. Its numbers are provisional: they hide no order yet.
//
// While rows are with the sorter a block is known by its provisional number. Once there were too
// many to number it is its key, see [keyWriter].
type collector struct {
	sorter     *trace.Sorter
	blocks     *block.IDs
	domains    *block.Dense[[3]string]
	lastDomain [3]string
	domain     uint64 // its number plus one; 0 before any
	sessions   *block.Dense[string]
	answers    answerChains
	users      *block.Dense[string]
	totals     Totals
	models     map[string]*ModelCount // by name as the source spells it
	refs       int64                  // blocks in all rows
	keyed      bool                   // blocks get no more numbers
	// a row has no blocks and tells of its prefix: how much was cached, or what it begins with
	prefixAlone bool
	code        keyWriter          // of the list at hand
	in, out     []uint64           // words of the row at hand
	ids         []uint64           // and its numbers
	seen        *profile.Annotator // what is known of rows so far; nil once they are out of order or without numbers
	sourceBlock int                // tokens in a block that the source hashed
	noTokens    bool               // of prompts, where the rows were recorded earlier
	breakers    breakerFinder
	recorded    *breaker.Set     // that a recorder found; nil for none
	prompts     *templateCounter // nil where no templates are kept
	raw         *rawKeeper       // of text that is kept; nil for none
}

func newCollector(p *Policy) *collector {
	return &collector{
		sorter: trace.NewSorter(p.SpillDir), blocks: block.NewIDs(p.limits.distinct, p.limits.pages),
		domains:  block.NewDense[[3]string](),
		sessions: block.NewDense[string](), users: block.NewDense[string](),
		totals: Totals{Templates: make(map[string]int64)}, models: make(map[string]*ModelCount),
		sourceBlock: p.blockSize(),
		seen:        profile.NewAnnotator(p.blockSize(), profile.Options{}),
	}
}

// addRow takes the next row; tokens are those of its job.
func (c *collector) addRow(x *encoded, tokens []uint32) error {
	r := &x.row
	if c.prompts != nil {
		c.prompts.add(x.system, x.user, x.session)
	}
	if c.raw != nil {
		if err := c.raw.addText(x.raw); err != nil {
			return err
		}
	}
	if !c.noTokens {
		c.breakers.addPrompt(x, tokens)
	}
	if x.session != "" {
		r.Session = trace.Ptr(int64(c.sessions.ID(x.session)))
	} else if n := c.answers.session(x); n != 0 {
		r.Session = trace.Ptr(n)
	}
	if x.user != "" {
		r.User = trace.Ptr(int64(c.users.ID(x.user)))
	}
	c.in, c.ids = c.in[:0], c.ids[:0]
	if x.text || x.joined {
		c.in = c.hashed(c.in, x.blocks)
	} else {
		// The source hashed these ids itself. They are made unique to their cache
		// domain, and cannot collide with the chained hashes of text but by a 64-bit
		// accident.
		c.code = keyWriter{}
		if len(x.source) > 0 {
			if domain := [3]string{r.Model, r.Adapter, x.salt}; c.domain == 0 || domain != c.lastDomain {
				c.lastDomain, c.domain = domain, c.domains.ID(domain)+1
			}
			last := len(x.source) - 1
			for _, id := range x.source[:last] {
				c.in = c.word(c.in, c.domain-1, id, 0)
			}
			c.in = c.word(c.in, c.domain-1, x.source[last], x.rest(c.sourceBlock))
		}
	}
	prompt := c.ids
	r.Blocks = c.in
	r.Category = x.cluster // until it is annotated
	c.prefixAlone = c.prefixAlone ||
		len(c.in) == 0 && (r.CachedTokens != nil && *r.CachedTokens > 0 || r.Category != "")
	if x.out != nil {
		c.out = c.hashed(c.out[:0], x.out)
		r.OutputBlocks = c.out
	}
	c.refs += int64(len(x.blocks) + len(x.source) + len(x.out))
	c.count(x)
	if err := c.sorter.Add(r); err != nil {
		return err
	}
	c.see(r, prompt)
	return nil
}

// see tells of the row at hand, which is with the sorter, and the numbers of its blocks.
func (c *collector) see(r *trace.Request, prompt []uint64) {
	if c.seen == nil {
		return
	}
	if c.keyed || c.sorter.Disordered() {
		c.seen = nil
		return
	}
	if c.totals.Sessions > 0 {
		c.seen.KeepSessions()
	}
	r.Blocks, r.Session = prompt, nil // of an answer whose chain has no other
	c.seen.Count(r)
}

func (c *collector) hashed(dst []uint64, ids []block.ID) []uint64 {
	c.code = keyWriter{}
	for _, id := range ids {
		dst = c.word(dst, binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]), 0)
	}
	return dst
}

// word appends a block to the others of its list, or a part of it of so many tokens.
func (c *collector) word(dst []uint64, hi, lo uint64, part uint16) []uint64 {
	if !c.keyed {
		if n, ok := c.blocks.Part(hi, lo, part); ok {
			c.ids = append(c.ids, uint64(n))
			return c.code.number(dst, n)
		}
		c.keyed = true
		c.blocks.Freeze()
	}
	return c.code.append(dst, newKey(hi|uint64(part)<<32, lo))
}

// otherModels is a name that no model has.
const otherModels = "\x00"

func (c *collector) count(x *encoded) {
	t := &c.totals
	t.Requests++
	if x.row.Status == trace.StatusFailed {
		t.Failed++
	}
	t.InputTokens += int64(x.row.InputTokens)
	t.OutputTokens += int64(x.row.OutputOr(0))
	t.Blocks, t.Sessions, t.Users = c.blocks.Len(), c.sessions.Len()+c.answers.chains, c.users.Len()
	t.Unchained = c.answers.lost
	t.InputGaps.add(x.inputGap)
	if x.row.OutputTokens != nil {
		t.OutputGaps.add(x.outputGap)
	} else if x.row.Status != trace.StatusFailed {
		t.UnknownOutputs++
	}
	if x.partly {
		t.PartlyRedacted++
	}
	if x.hashed && len(x.blocks) > 0 {
		t.MessageHashes++
	}
	if x.tokenised {
		t.Texts++
	}
	if x.text && x.inputGap != shortGap && !x.hashed {
		t.TextInput += int64(x.counted)
		if x.sourceInput != nil {
			t.TextInputSource += int64(*x.sourceInput)
			t.TextInputComparable += int64(x.counted)
			model := x.row.Model
			if c.models[model] == nil && len(c.models) >= maxModels {
				model = otherModels
			}
			m := c.models[model]
			if m == nil {
				m = &ModelCount{Others: model == otherModels}
				c.models[strings.Clone(model)] = m
			}
			if c.noTokens && m.Template == "" { // nor the name by which the template was chosen
				m.Template = x.template
			}
			m.Requests++
			m.Counted += int64(x.counted)
			m.Source += int64(*x.sourceInput)
			m.template += templateTokens + messageTokens*int64(x.messages)
		}
		if x.template != "" {
			t.Templates[x.template]++
		}
		if x.refused {
			t.Refused++
		}
	}
}

// A breakerFinder takes prompts in the order of the source, whoever encoded them.
type breakerFinder struct {
	find    *breaker.Finder // nil until there is text
	numbers breaker.Numbers
	tokens  []uint32 // of the last prompt, numbered
	n       int64
}

func (b *breakerFinder) addPrompt(x *encoded, tokens []uint32) {
	source := b.n
	b.n++
	if !x.text {
		return
	}
	if b.find == nil {
		b.find = breaker.NewFinder()
	}
	b.tokens = b.numbers.Append(b.tokens[:x.prompt.kept], tokens[x.prompt.from:x.prompt.to])
	if x.row.Status == trace.StatusFailed {
		return // it is no load
	}
	if x.inputGap == shortGap {
		return // what it says is not how the prompt began
	}
	b.find.Add(&breaker.Prompt{Domain: x.prompt.root, Model: x.row.Model, Adapter: x.row.Adapter, Tokens: b.tokens,
		Length: x.counted, ArrivalNS: x.row.ArrivalNS, Source: source})
}

func (b *breakerFinder) report() *breaker.Set {
	if b.find == nil {
		return nil
	}
	return b.find.Report()
}
