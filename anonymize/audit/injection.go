package audit

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"

	"reprise/anonymize"
	"reprise/trace"
)

// victims is how many prompts are guessed at.
const victims = 4

// injection plays somebody who had accounts while the traffic was recorded and sent
// guesses at what another one sent. The release with a right guess and that with a
// wrong one of the same length must be the same, for as many accounts as the rule of
// sharing is meant to stop: k_share - 2. With one account more they must differ, or
// the check shows nothing.
func injection(ctx context.Context, c *Case) (f Finding) {
	if c.Output.Tier() != anonymize.Partner {
		return skipped("it is of tier partner: tier internal keeps who shares what, and says so")
	}
	if c.Output.drawn() {
		return skipped("its sessions are drawn from noisy tables, which bound what a guess can show")
	}
	p, _, err := policyOf(c.Output)
	if err != nil {
		return broken(err)
	}
	accounts := p.KShare - 2
	fig := Figures{"k_share": p.KShare, "accounts": accounts}
	if accounts < 1 {
		return failed(fig, "k_share of %d: somebody with one account can test guesses at what others sent; it takes 3 or more", p.KShare)
	}
	defer func() { f.Figures, f.Seed = fig, strconv.FormatUint(c.Seed, 10) }()
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	x, err := extentOf(ctx, src)
	if err != nil {
		return broken(err)
	}
	rng := rand.New(rand.NewPCG(c.Seed, 2))
	targets, err := pickVictims(ctx, rng, src, p.Unit)
	if err != nil {
		return broken(err)
	}
	fig["prompts_guessed_at"] = len(targets)
	if len(targets) == 0 {
		return inconclusive(nil, "no prompt was found that is of one %s alone, so there is nothing to guess at", p.Unit)
	}
	told, control := 0, 0
	for _, victim := range targets {
		right := attackers(x, &victim, accounts, true)
		wrong := attackers(x, &victim, accounts, false)
		differ, err := c.tellApart(ctx, p, p.KShare, src, right, wrong)
		if err != nil {
			return broken(err)
		}
		if differ {
			told++
		}
		if differ, err = c.tellApart(ctx, p, accounts+1, src, right, wrong); err != nil {
			return broken(err)
		}
		if differ {
			control++
		}
	}
	fig["guesses_confirmed"], fig["confirmed_where_they_must_be"] = told, control
	switch {
	case told > 0:
		return failed(nil, "%d of %d right guesses of %d accounts show in the release", told, len(targets), accounts)
	case control == 0:
		return inconclusive(nil, "right guesses do not show even where they must, with k_share of %d: the check is blind", accounts+1)
	}
	return passed(nil, "right and wrong guesses of %d accounts give the same release; with k_share of %d they would not", accounts, accounts+1)
}

// tellApart reports whether a release differs by what the attackers sent.
func (c *Case) tellApart(ctx context.Context, p anonymize.PartnerPolicy, k int, src anonymize.Source, right, wrong []trace.Request) (bool, error) {
	a, err := c.release(ctx, p, k, withRows(src, right))
	if err != nil {
		return false, err
	}
	b, err := c.release(ctx, p, k, withRows(src, wrong))
	return a != b, err
}

// attackers are one request of each account, after all others: the victim's whole
// prompt, or the same with another end. What they are else is equal.
func attackers(x extent, victim *trace.Request, accounts int, right bool) []trace.Request {
	var out []trace.Request
	for i := range int64(accounts) {
		r := trace.Request{ArrivalNS: x.last, InputTokens: victim.InputTokens, OutputTokens: victim.OutputTokens, Kind: victim.Kind,
			Model: victim.Model, Adapter: victim.Adapter, Status: trace.StatusOK, User: trace.Ptr(x.users + i), Session: trace.Ptr(x.sessions + i), Turn: trace.Ptr(int32(0))}
		r.Blocks = slices.Clone(victim.Blocks)
		if !right {
			r.Blocks[len(r.Blocks)-1] = uint64(x.blocks)
		}
		out = append(out, r)
	}
	return out
}

// pickVictims draws prompts whose last block is of one unit alone, and of one
// request, so that a guess at it says what that one sent.
func pickVictims(ctx context.Context, rng *rand.Rand, src anonymize.Source, unit string) ([]trace.Request, error) {
	const candidates = 64
	var drawn []trace.Request
	seen := 0
	err := eachRow(ctx, src, func(_ int64, r *trace.Request) error {
		if len(r.Blocks) == 0 || unit == anonymize.UnitUser && r.User == nil || unit == anonymize.UnitSession && r.Session == nil {
			return nil
		}
		seen++
		at := len(drawn)
		if at == candidates {
			if at = rng.IntN(seen); at >= candidates {
				return nil
			}
		} else {
			drawn = append(drawn, trace.Request{})
		}
		drawn[at] = *r
		drawn[at].Blocks = slices.Clone(r.Blocks)
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := map[uint64]int{} // that have the last block of a candidate
	for _, r := range drawn {
		rows[r.Blocks[len(r.Blocks)-1]] = 0
	}
	err = eachRow(ctx, src, func(_ int64, r *trace.Request) error {
		for _, b := range r.Blocks {
			if n, ok := rows[b]; ok {
				rows[b] = n + 1
			}
		}
		return nil
	})
	drawn = slices.DeleteFunc(drawn, func(r trace.Request) bool { return rows[r.Blocks[len(r.Blocks)-1]] != 1 })
	return drawn[:min(len(drawn), victims)], err
}

// A withRows source has more rows after those of another. Renumbering is left to
// the caller.
func withRows(src anonymize.Source, more []trace.Request) anonymize.Source {
	open := src.Open
	src.Open = func() (trace.Reader[trace.Request], error) {
		rows, err := open()
		return &chained{rows, more}, err
	}
	return src
}

type chained struct {
	first trace.Reader[trace.Request]
	more  []trace.Request
}

func (c *chained) Read(rows []trace.Request) (int, error) {
	if c.first != nil {
		n, err := c.first.Read(rows)
		if err != io.EOF {
			return n, err
		}
		c.first = nil
		if n > 0 {
			return n, nil
		}
	}
	n := 0
	for n < len(rows) && n < len(c.more) {
		rows[n] = c.more[n]
		rows[n].Blocks = slices.Clone(rows[n].Blocks)
		n++
	}
	c.more = c.more[n:]
	if len(c.more) == 0 {
		return n, io.EOF
	}
	return n, nil
}
