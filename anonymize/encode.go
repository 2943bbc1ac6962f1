package anonymize

import (
	"errors"
	"slices"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/token"
)

// An encoded entry is a row whose block ids are still keyed hashes and whose
// names are still the source's. It holds no text, unless
// that is to be kept.
type encoded struct {
	row         trace.Request // ArrivalNS is Unix time
	user        string
	session     string
	response    string // id of the answer
	previous    string // of the answer that the request goes on from
	salt        string
	source      []uint64 // ids that the source hashed itself
	blocks, out []block.ID
	text        bool
	joined      bool   // blocks are ids of 128 bits, whoever hashed them
	refused     bool   // the chat template refuses the chat
	template    string // that the chat was rendered with; empty of what is no chat
	tokenised   bool   // a length or blocks of the row are the tokenizer's
	partly      bool   // some messages are redacted, and the source does not count
	bySource    bool   // the length of the input is that of the source, beside a text
	hashed      bool   // some messages are known by their length and hash
	messages    int32  // of the text
	counted     int32  // input tokens of the text, where that was tokenised
	sourceInput *int32 // as the source counted, when the text was counted too
	inputGap    gap    // between the text of the prompt and its length
	outputGap   gap    // the same of the reply
	prompt      promptPart
	system      []trace.Text // messages that it begins with, where templates are kept
	cluster     string       // of prompts that begin alike, where there are no blocks: see [encoder.nameTrunk]
	raw         []byte       // its text, encoded, where that is kept: see [Policy].Raw
}

// rest is how many tokens are in the last block that the source hashed, where these are fewer than
// the size of a block, and else 0. It is a part of what names a block: the begin of a block is another
// one than the whole, whatever ids a source gives the two.
func (x *encoded) rest(size int) uint16 {
	n := int64(x.row.InputTokens) - int64(len(x.source)-1)*int64(size)
	if n <= 0 || n >= int64(size) {
		return 0
	}
	return uint16(n)
}

// An encoder turns entries into rows. Each worker has its own.
type encoder struct {
	p      *Policy
	key    block.Key
	hasher *block.Hasher // nil without a tokenizer
	cutter *block.Cutter
	chain  chain
	chat   token.Chat              // of the current entry
	render *token.Renderer         // nil without a tokenizer
	plain  *token.Renderer         // for chats that the template refuses, and for what is no chat
	parts  parts                   // of the prompts of the job at hand
	marked map[int]*token.Renderer // by the tokens before each message
	source sourceSurvey
	ratio  ratio          // of the model at hand
	wide   []uint32       // tokens that were stretched
	heads  map[string]int // tokens that prompts of a cluster and a model share
}

func newEncoder(p *Policy, key block.Key) (*encoder, error) {
	e := &encoder{p: p, key: key, marked: make(map[int]*token.Renderer)}
	if p.Tokenizer == nil {
		return e, nil
	}
	var err error
	e.hasher, err = block.NewHasher(key, p.Tokenizer.Name(), p.blockSize())
	e.render, e.plain = p.Template.Renderer(p.Tokenizer), token.Template{}.Renderer(p.Tokenizer)
	return e, err
}

// unknownTemplate reports whether chats are rendered as none.
func (e *encoder) unknownTemplate() bool { return e.render.Name("") == "none" }

var (
	errNoTime   = errors.New("it has no arrival time, while others have one")
	errFarTime  = errors.New("its time is outside the years 1970 to 2200")
	errNoLength = errors.New("it has neither text nor token counts")
	errNoTok    = errors.New("it has text, but no tokenizer was chosen")
	errTwoCuts  = errors.New("it has both text and the source's own block ids")
)

