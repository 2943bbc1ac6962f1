package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/synth/release"
	"reprise/trace"
)

// neighbours imports the source log with everybody and without one unit, for several units, and
// with other records in the place of that unit's, and measures all as the model of the release
// does. Before the noise every statistic must move by no more than the noise was made for;
// whatever has no noise must be equal. Where the records of the log are lines, these are taken out
// of its bytes, so that all of the import is judged, from the finding of the format on; else the
// entries that were read are left out. With a trace of tier internal in place of the log, the
// import is not judged.
func neighbours(ctx context.Context, c *Case) Finding {
	if !c.Output.drawn() {
		return c.notDrawn("it is for releases drawn from noisy counts, which promise that one user more or less " +
			"hardly shows")
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
		return inconclusive(nil, "the source has another capture window than the card: give the source and the flags "+
			"that the output was made of")
	}
	n := &neighbourhood{Case: c, measured: s, src: src, fig: Figures{"import_was_judged": c.judgesImport(src, s)}}
	f, err := n.judge(ctx)
	switch {
	case err != nil:
		return broken(err)
	case f != nil:
		return *f
	case n.units == 0:
		return inconclusive(n.fig, "the source names no %s that could be left out", s.options.Unit)
	}
	where := "in the import, from the bytes of the log on, and in the measurements"
	switch {
	case !c.judgesImport(src, s):
		where = "in the measurements of the internal trace; the import was not judged"
	case n.lines == nil:
		where = "in the import, from the entries of its reader on, and in the measurements"
	}
	return passed(n.fig, "with one %s more, less or altered, %d chosen for it, nothing moves further than its "+
		"noise hides, %s", s.options.Unit, n.units, where)
}

// neighbourUnits are how many units are left out, of a log of at most so many requests in all
// imports; of a larger one the extreme units alone.
const (
	neighbourUnits = 20
	neighbourRows  = 4_000_000
)

// A neighbourhood is a source and its neighbours: each differs from it by one unit.
type neighbourhood struct {
	*Case
	measured
	src   anonymize.Source
	lines *datasets.Lines // nil where the log cannot be changed before it is read
	fig   Figures
	units int
	most  []shift
}

// judge compares the source with its neighbours. A nil finding says that nothing moved too far.
func (n *neighbourhood) judge(ctx context.Context) (*Finding, error) {
	if !n.judgesImport(n.src, n.measured) {
		leave, err := extremeRows(ctx, n.src, n.measured)
		for i, of := range leave {
			n.progress(neighboursCheck, i, len(leave))
			part := n.src
			part.Open = func() (trace.Reader[trace.Request], error) {
				rows, err := n.src.Open()
				return &keptRows{rows: rows, keep: func(row int64, r *trace.Request) bool {
					unit, ok := n.key(row, r)
					return !ok || unit != of
				}}, err
			}
			if f, err := n.compare(ctx, n.src, part, "without one"); f != nil || err != nil {
				return f, err
			}
			n.count()
		}
		return nil, err
	}

	log, err := n.Log.Open()
	if err != nil {
		return nil, err
	}
	units, err := anonymize.SurveyUnits(log.Entries, n.options.Unit)
	log.Close()
	if err != nil {
		return nil, err
	}
	if n.Log.Lines != nil {
		if n.lines, err = n.Log.Lines(n.options.Unit); err != nil && err != datasets.ErrNoLines {
			return nil, err
		}
	}
	chosen := units.Extreme()
	if len(chosen) > 0 {
		if _, all := units.Entries(chosen[0]); all*2*neighbourUnits <= neighbourRows {
			chosen = units.Some(neighbourUnits, rand.New(rand.NewPCG(n.Seed, 20)))
		}
	}
	changed := 0
	for i, unit := range chosen {
		n.progress(neighboursCheck, i, len(chosen))
		f, lines, err := n.leave(ctx, units, unit)
		if f != nil || err != nil {
			return f, err
		}
		if n.count(); lines {
			changed++
		}
	}
	if n.fig["log_was_changed"] = changed; changed < len(chosen) {
		n.lines = nil
	}
	return nil, nil
}

func (n *neighbourhood) count() {
	n.units++
	n.fig["units_left_out"] = n.units
}

