package audit

import (
	"context"
	"math/rand/v2"
	"strconv"

	"reprise/anonymize"
	"reprise/trace"
)

// lengths plays somebody with accounts who sends a pair of lengths that nobody has, or
// one other person. As many accounts as the rule of classes is meant to stop, k_class - 2,
// must not learn which: no row of that pair may come out. One account that sends it
// as often as it likes counts once. With k_class accounts the pair must come out, or
// the check shows nothing.
func lengths(ctx context.Context, c *Case) (f Finding) {
	if c.Output.Tier() != anonymize.Partner {
		return skipped("it is of tier partner: tier internal keeps exact lengths, and says so")
	}
	p, _, err := policyOf(c.Output)
	if err != nil {
		return broken(err)
	}
	if p.Unit == anonymize.UnitRequest {
		return skipped("every request was counted as a different person, so one account that sends a rare pair of lengths %d times learns whether somebody else sent it, as the card says", p.KClass-1)
	}
	fig := Figures{"k_class": p.KClass, "accounts": p.KClass - 2}
	defer func() { f.Figures, f.Seed = fig, strconv.FormatUint(c.Seed, 10) }()
	if p.KClass < 3 {
		return failed(nil, "k_class of %d: somebody with one account learns who else sends a rare pair of lengths; it takes 3 or more", p.KClass)
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	x, err := extentOf(ctx, src)
	if err != nil {
		return broken(err)
	}
	var longest [2]int32
	if err := eachRow(ctx, src, func(_ int64, r *trace.Request) error {
		longest[0], longest[1] = max(longest[0], r.InputTokens), max(longest[1], r.OutputTokens)
		return nil
	}); err != nil {
		return broken(err)
	}
	// Each length is several octaves beyond all others, where no class is near enough to join.
	rare := trace.Request{ArrivalNS: x.last, InputTokens: min(longest[0], 1<<26)*16 + 16, OutputTokens: min(longest[1], 1<<26)*16 + 16, Kind: "chat", Status: trace.StatusOK}
	shown := func(rows []trace.Request) (int, error) {
		out := &longRows{input: int64(longest[0]) * 4, output: int64(longest[1]) * 4}
		_, err := c.releaseTo(ctx, p, p.KShare, withRows(src, rows), out)
		return out.n, err
	}
	for _, try := range []struct {
		name           string
		accounts, each int // the last of the accounts is the other person
		must           bool
	}{{"shown_to_the_accounts", p.KClass - 1, 1, false}, {"shown_to_one_that_repeats", 1, 2 * p.KClass, false}, {"shown_where_it_must_be", p.KClass, 1, true}} {
		var rows []trace.Request
		for i := range int64(try.accounts) {
			one := attackers(extent{users: x.users + i, sessions: x.sessions + i, last: x.last}, &rare, 1, true)
			for range try.each {
				rows = append(rows, one...)
			}
		}
		for i := range rows { // the release is to be of the right shape, without blocks of anybody
			rows[i].Blocks = nil
		}
		n, err := shown(rows)
		if err != nil {
			return broken(err)
		}
		// Where more come out than were sent, the pair shares its class with other people.
		saw := n > 0 && (try.must || n <= len(rows))
		switch fig[try.name] = saw; {
		case saw && !try.must && try.each > 1:
			return failed(nil, "one account that sends a rare pair of lengths %d times sees it in the release: requests are counted, and not %ss", try.each, p.Unit)
		case saw && !try.must:
			return failed(nil, "%d accounts that send a rare pair of lengths see it in the release if one other %s sent it, and else not", p.KClass-2, p.Unit)
		case !saw && try.must:
			return inconclusive(nil, "a pair of lengths of %d %ss does not come out: the check is blind", p.KClass, p.Unit)
		}
	}
	return passed(nil, "%d accounts that send a rare pair of lengths do not see whether one other %s sent it; %d accounts would", p.KClass-2, p.Unit, p.KClass-1)
}

// longRows counts the rows of which both lengths are longer than that.
type longRows struct {
	input, output int64
	n             int
}

func (w *longRows) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		if int64(rows[i].InputTokens) > w.input && int64(rows[i].OutputTokens) > w.output {
			w.n++
		}
	}
	return len(rows), nil
}

// repeats plays somebody with one account who sends a guess at another one's prompt so
// often that it is shared, if requests are counted: k_share times. Right and wrong guesses
// must give the same release.
func repeats(ctx context.Context, c *Case) (f Finding) {
	if c.Output.Tier() != anonymize.Partner {
		return skipped("it is of tier partner: tier internal keeps who shares what, and says so")
	}
	p, _, err := policyOf(c.Output)
	if err != nil {
		return broken(err)
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	x, err := extentOf(ctx, src)
	if err != nil {
		return broken(err)
	}
	fig := Figures{"k_share": p.KShare, "sends": p.KShare - 1}
	defer func() { f.Figures, f.Seed = fig, strconv.FormatUint(c.Seed, 10) }()
	targets, err := pickVictims(ctx, rand.New(rand.NewPCG(c.Seed, 3)), src, p.Unit)
	if err != nil {
		return broken(err)
	}
	if len(targets) == 0 || p.KShare < 3 {
		return inconclusive(nil, "no prompt was found that is of one %s alone, so there is nothing to guess at", p.Unit)
	}
	named := x.users > 0 || src.Meta.Sessions == "source"
	send := func(victim *trace.Request, right bool) []trace.Request {
		var out []trace.Request
		for range p.KShare - 1 {
			out = append(out, attackers(x, victim, 1, right)...)
		}
		for i := range out {
			if x.users == 0 {
				out[i].User = nil
			}
			if src.Meta.Sessions != "source" {
				out[i].Session, out[i].Turn = nil, nil
			} else {
				out[i].Turn = trace.Ptr(int32(i))
			}
		}
		return out
	}
	told := false
	for i := 0; i < len(targets) && !told; i++ {
		if told, err = c.tellApart(ctx, p, p.KShare, src, send(&targets[i], true), send(&targets[i], false)); err != nil {
			return broken(err)
		}
	}
	fig["prompts_guessed_at"], fig["guess_confirmed"] = len(targets), told
	switch {
	case told && !named:
		return inconclusive(nil, "the source names neither users nor sessions, and one account that sends a guess %d times learns whether it is right: the card says so", p.KShare-1)
	case told:
		return failed(nil, "one account that sends a right guess %d times sees it in the release: requests are counted, and not people", p.KShare-1)
	}
	return passed(nil, "one account that sends a guess %d times does not learn whether it is right", p.KShare-1)
}