// encode turns one entry into a row. It overwrites x.
func (e *encoder) encode(en *trace.Entry, x *encoded) error {
	*x = encoded{user: en.User.Reveal(), session: en.Session.Reveal(), salt: en.Salt.Reveal(),
		response: en.Response.Reveal(), previous: en.Previous.Reveal()}
	at, err := e.arrival(en.Time)
	if err != nil {
		return err
	}
	x.row = trace.Request{
		ArrivalNS: at, Thread: en.Thread, Turn: en.Turn, Parents: en.Parents,
		ThinkNS: nanoseconds(en.Think), ToolNS: nanoseconds(en.Tool),
		Model: en.Model.Reveal(), Adapter: en.Adapter.Reveal(),
		Class: optional(en.Class), Replica: optional(en.Replica),
		Kind: trace.ClosedKind(en.Kind), Status: trace.ClosedStatus(en.Status),
		FinishReason:    trace.ClosedFinish(en.FinishReason),
		ReasoningTokens: en.Reasoning, CachedTokens: en.Cached, ImageTokens: en.ImageTokens, Images: en.Images,
		MaxTokens: en.MaxTokens, Temperature: en.Temperature, Stream: en.Stream,
		TTFTNS: nanoseconds(en.TTFT), E2ENS: nanoseconds(en.E2E),
	}
	if x.row.Kind == "embedding" {
		x.row.OutputTokens = new(int32) // vectors are no tokens
	}
	if e.p.KTemplate > 0 {
		x.system = systemPrompt(en.Messages)
	}
	if e.p.Raw != nil {
		x.raw = appendText(nil, en)
	}
	if len(en.Messages) > 0 {
		err := e.encodeText(en, x)
		x.row.LengthSource = trace.LengthUsage
		if x.text && !x.bySource {
			x.row.LengthSource = trace.LengthText
		}
		switch {
		case len(x.blocks) > 0 && x.hashed:
			x.row.ReuseSource = trace.ReuseHashes
		case len(x.blocks) > 0:
			x.row.ReuseSource = trace.ReuseText
		case err == nil:
			e.nameTrunk(en, x)
		}
		return err
	}
	if en.InputTokens == nil {
		return errNoLength
	}
	x.row.LengthSource = trace.LengthUsage
	if len(en.PromptIDs) > 0 && e.hasher != nil {
		e.cutIDs(en, x)
	}
	if len(en.SourceBlocks) > 0 {
		x.row.ReuseSource = trace.ReuseHashes
	}
	x.row.InputTokens = *en.InputTokens
	if en.OutputTokens != nil {
		x.row.OutputTokens = en.OutputTokens
	}
	x.source = en.SourceBlocks
	e.nameTrunk(en, x)
	return nil
}

// arrival is that of a row, in Unix time.
func (e *encoder) arrival(at time.Time) (int64, error) {
	switch {
	case at.IsZero():
		return 0, errNoTime
	case trace.FarTime(at.UTC()):
		return 0, errFarTime
	}
	if c := e.p.Capture; c.Declared() {
		if why := c.Outside(at); why != "" {
			return 0, errors.New(why)
		}
	}
	return at.UnixNano(), nil
}

// cutIDs cuts a prompt of token ids. It makes no blocks where the server counts another
// length: that it put something before the ids cannot be excluded.
func (e *encoder) cutIDs(en *trace.Entry, x *encoded) {
	if int(*en.InputTokens) != len(en.PromptIDs) {
		return
	}
	c := e.hasher.Cutter(e.hasher.Root(x.row.Model, x.row.Adapter, x.salt))
	c.Write(en.PromptIDs)
	x.blocks, x.row.ReuseSource = c.Append(nil), trace.ReuseText
}

