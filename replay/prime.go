package replay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/crash"
)

// A Primer brings prompts into a server's prefix cache before a run, so that a
// replay that begins in the middle of a workload meets the cache that there was.
type Primer struct {
	Prompter    result.Prompter
	Endpoint    result.Endpoint
	Concurrency int              // requests at once; 0 means 8
	At          []time.Duration  // when each row is sent, from the start, rising; nil is as soon as may be
	Least       time.Duration    // that it lasts at least
	Progress    func(done int64) // when set, is called now and then, by one goroutine
}

// Prime sends rows in their order, some at once, and waits for the last. It returns for
// each the class of its failure, empty for one that was answered. A request that fails is
// counted; it is an error if all do, or the context ends.
func (p *Primer) Prime(ctx context.Context, rows []trace.Request) (sent result.Primed, failures []string, err error) {
	start := time.Now()
	slots := make(chan struct{}, max(p.Concurrency, 0))
	if p.Concurrency == 0 {
		slots = make(chan struct{}, 8)
	}
	failures = make([]string, len(rows))
	var flights sync.WaitGroup
	for i := range rows {
		call, err := p.Endpoint.Prepare(result.NoRow, int32(i), &rows[i], p.Prompter)
		if err != nil {
			failures[i] = result.KindPrepare
			continue
		}
		if p.At != nil {
			p.waitUntil(ctx, start.Add(p.At[i]))
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
			defer crash.Caught()
			var r result.Result
			p.Endpoint.Fire(ctx, result.Shot{Call: call, Start: start}, &r)
			failures[i] = r.Error
			<-slots
		})
		if p.Progress != nil {
			p.Progress(int64(i))
		}
	}
	flights.Wait()
	p.waitUntil(ctx, start.Add(p.Least))
	why := ""
	for _, kind := range failures {
		if kind != "" {
			sent.Failed++
			why = kind
		}
	}
	sent.TookNS = int64(time.Since(start))
	switch {
	case ctx.Err() != nil:
		return sent, nil, ctx.Err()
	case len(rows) > 0 && sent.Failed == int64(len(rows)):
		return sent, failures, fmt.Errorf("replay: all %d requests that prime the cache failed: %s", len(rows), why)
	}
	return sent, failures, nil
}

// waitUntil returns at an instant, or at the end of ctx.
func (p *Primer) waitUntil(ctx context.Context, at time.Time) {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
