package anonymize

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
)

// Where a record has the text of its prompt and the server's count of its tokens, the
// count is the length, and the text tells only what prompts share. The text seldom has
// that many tokens: the server's template adds some, its tokenizer may be another one,
// and it may have left part of the history out. So the chain of the text is fitted to
// the count: each token stands for as many as the ratio of the model says, which the
// first records tell, and the rest is filled up or cut.

// Lengths in [Policy].
const (
	LengthsUsage = "usage" // the count of the source
	LengthsText  = "text"  // that of the text, but where the text is not what was sent
)

// A ratio is how many tokens of the server a token of the text stands for; 0 is 1.
type ratio float64

// stretch appends each token as often as the ratio says. The beginning of a sequence
// gives the beginning of what it becomes: at is the place of the first token.
func (r ratio) stretch(dst, tokens []uint32, at int) []uint32 {
	for i, t := range tokens {
		for range int(float64(at+i+1)*float64(r)) - int(float64(at+i)*float64(r)) {
			dst = append(dst, t)
		}
	}
	return dst
}

// fit returns the blocks of exactly n tokens, from the chain of the text. What the text
// lacks of them, such as the marks of a template that is not known, is filled with the
// beginning of the reply, since the next turn of the conversation has that there, and
// then with tokens that no other text has.
func (e *encoder) fit(n int, reply []uint32) []block.ID {
	c, size := &e.chain, e.p.blockSize()
	text := e.cutter.Append(append(make([]block.ID, 0, block.Count(n, size)+1), c.full...))
	missing := n - len(c.full)*size - e.cutter.Len()
	if missing == 0 {
		return text
	}
	if missing > 0 && len(reply) > 0 {
		reply = reply[:min(missing, len(reply))]
		e.cutter.Write(reply)
		text = e.cutter.Append(text[:len(c.full)])
		if missing -= len(reply); missing == 0 {
			e.rewind()
			return text
		}
	}
	fill := make([]uint32, max(missing, n%size))
	end := c.root
	if len(text) > 0 {
		end = text[len(text)-1]
	}
	for i := range fill {
		fill[i] = binary.LittleEndian.Uint32(end[i%4*4:]) ^ uint32(n)
	}
	if missing > 0 {
		text = text[:len(c.full)]
		e.cutter.Write(fill[:missing])
	} else {
		text = text[:block.Full(n, size)]
		e.cutter.Reset(c.root)
		if len(text) > 0 {
			e.cutter.Reset(text[len(text)-1])
		}
		e.cutter.Write(fill[:n%size])
	}
	text = e.cutter.Append(text)
	e.rewind()
	return text
}

// rewind leaves the prompt in the cutter, and nothing after it.
func (e *encoder) rewind() {
	_, rest := e.chain.lastCut()
	e.resume()
	e.cutter.Write(rest)
}

// A sourceSurvey is what the first records of a source tell of all.
type sourceSurvey struct {
	fits    map[string]fit      // by model, where counts of text and source differ
	markers map[string]struct{} // texts that stand in place of others, and look like no marker

	// heads are how many tokens of the text all prompts of a model have beside their
	// messages, where these are hashes: the definitions of tools and the template, which no
	// message holds. There is none where the rest differs from prompt to prompt.
	heads map[string]int
}

const (
	surveyText  = 512 << 10 // bytes of text that are counted for it
	leastPairs  = 8         // records of a model with both counts, for a ratio
	leastSpread = 128       // tokens by which the lengths of its texts differ
	exactSpread = 2         // tokens by which prompts differ beside text and marks of messages
	markerBytes = 40        // of a text that may be a marker
	markerShare = 0.2       // of the records
	markerApart = 64        // tokens by which the counts of equal texts differ

	tokenizerRatio = 2.0  // of the counts of two tokenizers, at the most
	hashedRatio    = 64.0 // of a count and a guess of it
	headSpread     = 1.5  // between what most and least of the prompts have beside messages
)