// encodeText counts and cuts the messages and the reply. The lengths are the source's
// where it counts, since it has seen what the text does not show: the template, tools,
// reasoning. The blocks are those of the text, fitted to the length, where the text is
// what was sent: see [gap].
func (e *encoder) encodeText(en *trace.Entry, x *encoded) error {
	switch {
	case e.hasher == nil:
		return errNoTok
	case len(en.SourceBlocks) > 0:
		return errTwoCuts
	}
	render, chat := e.render, true
	if k := x.row.Kind; k == "completion" || k == "embedding" {
		render, chat = e.plain, false // a server takes these prompts as they are
	}
	if x.inputGap = promptGap(en, e.source.markers); x.inputGap != noGap {
		x.row.InputTokens, x.system = *en.InputTokens, nil
		e.encodeReply(en, x, render)
		return nil
	}
	of := e.source.fits[en.Model.Reveal()]
	if e.ratio = of.ratio; !chat || en.InputTokens == nil {
		of.marks = 0
	}
	if of.marks > 0 {
		if e.marked[of.marks] == nil {
			e.marked[of.marks] = token.Marked(of.marks).Renderer(e.p.Tokenizer)
		}
		render = e.marked[of.marks]
	}
	root := e.hasher.Root(x.row.Model, x.row.Adapter, x.salt)
	if e.cutter == nil {
		e.cutter = e.hasher.Cutter(root)
	}
	c := &e.chat
	c.Tools, c.Model, c.Time, c.Messages = en.Tools.Reveal(), en.Model.Reveal(), en.Time, c.Messages[:0]
	for i := range en.Messages {
		m := &en.Messages[i]
		content := m.Content.Reveal()
		if en.InputTokens != nil && m.Redacted() {
			content, x.hashed = opaqueText(m), true
		}
		c.Messages = append(c.Messages, token.Message{Role: m.Role.String(), Content: content,
			Calls: m.Calls.Reveal(), CallID: m.CallID.Reveal(), Name: m.Name.Reveal()})
	}
	if n := e.source.heads[c.Model]; n > 0 && x.hashed {
		c.Messages = slices.Insert(c.Messages, 0, token.Message{Role: "system", Content: strings.Repeat(" x", n)})
	}
	pieces, err := render.Render(c)
	if errors.Is(err, token.ErrRefused) { // never by plain
		x.refused, render = true, e.plain
		pieces, err = render.Render(c)
	}
	if err != nil {
		return err
	}
	e.cutPrompt(root, pieces, en.Messages)
	x.prompt = e.parts.addPrompt(&e.chain)
	x.text, x.sourceInput, x.messages = true, en.InputTokens, int32(len(en.Messages))
	if chat {
		x.template = render.Name(c.Model)
	}
	x.counted = int32(e.chain.counted() - of.marks*(len(en.Messages)+1))
	// the cutter knows of no full blocks before
	length := len(e.chain.full)*e.p.blockSize() + e.cutter.Len()
	if !x.hashed && en.InputTokens != nil && tooShort(int(x.counted), int(*en.InputTokens)) {
		// the lengths of hashed ones are estimates
		x.inputGap = shortGap
	}
	switch {
	case x.inputGap != noGap || en.InputTokens != nil && (e.p.Lengths != LengthsText || en.InputGiven):
		length, x.bySource = int(*en.InputTokens), true
	default:
		x.tokenised, x.partly = true, en.InputTokens == nil &&
			slices.ContainsFunc(en.Messages, func(m trace.Message) bool { return m.Redacted() })
	}
	x.row.InputTokens, x.tokenised = int32(length), x.tokenised || x.inputGap == noGap
	e.encodeReply(en, x, render)
	return nil
}

// encodeReply counts the reply and, where the prompt is in the cutter, cuts it
// after that.
func (e *encoder) encodeReply(en *trace.Entry, x *encoded, render *token.Renderer) {
	if x.outputGap = replyGap(en); en.Reply != nil && x.outputGap == noGap {
		c := &e.chain
		pieces := render.Reply(en.Model.Reveal(), en.Reply.Reveal(), en.ReplyCalls.Reveal())
		c.reply, c.tokens = "", token.AppendPieces(c.tokens[:0], e.p.Tokenizer, pieces, false)
		if len(pieces) == 1 && pieces[0].Alone { // history may have it again
			c.reply = pieces[0].Text
		}
		x.row.OutputTokens = trace.Ptr(int32(len(c.tokens)))
		x.tokenised = x.tokenised || en.OutputTokens == nil
		if tooShort(len(c.tokens), spokenTokens(en)) {
			x.outputGap = shortGap
		}
		if x.text && x.inputGap == noGap && x.outputGap == noGap {
			reply := e.stretched(c.tokens, int(x.counted))
			x.blocks = e.fit(int(x.row.InputTokens), reply)
			e.cutter.Write(reply)
			x.out = e.continued(int(x.row.InputTokens))
		}
	}
	if x.text && x.inputGap == noGap && x.blocks == nil {
		x.blocks = e.fit(int(x.row.InputTokens), nil)
	}
	switch {
	case en.OutputTokens != nil:
		x.row.OutputTokens = en.OutputTokens
	case x.outputGap != noGap:
		x.row.OutputTokens = nil // what stands in the log is not the answer
	}
}

