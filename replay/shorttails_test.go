package replay

import (
	"context"
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// tailed is a Prompter that counts, as package synth's does.
type tailed struct{ n int64 }

func (p *tailed) Prompt(_ *trace.Request, buf []byte) ([]byte, error) {
	p.n++
	return append(buf, 'x'), nil
}

func (p *tailed) Tokens(_ *trace.Request, buf []uint32) ([]uint32, error) { return append(buf, 1), nil }

func (p *tailed) ShortTails() int64 { return p.n }

// asking is an Endpoint that makes every prompt and sends nothing.
type asking struct{ resulttest.Endpoint }

func (a asking) Prepare(id int64, round int32, row *trace.Request, p result.Prompter) (result.Call, error) {
	if _, err := p.Prompt(row, nil); err != nil {
		return nil, err
	}
	return a.Endpoint.Prepare(id, round, row, p)
}

func (asking) Fire(context.Context, result.Shot, *result.Result) {}

// The run records how many prompts have a block too short to differ.
func TestRunRecordsShortTails(t *testing.T) {
	r := Runner{Prompter: new(tailed), Endpoint: asking{}}
	run, err := r.Run(t.Context(), &trace.SliceReader[trace.Request]{Rows: make([]trace.Request, 5)}, new(trace.SliceWriter[result.Result]))
	if err != nil || run.ShortTails != 5 {
		t.Errorf("%d short tails are recorded, want 5 (%v)", run.ShortTails, err)
	}
}