// survey looks at the first records, unless nothing may be learnt across users. It counts their
// text, so that the encoder is of no use after it.
func (e *encoder) survey(entries []trace.Entry) (s sourceSurvey) {
	if e.hasher == nil || e.p.Lengths == LengthsText || e.p.apart() {
		return s
	}
	s.markers = unnamedMarkers(entries)
	e.source = s
	counted, hashed := map[string][]twoCounts{}, map[string]bool{}
	bytes := 0
	for i := range entries {
		en := &entries[i]
		for k := range en.Messages {
			bytes += en.Messages[k].Content.Len()
		}
		if bytes > surveyText {
			break
		}
		var x encoded
		if en.InputTokens == nil || e.encode(en, &x) != nil || !x.text || x.inputGap != noGap {
			continue // what is wrong with an entry is said when it is its turn
		}
		model := en.Model.Reveal()
		hashed[model] = hashed[model] || x.hashed
		counted[model] = append(counted[model], x.twoCounts())
	}
	s.fits, s.heads = map[string]fit{}, map[string]int{}
	for model, of := range counted {
		if !hashed[model] {
			if f := fitOf(of, e.unknownTemplate()); f != (fit{}) {
				s.fits[strings.Clone(model)] = f
			}
			continue
		}
		r := ratioOf(of, hashedRatio)
		if r == 0 {
			continue
		}
		s.fits[strings.Clone(model)] = fit{ratio: r}
		least, greatest := math.Inf(1), 0.
		for _, c := range of {
			beside := float64(c.source) - float64(c.text)*float64(r)
			least, greatest = min(least, beside), max(greatest, beside)
		}
		if least > templateTokens && greatest < headSpread*least {
			s.heads[strings.Clone(model)] = int(least / float64(r))
		}
	}
	return s
}

// twoCounts are the tokens of a prompt by its text and by its source, and its messages.
type twoCounts struct{ text, source, messages int32 }

func (x *encoded) twoCounts() twoCounts { return twoCounts{x.counted, *x.sourceInput, x.messages} }

// A fit is what the counts of a source have beside those of its text: so many tokens
// before each message, or so many for a token of the text.
type fit struct {
	marks int
	ratio ratio
}

// fitOf finds what explains the counts of a model. The zero fit says that nothing does, or
// that nothing is to be explained. With unknown, a template that is not known is looked for.
func fitOf(of []twoCounts, unknown bool) fit {
	if len(of) < leastPairs {
		return fit{}
	}
	beside := make([]int32, len(of))
	spread := func(marks int32) int32 { // of what is left, but for a tenth that is odd
		for i, c := range of {
			beside[i] = c.source - c.text - marks*c.messages
		}
		slices.Sort(beside)
		return beside[len(beside)-1-len(beside)/20] - beside[len(beside)/20]
	}
	if unknown && spread(0) > exactSpread {
		for marks := range int32(messageTokens) {
			if spread(marks+1) <= exactSpread {
				return fit{marks: int(marks) + 1}
			}
		}
	}
	return fit{ratio: ratioOf(of, tokenizerRatio)}
}

// ratioOf is by how much the count of the source grows with that of the text: from the
// means of the shortest third and the longest. What a template adds to each prompt is
// no part of it. It is 0 where little is known or the counts grow alike.
func ratioOf(of []twoCounts, most float64) ratio {
	if len(of) < leastPairs {
		return 0
	}
	slices.SortFunc(of, func(a, b twoCounts) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.source, b.source))
	})
	third := len(of) / 3
	var text, said float64
	for i := range third {
		low, high := of[i], of[len(of)-1-i]
		text, said = text+float64(high.text-low.text), said+float64(high.source-low.source)
	}
	r := said / max(text, 1)
	if text < leastSpread*float64(third) || r > 0.98 && r < 1.02 {
		return 0
	}
	return ratio(min(max(r, 1/most), most))
}