// leave compares the log with what it is without a unit, and that with what it is with altered
// records of the unit. lines says that the log was changed before it was read.
func (n *neighbourhood) leave(ctx context.Context, units *anonymize.Units,
	unit int) (f *Finding, lines bool, err error) {
	records := n.recordsOf(units, unit)
	var without *trace.Trace
	if records != nil {
		var read int
		without, read, err = n.imported(ctx, n.lines.Without(records, nil))
		of, all := units.Entries(unit)
		if lines = err == nil && read == all-of; !lines && without != nil {
			without.Close() // the lines are more or fewer than the unit's
		}
		if err != nil {
			return n.stops("without one", err), false, ctx.Err()
		}
	}
	if !lines {
		without, err = n.importLog(ctx, func(_ *anonymize.Policy, e trace.EntryReader) trace.EntryReader {
			return units.Without(e, unit)
		})
		if err != nil {
			return nil, false, err
		}
	}
	defer without.Close()
	if f, err := n.compare(ctx, n.src, sourceOf(without), "without one"); f != nil || err != nil || !lines {
		return f, lines, err
	}

	altered, err := n.lines.Altered(records)
	if err != nil {
		return nil, lines, err
	}
	with, _, err := n.imported(ctx, n.lines.Without(records, altered))
	if err != nil {
		return n.stops("with altered records of one", err), lines, ctx.Err()
	}
	defer with.Close()
	f, err = n.compare(ctx, sourceOf(with), sourceOf(without), "with altered records of one")
	return f, lines, err
}

// recordsOf are the lines of a unit; nil where nothing tells which lines are its own.
func (n *neighbourhood) recordsOf(units *anonymize.Units, unit int) []int {
	if n.lines == nil {
		return nil
	}
	if name := units.Name(unit); name != "" {
		return n.lines.Of(name)
	}
	if _, all := units.Entries(unit); all == n.lines.Records() {
		return []int{unit}
	}
	return nil
}

// imported imports the log from other files, and says how many entries were read of them.
func (n *neighbourhood) imported(ctx context.Context, files []datasets.File) (t *trace.Trace, read int, err error) {
	log, err := n.Log.Changed(files)
	if err != nil {
		return nil, 0, err
	}
	counted := &countedEntries{from: log.Entries}
	log.Entries = counted
	t, err = n.importOpened(ctx, log, nil)
	return t, counted.n, err
}

// stops is the finding that the import of a neighbour fails, while the import of the log does not.
func (n *neighbourhood) stops(how string, err error) *Finding {
	f := failed(n.fig, "%s %s the import stops, so that it depends on that %s: %v", how, n.options.Unit,
		n.options.Unit, err)
	return &f
}

// compare measures two sides that differ by one unit.
func (n *neighbourhood) compare(ctx context.Context, whole, part anonymize.Source, how string) (*Finding, error) {
	shifts, differs, err := n.twice(ctx, whole, part)
	if err != nil {
		return nil, err
	}
	if len(differs) > 0 {
		n.fig["differs_in"] = differs
		f := failed(n.fig, "%s %s the model says other things that have no noise: %s", how, n.options.Unit, differs[0])
		return &f, nil
	}
	for i, one := range shifts {
		if i == len(n.most) {
			n.most = append(n.most, shift(one))
		} else if one.L2Squared*max(n.most[i].ClaimedL2Squared, 1) > n.most[i].L2Squared*max(one.ClaimedL2Squared, 1) {
			n.most[i] = shift(one)
		}
	}
	n.fig["shifts"] = n.most
	if i := slices.IndexFunc(n.most, func(s shift) bool { return release.Shift(s).Beyond() }); i >= 0 {
		f := failed(n.fig, "one %s more or less moves a statistic further than its noise hides (%s): %s",
			n.options.Unit, how, n.most[i])
		return &f, nil
	}
	return nil, nil
}

// countedEntries counts what is read.
type countedEntries struct {
	from trace.EntryReader
	n    int
}

func (c *countedEntries) Read(batch []trace.Entry) (int, error) {
	n, err := c.from.Read(batch)
	c.n += n
	return n, err
}

type shift release.Shift

func (s shift) String() string {
	return fmt.Sprintf("%s by %d of %d (squares %d of %d)", s.Statistic, s.L1, s.ClaimedL1, s.L2Squared,
		s.ClaimedL2Squared)
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