// stretched are tokens of the text as the ratio has them; at is the place of the first.
func (e *encoder) stretched(tokens []uint32, at int) []uint32 {
	if e.ratio == 0 {
		return tokens
	}
	e.wide = e.ratio.stretch(e.wide[:0], tokens, at)
	return e.wide
}

// continued are the blocks of the chain and of the reply in the cutter from the one on
// that completes a prompt of n tokens; nil for none.
func (e *encoder) continued(n int) []block.ID {
	full := e.chain.full
	from := block.Full(n, e.p.blockSize())
	all := e.cutter.Append(nil)
	switch {
	case from < len(full):
		return append(slices.Clone(full[from:]), all...)
	case from-len(full) >= len(all):
		return nil
	}
	return all[from-len(full):]
}

func nanoseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return trace.Ptr(int64(*d))
}

// cutPrompt leaves in the cutter what follows the full blocks of the chain, which
// then has all pieces.
func (e *encoder) cutPrompt(root block.ID, pieces []token.Piece, messages []trace.Message) {
	c := &e.chain
	size := e.p.blockSize()
	for i := c.keepCommon(root, e.ratio, pieces); i < len(pieces); {
		full, rest := c.lastCut()
		tokens := append(c.scratch[:0], rest...)
		enough, at, text := len(tokens)+minCut, 0, c.counted()
		for i < len(pieces) && len(tokens) < enough {
			start := i
			for i++; i < len(pieces) && !pieces[i].Starts(); i++ {
			}
			before := len(tokens)
			tokens = e.tokens(tokens, pieces[start:i], start == 0)
			c.spoken.note(pieces[start:i], tokens[before:], messages)
			at, text = text, text+len(tokens)-before
			if e.ratio != 0 {
				tokens = append(tokens[:before], e.stretched(tokens[before:], at)...)
			}
		}
		e.resume()
		e.cutter.Write(tokens)
		c.full = e.cutter.AppendFull(c.full)
		next := cut{end: i, text: text, full: full + len(tokens)/size, spoken: c.spoken.cut()}
		if n := len(c.cuts); n < cap(c.cuts) { // the memory of a cut that was dropped
			next.rest = c.cuts[:n+1][n].rest[:0]
		}
		next.rest = append(next.rest, tokens[len(tokens)-len(tokens)%size:]...)
		c.cuts = append(c.cuts, next)
		c.scratch = tokens
	}
	e.rewind()
}

// tokens appends those of pieces that belong together. What was the reply is
// history now.
func (e *encoder) tokens(dst []uint32, pieces []token.Piece, begin bool) []uint32 {
	if p := &pieces[0]; len(pieces) == 1 && p.Alone && p.Text == e.chain.reply {
		return append(dst, e.chain.tokens...)
	}
	return token.AppendPieces(dst, e.p.Tokenizer, pieces, begin)
}

// resume makes the cutter go on after the full blocks of the chain.
func (e *encoder) resume() {
	last := e.chain.root
	if n := len(e.chain.full); n > 0 {
		last = e.chain.full[n-1]
	}
	e.cutter.Reset(last)
}

// optional returns the text, or nil where the source log has none.
func optional(t trace.Text) *string {
	if t == (trace.Text{}) {
		return nil
	}
	return trace.Ptr(t.Reveal())
}
