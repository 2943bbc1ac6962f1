package calibrate

import (
	"cmp"
	"context"
	"slices"

	"reprise/replay/engine"
)

// fitEngine fits all that the records tell of an engine: the costs first, then the limits
// that they show to be at work, then the costs that are not told are left out.
func fitEngine(ctx context.Context, records []*Record, s Stated, of part) (*fitted, error) {
	f := &fitted{ctx: ctx, records: records, of: of, config: engine.DefaultConfig(), stated: map[string]bool{},
		told: map[string]bool{}, most: map[string]engine.Picos{}}
	f.takeStated(s)
	f.names = f.config.Costs.Names()
	starts := startingCosts(records)
	if near, ok := stepCosts(records, of); ok {
		starts = []engine.Costs{near}
	}
	var err error
	if f.config, f.loss, err = f.fitCosts(f.config, f.names, starts); err != nil {
		return nil, err
	}
	if err := f.fitPlaces(); err != nil {
		return nil, err
	}
	if err := f.fitBudget(); err != nil {
		return nil, err
	}
	if err := f.dropUnidentified(); err != nil {
		return nil, err
	}
	for _, name := range f.names {
		v := f.config.Costs.Of(name)
		*v = rounded(*v)
	}
	f.loss = f.lossOf(f.config)
	return f, nil
}

// takeStated sets what the operator or the server states.
func (f *fitted) takeStated(s Stated) {
	cached, expected := false, false
	for _, r := range f.records {
		e := r.About.Environment
		if e != nil && len(e.Servers) == 1 {
			s.KVTokens = cmp.Or(s.KVTokens, int(e.Servers[0].KVTokens))
			s.BlockSize = cmp.Or(s.BlockSize, e.Servers[0].BlockSize)
			s.MaxSeqs = cmp.Or(s.MaxSeqs, e.Servers[0].Slots)
			if on := e.Servers[0].PrefixCaching; on != nil {
				f.config.PrefixCaching, f.stated["prefix_caching"] = *on, true
			}
		}
		if s.BlockSize == 0 && r.About.ServerBlockFrom != "" {
			s.BlockSize = r.About.ServerBlock
		}
		for i := range r.requests {
			cached = cached || r.requests[i].reused > 0
			expected = expected || r.requests[i].known > 2*max(s.BlockSize, 16)
		}
		f.config.MaxSeqs = max(f.config.MaxSeqs, r.peak().inFlight)
	}
	if !f.stated["prefix_caching"] && (cached || expected) { // else the records say nothing of it
		f.config.PrefixCaching, f.told["prefix_caching"] = cached, true
	}
	for _, one := range []struct {
		name string
		from int
		to   *int
	}{{"block_size", s.BlockSize, &f.config.BlockSize}, {"kv_tokens", s.KVTokens, &f.config.KVTokens},
		{"max_num_seqs", s.MaxSeqs, &f.config.MaxSeqs},
		{"max_num_batched_tokens", s.MaxBatchTokens, &f.config.MaxBatchTokens}} {
		if one.from > 0 {
			*one.to, f.stated[one.name] = one.from, true
		}
	}
}

// A setting is a value of the engine beside the costs.
type setting struct {
	name string
	set  func(*engine.Config)
}

// try fits the costs under settings, one after another, and takes the best if it explains
// the records better than the engine so far does by more than chance.
func (f *fitted) try(settings []setting) (taken bool, err error) {
	best, least, name := f.config, f.loss, ""
	for _, s := range settings {
		c := f.config
		s.set(&c)
		c, l, err := f.fitCosts(c, f.names, []engine.Costs{f.config.Costs})
		if err != nil {
			return false, err
		}
		if l < least {
			best, least, name = c, l, s.name
		}
	}
	if name == "" || f.same(f.loss, least) {
		return false, nil
	}
	f.config, f.loss, f.told[name] = best, least, true
	return true, nil
}

// fitPlaces looks for the limit that made requests wait: places for sequences, or KV
// memory. Where none waited there is nothing to find.
func (f *fitted) fitPlaces() error {
	var decoding, kv int
	waited := false
	for _, r := range f.records {
		p := r.peak()
		decoding, kv = max(decoding, p.decoding), max(kv, p.kv)
		waited = waited || p.inFlight > p.decoding+2
	}
	if !waited {
		return nil
	}
	var settings []setting
	if !f.stated["max_num_seqs"] {
		settings = append(settings, setting{"max_num_seqs", func(c *engine.Config) { c.MaxSeqs = decoding }})
	}
	if !f.stated["kv_tokens"] {
		for _, tokens := range []int{kv, kv + kv/10} {
			settings = append(settings,
				setting{"kv_tokens", func(c *engine.Config) { c.KVTokens = max(tokens, c.BlockSize) }})
		}
	}
	_, err := f.try(settings)
	return err
}

// fitBudget looks for the tokens of a step, by powers of two. Where the next ones on both
// sides explain the records as well, the records do not tell it.
func (f *fitted) fitBudget() error {
	if f.stated["max_num_batched_tokens"] {
		return nil
	}
	to := func(tokens int) setting {
		return setting{"max_num_batched_tokens", func(c *engine.Config) { c.MaxBatchTokens = tokens }}
	}
	differs := func(tokens int) bool {
		c := f.config
		c.MaxBatchTokens = tokens
		return !f.same(f.lossOf(c), f.loss)
	}
	began := f.config.MaxBatchTokens
	if !differs(began*2) && !differs(began/2) {
		return nil
	}
	for _, up := range []bool{true, false} {
		for range 3 {
			next := f.config.MaxBatchTokens * 2
			if !up {
				next = f.config.MaxBatchTokens / 2
			}
			taken, err := f.try([]setting{to(next)})
			if err != nil {
				return err
			}
			if !taken {
				break
			}
		}
		if f.config.MaxBatchTokens != began {
			break
		}
	}
	// It is told only where both neighbours are worse.
	b := f.config.MaxBatchTokens
	f.told["max_num_batched_tokens"] = !slices.ContainsFunc([]int{b / 2, b * 2},
		func(tokens int) bool { return !differs(tokens) })
	return nil
}
