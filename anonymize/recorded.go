package anonymize

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/recording"
	"reprise/trace/token"
)

// A Recording turns the entries of a recorder into rows as they come, under one key.
// [MergeRecorded] makes a trace of the rows. Nothing is learnt of one entry for another.
type Recording struct {
	p    Policy
	open func() (*encoder, error) // holds the key: see [block.Key]

	// Draw gives the name of a session a number in [0, 1), by the key: recorders with one
	// key sample the same sessions. It may be called at once.
	Draw func(session string) float64

	mu       sync.Mutex
	breakers breakerFinder
}

// NewRecording begins a recording under a shared key, or where that is nil under a key
// that is drawn, is in memory alone and ends with the process. Of the policy the
// tokenizer, the template, the block size and KeepModel count.
func NewRecording(p Policy, shared *SharedKey) (*Recording, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	key, err := block.NewKey()
	if err != nil {
		return nil, fmt.Errorf("draw a random key: %w", err)
	}
	if shared != nil {
		key = shared.key
	}
	return &Recording{p: p, open: func() (*encoder, error) { return newEncoder(&p, key) },
		Draw: func(session string) float64 {
			sum := hmac.New(sha256.New, key[:])
			io.WriteString(sum, "reprise: sample\x00"+session)
			return float64(binary.BigEndian.Uint64(sum.Sum(nil))>>11) / (1 << 53)
		}}, nil
}

// A RowEncoder turns entries into rows, for one goroutine.
type RowEncoder struct {
	of *Recording
	e  *encoder
	x  encoded
}

// Encoder makes an encoder; those of one recording share its key.
func (r *Recording) Encoder() (*RowEncoder, error) {
	e, err := r.open()
	return &RowEncoder{of: r, e: e}, err
}

// Breakers says as JSON where near-identical prompts part, of all entries so far: see
// [breaker.Set]. Names are as in the rows. It is empty before the first text.
func (r *Recording) Breakers() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.breakers.report()
	if found == nil {
		return nil
	}
	text, err := found.JSON()
	if err != nil {
		return nil
	}
	return json.RawMessage(text)
}

// Encode turns an entry into a row, which keeps nothing of the entry. Its errors quote
// nothing.
func (r *RowEncoder) Encode(en *trace.Entry) (recording.Row, error) {
	x := &r.x
	r.e.parts = parts{tokens: r.e.parts.tokens[:0]}
	if err := r.e.encode(en, x); err != nil {
		return recording.Row{}, err
	}
	row := x.recorded(&r.of.p, r.keyed)
	out := &row.Request
	r.of.mu.Lock()
	r.of.breakers.addPrompt(x, r.e.parts.tokens)
	r.of.mu.Unlock()
	// Which of the two it was; how long is known when the rows are in order.
	out.ThinkNS, out.ToolNS = trace.Ptr[int64](0), nil
	if n := len(en.Messages); n > 0 && en.Messages[n-1].Role == trace.Tool {
		out.ThinkNS, out.ToolNS = nil, out.ThinkNS
	}
	return row, nil
}

// recorded is an encoded entry as it is kept for later, its names by keyed. Its model and
// adapter have these names from now on.
func (x *encoded) recorded(p *Policy, keyed func(kind, name string) string) recording.Row {
	if !p.KeepModel {
		x.row.Model = keyed("model", x.row.Model)
	}
	x.row.Adapter = keyed("adapter", x.row.Adapter)
	row := recording.Row{Request: x.row, UserID: keyed("user", x.user),
		Links: recording.Links{SessionID: keyed("session", x.session), ResponseID: keyed("response", x.response),
			PreviousID: keyed("response", x.previous)},
		Template: x.template, InputGap: gapNames[x.inputGap], OutputGap: gapNames[x.outputGap],
		Tokenised: x.tokenised, Refused: x.refused, Partly: x.partly, NoOutput: x.row.OutputTokens == nil}
	for _, name := range []**string{&row.Request.Class, &row.Request.Replica} {
		if *name != nil {
			*name = trace.Ptr(keyed("name", **name))
		}
	}
	row.Request.Blocks = recording.Words(nil, x.blocks)
	if x.out != nil {
		row.Request.OutputBlocks = recording.Words([]uint64{}, x.out)
	}
	if x.text {
		row.TextTokens, row.UsageTokens = trace.Ptr(x.counted), x.sourceInput
	}
	return row
}

