package replay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reprise/trace"
)

// A Primer brings prompts into a server's prefix cache before a run, so that a
// replay that begins in the middle of a workload meets the cache that there was.
type Primer struct {
	Prompter    Prompter
	Endpoint    Endpoint
	Concurrency int              // requests at once; 0 means 8
	Progress    func(done int64) // when set, is told now and then; one goroutine calls it
}

// Primed says what a [Primer] sent. None of it is in the results.
type Primed struct {
	CapacityTokens int64 `json:"capacity_tokens"` // of the cache that the prompts are from
	LiveTokens     int64 `json:"live_tokens"`     // that it holds
	Prompts        int64 `json:"prompts"`         // sent
	Tokens         int64 `json:"prompt_tokens"`   // of them; prefixes that prompts share are counted in each
	Failed         int64 `json:"failed"`          // of the prompts
	TookNS         int64 `json:"took_ns"`
}

// Prime sends rows in their order, some at once, and waits for the last. It
// returns which of them were answered. A request that fails is counted; it is an
// error if all do, or the context ends.
func (p *Primer) Prime(ctx context.Context, rows []trace.Request) (sent Primed, answered []bool, err error) {
	start := time.Now()
	slots := make(chan struct{}, max(p.Concurrency, 0))
	if p.Concurrency == 0 {
		slots = make(chan struct{}, 8)
	}
	kinds := make([]string, len(rows))
	var flights sync.WaitGroup
	for i := range rows {
		call, err := p.Endpoint.Prepare(&rows[i], p.Prompter)
		if err != nil {
			kinds[i] = KindPrepare
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		sent.Prompts++
		sent.Tokens += int64(rows[i].InputTokens)
		flights.Go(func() {
			var r Result
			p.Endpoint.Fire(ctx, Shot{Call: call, Start: start}, &r)
			kinds[i] = r.Error
			<-slots
		})
		if p.Progress != nil {
			p.Progress(int64(i))
		}
	}
	flights.Wait()
	answered = make([]bool, len(rows))
	why := ""
	for i, kind := range kinds {
		if answered[i] = kind == ""; !answered[i] {
			sent.Failed++
			why = kind
		}
	}
	sent.TookNS = int64(time.Since(start))
	switch {
	case ctx.Err() != nil:
		return sent, nil, ctx.Err()
	case len(rows) > 0 && sent.Failed == int64(len(rows)):
		return sent, answered, fmt.Errorf("replay: not one of %d requests that prime the cache was answered: %s", len(rows), why)
	}
	return sent, answered, nil
}
