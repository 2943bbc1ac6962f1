package audit

import (
	"context"
	"fmt"
	"slices"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
)

// neighbours imports the source log with everybody and without one unit, for several
// units, and measures both as a public model does. Before the noise every statistic
// must move by no more than the noise was made for; whatever has no noise must be equal.
// With a trace of tier internal in place of the log, the import is not judged.
func neighbours(ctx context.Context, c *Case) Finding {
	if c.Output.Tier() != anonymize.Public {
		return skipped("it is of tier %s, which promises that one user more or less hardly shows", anonymize.Public)
	}
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		return broken(err)
	}
	s := card.Public
	if s == nil {
		return broken(fmt.Errorf("the privacy card says nothing of noise"))
	}
	o := synth.PublicOptions{Unit: s.Unit, Budget: s.Budget, Contribution: s.Contribution, MaxInput: s.MaxInput, MaxOutput: s.MaxOutput}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	if src.Meta.Capture.Declared() && int64(src.Meta.Capture.Length()) != s.CaptureNS {
		return inconclusive(nil, "the source has another capture window than the card: give the source and the flags that the output was made of")
	}
	without, err := c.withoutUnits(ctx, src, s.Unit)
	if err != nil {
		return broken(err)
	}
	fig := Figures{"units_left_out": len(without), "import_was_judged": c.Log != nil}
	if len(without) == 0 {
		return inconclusive(fig, "the source names no %s that could be left out", s.Unit)
	}
	var most lines[shift]
	for _, open := range without {
		part, closing, err := open()
		if err != nil {
			return broken(err)
		}
		shifts, differs, err := measuredTwice(ctx, src, part, o)
		if closing != nil {
			closing()
		}
		if err != nil {
			return broken(err)
		}
		if len(differs) > 0 {
			fig["differs_in"] = differs
			return failed(fig, "without one %s the model says other things that have no noise: %s", s.Unit, differs[0])
		}
		for i, one := range shifts {
			if i == len(most) {
				most = append(most, shift(one))
			} else if one.L2Squared*max(most[i].ClaimedL2Squared, 1) > most[i].L2Squared*max(one.ClaimedL2Squared, 1) {
				most[i] = shift(one)
			}
		}
	}
	fig["shifts"] = most
	if i := slices.IndexFunc(most, func(s shift) bool { return synth.Shift(s).Beyond() }); i >= 0 {
		return failed(fig, "one %s more or less moves a statistic further than its noise hides: %s", s.Unit, most[i])
	}
	where := "in the import and in what is measured"
	if c.Log == nil {
		where = "in what is measured of the internal trace; the import was not judged (--source)"
	}
	return passed(fig, "without one %s, %d chosen for it, nothing moves further than its noise hides, %s", s.Unit, len(without), where)
}

type shift synth.Shift

func (s shift) String() string {
	return fmt.Sprintf("%s by %d of %d (squares %d of %d)", s.Statistic, s.L1, s.ClaimedL1, s.L2Squared, s.ClaimedL2Squared)
}

func measuredTwice(ctx context.Context, whole, part anonymize.Source, o synth.PublicOptions) ([]synth.Shift, []string, error) {
	var sides [2]synth.Neighbour
	for i, src := range []anonymize.Source{whole, part} {
		rows, err := src.Open()
		if err != nil {
			return nil, nil, err
		}
		sides[i] = synth.Neighbour{Rows: rows, Meta: src.Meta}
	}
	o.Noise = dp.NewNoise() // unused: nothing is released
	return synth.Shifts(ctx, sides[0], sides[1], o)
}

// withoutUnits are the source without one unit each.
func (c *Case) withoutUnits(ctx context.Context, src anonymize.Source, unit string) (out []func() (anonymize.Source, func() error, error), err error) {
	if c.Log == nil {
		leave, err := extremeRows(ctx, src, unit)
		for _, of := range leave {
			part := src
			part.Open = func() (trace.Reader[trace.Request], error) {
				rows, err := src.Open()
				return &withoutRows{rows: rows, unit: unit, leave: of}, err
			}
			out = append(out, func() (anonymize.Source, func() error, error) { return part, nil, nil })
		}
		return out, err
	}
	log, err := c.Log.Open()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	units, err := anonymize.SurveyUnits(log.Entries, unit)
	if err != nil {
		return nil, err
	}
	for _, leave := range units.Extreme() {
		out = append(out, func() (anonymize.Source, func() error, error) {
			t, err := c.importLog(ctx, func(_ *anonymize.Policy, e trace.EntryReader) trace.EntryReader { return units.Without(e, leave) })
			if err != nil {
				return anonymize.Source{}, nil, err
			}
			return sourceOf(t), t.Close, nil
		})
	}
	return out, nil
}

// rowUnit is the unit of a row, or false where it names none.
func rowUnit(unit string, row int64, r *trace.Request) (int64, bool) {
	id := &row
	switch unit {
	case anonymize.UnitUser:
		id = r.User
	case anonymize.UnitSession:
		id = r.Session
	}
	if id == nil {
		return 0, false
	}
	return *id, true
}

// extremeRows are the units of rows with the first request, the last, the longest, and the most.
func extremeRows(ctx context.Context, src anonymize.Source, unit string) (leave []int64, err error) {
	var first, last, longest, heaviest int64
	longestLen, rows := int64(-1), map[int64]int{}
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		u, ok := rowUnit(unit, row, r)
		if !ok {
			return nil
		}
		if longestLen < 0 {
			first, heaviest = u, u
		}
		last = u
		if n := int64(r.InputTokens) + int64(r.OutputTokens); n > longestLen {
			longest, longestLen = u, n
		}
		if unit != anonymize.UnitRequest {
			if rows[u]++; rows[u] > rows[heaviest] {
				heaviest = u
			}
		}
		return nil
	})
	if longestLen >= 0 {
		leave = []int64{first, last, longest, heaviest}
		slices.Sort(leave)
	}
	return slices.Compact(leave), err
}

// withoutRows leaves the rows of one unit out.
type withoutRows struct {
	rows  trace.Reader[trace.Request]
	unit  string
	leave int64
	at    int64
}

func (w *withoutRows) Read(rows []trace.Request) (int, error) {
	for {
		n, err := w.rows.Read(rows)
		kept := 0
		for i := range rows[:n] {
			if u, ok := rowUnit(w.unit, w.at, &rows[i]); !ok || u != w.leave {
				rows[kept], rows[i] = rows[i], rows[kept]
				kept++
			}
			w.at++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}