// keyed is an id of a name, by the key of the blocks.
func (r *RowEncoder) keyed(kind, name string) string {
	if name == "" {
		return ""
	}
	return recording.ID(r.e.hasher.Root(kind, name))
}

var gapNames = []string{noGap: "", markerGap: "marker", emptyGap: "empty", shortGap: "short", unnamedGap: "unnamed"}

// MergeRecorded makes the rows of a trace of those of recordings, as [Run] does of a
// log: sorted by arrival, annotated and renumbered. Turns that follow an earlier one of
// their session have it as their parent, see [turnLinker]. meta is what their captures have in
// common.
func MergeRecorded(ctx context.Context, p Policy, meta recording.Meta, src trace.Reader[recording.Row],
	dst trace.Writer[trace.Request]) (Card, error) {
	p.BlockSize, p.KeepModel, p.Capture, p.Tokenizer = meta.BlockSize, meta.KeepModel, meta.Window(), nil
	p.Template = token.Template{Name: meta.Template}
	if err := p.check(); err != nil {
		return Card{}, err
	}
	c := newCollector(&p)
	c.noTokens = true
	defer c.sorter.Close()
	if len(meta.Breakers) > 0 {
		if json.Unmarshal(meta.Breakers, &c.recorded) != nil {
			c.recorded = nil // the rows are worth more than what was found in them
		}
	}
	batch := make([]recording.Row, 256)
	for done := int64(0); ; {
		n, err := src.Read(batch)
		for i := range batch[:n] {
			if err := c.addRecorded(&batch[i]); err != nil {
				return Card{}, err
			}
		}
		done += int64(n)
		p.progress("merge", done)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Card{}, err
		}
	}
	card, err := c.finish(ctx, &p, nil, &turnLinker{dst: dst, open: make(map[int64][]openTurn)})
	of := trace.Meta{Keys: meta.Keys}
	card.Key, card.Risks = keyOf(of), append(card.Risks, keyRisks(of, false)...)
	if card.Breakers != nil {
		card.Risks = append(card.Risks, breakersRisk)
	}
	if card.Totals.Texts > 0 {
		card.Tokenizer, card.Template = meta.Tokenizer, meta.Template
	}
	return card, err
}

// addRecorded takes a row that [RowEncoder.Encode] made.
func (c *collector) addRecorded(r *recording.Row) error {
	x := decodeRecorded(r)
	x.row.Parents = nil
	return c.addRow(&x, nil)
}

// decodeRecorded is the entry that [encoded.recorded] made a row of.
func decodeRecorded(r *recording.Row) encoded {
	x := encoded{row: r.Request, user: r.UserID, session: r.SessionID, template: r.Template,
		blocks: recording.Blocks(nil, r.Request.Blocks), text: r.TextTokens != nil, joined: true,
		tokenised: r.Tokenised, refused: r.Refused,
		partly: r.Partly, sourceInput: r.UsageTokens,
		inputGap:  gap(max(0, slices.Index(gapNames, r.InputGap))),
		outputGap: gap(max(0, slices.Index(gapNames, r.OutputGap)))}
	if r.NoOutput {
		x.row.OutputTokens = nil // recordings of earlier versions have a 0 there
	}
	if x.text {
		x.counted = *r.TextTokens
	}
	if r.Request.OutputBlocks != nil {
		x.out = recording.Blocks([]block.ID{}, r.Request.OutputBlocks)
	}
	x.row.Blocks, x.row.OutputBlocks, x.row.Session, x.row.User = nil, nil, nil, nil
	x.row.Kind, x.row.Status, x.row.FinishReason = trace.ClosedKind(x.row.Kind), trace.ClosedStatus(x.row.Status),
		trace.ClosedFinish(x.row.FinishReason)
	return x
}