// unnamedMarkers finds short texts that are all that users and models say in many
// records, whose counts differ though the text does not.
func unnamedMarkers(entries []trace.Entry) map[string]struct{} {
	type group struct{ n, least, most int32 }
	groups := map[string]*group{}
	all := int32(0)
	for i := range entries {
		en := &entries[i]
		if en.InputTokens == nil || len(en.Messages) == 0 {
			continue
		}
		all++
		var said string
		key := fmt.Sprintln(len(en.Messages), en.Tools.Len())
		same := true
		for k := range en.Messages {
			text := strings.TrimSpace(en.Messages[k].Content.Reveal())
			if en.Messages[k].Role == trace.System {
				key += text + "\n"
				continue
			}
			same = same && (said == "" || said == text) && text != "" &&
				(len(text) <= markerBytes || en.Messages[k].Redacted()) && en.Messages[k].Calls.Len() == 0
			said = text
		}
		if key = said + "\n" + key; !same || said == "" {
			continue
		}
		g := groups[key]
		if g == nil {
			g = &group{least: *en.InputTokens}
			groups[key] = g
		}
		g.n, g.least, g.most = g.n+1, min(g.least, *en.InputTokens), max(g.most, *en.InputTokens)
	}
	markers := map[string]struct{}{}
	for key, g := range groups {
		if g.n > 2 && g.most-g.least > markerApart && float64(g.n) >= markerShare*float64(all) {
			said, _, _ := strings.Cut(key, "\n")
			markers[strings.Clone(said)] = struct{}{}
		}
	}
	return markers
}

// A lengthsError says that the text of a source and its counts of tokens contradict each
// other by more than templates and tokenizers explain, so that somebody must say which
// to trust.
type lengthsError struct {
	Models  []ModelCount // whose counts are apart
	Unnamed int64        // requests with one text and different counts
	Of      int64        // requests
}

// Error names the models as rows would.
func (e *lengthsError) Error() string {
	var b strings.Builder
	for _, m := range e.Models {
		name := m.Model
		switch {
		case m.Others:
			name = "all other models"
		case name == "":
			name = "requests without a model"
		}
		requests := "requests"
		if m.Requests == 1 {
			requests = "request"
		}
		p, _ := m.Percent()
		fmt.Fprintf(&b, "%s: the text of %d %s counts %d input tokens and the source says %d (%+.0f %%)\n", name,
			m.Requests, requests, m.Counted, m.Source, p)
	}
	if e.Unnamed > 0 {
		fmt.Fprintf(&b, "%d of %d requests hold one short text, and the source counts another length for each: it "+
			"replaced the text that was sent\n", e.Unnamed, e.Of)
	}
	if len(e.Models) > 0 {
		b.WriteString("Neither a chat template nor a tokenizer explains that. ")
	}
	b.WriteString("To take the counts of the source, say --lengths usage")
	if len(e.Models) > 0 {
		b.WriteString("; to take the counts of the text, --lengths text, with the server's --tokenizer and --template")
	}
	return b.String()
}

// What a template may add to a prompt, in tokens.
const (
	templateTokens = 64 // around all messages
	messageTokens  = 16 // around each
)

// maxRatio is how far counts of two tokenizers are apart at the most.
const maxRatio = 1.2

// checkLengths stops a run whose source contradicts itself, unless the policy says
// which count to trust, or nothing may depend on all users together.
func (c *collector) checkLengths(p *Policy) error {
	if p.Lengths != "" || p.apart() {
		return nil
	}
	apart := map[string]*ModelCount{}
	for name, m := range c.models {
		// More than the template and the tokenizer can explain.
		if text, said, template := float64(m.Counted), float64(m.Source),
			float64(m.template); text*maxRatio < said-template || text > said*maxRatio+template {
			apart[name] = m
		}
	}
	e := &lengthsError{Models: (&finisher{p: p}).modelCounts(apart), Of: c.totals.Requests}
	if n := c.totals.InputGaps.Unnamed; n*100 > c.totals.Requests {
		e.Unnamed = n
	}
	if len(e.Models) == 0 && e.Unnamed == 0 {
		return nil
	}
	return e
}
