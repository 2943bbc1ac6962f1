package client

import (
	"context"
	"errors"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

var greedy = []byte(`{"temperature":0,"seed":1}`)

// CheckDeterminism sends n rows, an even selection of the total, twice each, one
// request after another, at temperature 0 and with a seed, and compares hashes of the
// answers. One request at a time is the easiest case for a server: what differs between
// batches of different sizes does not show. Rows that failed in the source are passed
// over. It must not run at the same time as Prepare.
func (h *HTTP) CheckDeterminism(ctx context.Context, rows trace.Reader[trace.Request], total int64, p result.Prompter,
	n int) (result.Determinism, error) {
	var d result.Determinism
	if h.opt.API == result.APIEmbeddings {
		return d, errors.New("client: embeddings have no text to compare")
	}
	fixed, err := openai.ParseExtra(greedy)
	if err != nil {
		return d, err
	}
	step := max(total/int64(max(n, 1)), 1)
	err = trace.Each(rows, func(id int64, row *trace.Request) error {
		if d.Rows >= int64(n) || id%step != 0 || row.Status == trace.StatusFailed ||
			apiOf(h.opt.API, row) == result.APIEmbeddings {
			return ctx.Err()
		}
		d.Rows++
		var got [2]textHash
		for i := range got {
			call, err := h.prepare(id, int32(i), row, p, fixed)
			if err != nil {
				return err
			}
			call.text = &got[i]
			var r result.Result
			h.Fire(ctx, result.Shot{Call: call, Start: time.Now()}, &r)
			if r.Error != "" || !got[i].whole {
				return ctx.Err()
			}
		}
		d.Compared++
		if got[0] != got[1] {
			d.Differed++
		}
		return ctx.Err()
	})
	return d, err
}
