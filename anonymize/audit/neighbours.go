package audit

import (
	"context"
	"fmt"
	"slices"

	"reprise/anonymize"
	"reprise/synth/release"
	"reprise/trace"
)

// neighbours imports the source log with everybody and without one unit, for several
// units, and measures both as the model of the release does. Before the noise every
// statistic must move by no more than the noise was made for; whatever has no noise must be
// equal. With a trace of tier internal in place of the log, the import is not judged.
func neighbours(ctx context.Context, c *Case) Finding {
	if !c.Output.drawn() {
		return c.notDrawn("it is of what is drawn from noisy counts, which promises that one user more or less hardly shows")
	}
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		return broken(err)
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	o := drawnOptions(card.Sessions)
	s := measured{o, unitKey(o.Unit, src.Meta, o.TrunkBlocks)}
	if src.Meta.Capture.Declared() && int64(src.Meta.Capture.Length()) != card.Sessions.CaptureNS {
		return inconclusive(nil, "the source has another capture window than the card: give the source and the flags that the output was made of")
	}
	without, err := c.withoutUnits(ctx, src, s)
	if err != nil {
		return broken(err)
	}
	fig := Figures{"units_left_out": len(without), "import_was_judged": c.judgesImport(src, s)}
	if len(without) == 0 {
		return inconclusive(fig, "the source names no %s that could be left out", s.options.Unit)
	}
	var most lines[shift]
	for _, open := range without {
		part, closing, err := open()
		if err != nil {
			return broken(err)
		}
		shifts, differs, err := s.twice(ctx, src, part)
		if closing != nil {
			closing()
		}
		if err != nil {
			return broken(err)
		}
		if len(differs) > 0 {
			fig["differs_in"] = differs
			return failed(fig, "without one %s the model says other things that have no noise: %s", s.options.Unit, differs[0])
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
	if i := slices.IndexFunc(most, func(s shift) bool { return release.Shift(s).Beyond() }); i >= 0 {
		return failed(fig, "one %s more or less moves a statistic further than its noise hides: %s", s.options.Unit, most[i])
	}
	where := "in the import and in what is measured"
	if !c.judgesImport(src, s) {
		where = "in what is measured of the internal trace; the import was not judged"
	}
	return passed(fig, "without one %s, %d chosen for it, nothing moves further than its noise hides, %s", s.options.Unit, len(without), where)
}

type shift release.Shift

func (s shift) String() string {
	return fmt.Sprintf("%s by %d of %d (squares %d of %d)", s.Statistic, s.L1, s.ClaimedL1, s.L2Squared, s.ClaimedL2Squared)
}

// measured is how a release measures its source.
type measured struct {
	options release.Options
	key     func(row int64, r *trace.Request) (int64, bool)
}

// twice measures a source, and the same without a unit.
func (m measured) twice(ctx context.Context, whole, part anonymize.Source) ([]release.Shift, []string, error) {
	var sides [2]release.Neighbour
	for i, src := range []anonymize.Source{whole, part} {
		rows, err := src.Open()
		if err != nil {
			return nil, nil, err
		}
		sides[i] = release.Neighbour{Rows: rows, Meta: src.Meta}
	}
	return release.Shifts(ctx, sides[0], sides[1], m.options)
}

// withoutUnits are the source without one unit each. Sessions that the source does not name
// are left out of its rows, as no entry of the log tells them.
func (c *Case) withoutUnits(ctx context.Context, src anonymize.Source, m measured) (out []func() (anonymize.Source, func() error, error), err error) {
	if !c.judgesImport(src, m) {
		leave, err := extremeRows(ctx, src, m)
		for _, of := range leave {
			part := src
			part.Open = func() (trace.Reader[trace.Request], error) {
				rows, err := src.Open()
				return &keptRows{rows: rows, keep: func(row int64, r *trace.Request) bool {
					unit, ok := m.key(row, r)
					return !ok || unit != of
				}}, err
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
	units, err := anonymize.SurveyUnits(log.Entries, m.options.Unit)
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

// judgesImport tells whether units can be left out of the log.
func (c *Case) judgesImport(src anonymize.Source, m measured) bool {
	return c.Log != nil && (m.options.Unit != anonymize.UnitSession || src.Meta.Sessions == "source")
}

// extremeRows are the units of rows with the first request, the last, the longest, and the most.
func extremeRows(ctx context.Context, src anonymize.Source, m measured) (leave []int64, err error) {
	var first, last, longest, heaviest int64
	longestLen, rows := int64(-1), map[int64]int{}
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		u, ok := m.key(row, r)
		if !ok {
			return nil
		}
		if longestLen < 0 {
			first, heaviest = u, u
		}
		last = u
		if n := int64(r.InputTokens) + int64(r.OutputOr(0)); n > longestLen {
			longest, longestLen = u, n
		}
		if m.options.Unit != anonymize.UnitRequest {
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
