package audit

import (
	"context"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// publicCase is a public model of a log, by its card, and the log with a declared
// window of an hour before the first request and after the last.
func publicCase(t *testing.T, unit string, entries []trace.Entry, m maker) *Case {
	t.Helper()
	window := trace.RelativeCapture(0, entries[len(entries)-1].Time.Sub(entries[0].Time)+2*time.Hour)
	log := logOf(t, entries)
	open := log.Open
	log.Open = func() (*Opened, error) {
		o, err := open()
		o.Meta = func(c anonymize.Card) (trace.Meta, error) {
			m, err := metaOf(c)
			m.Capture = window
			return m, err
		}
		return o, err
	}
	log.Policy.Capture = trace.Capture{Begin: entries[0].Time.Add(-time.Hour), End: entries[len(entries)-1].Time.Add(time.Hour)}
	card := anonymize.SessionsCard(dp.SessionStatement{Unit: unit, Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, MaxInput: 1 << 17, MaxOutput: 1 << 14, CaptureNS: int64(window.Length()), Trunks: &dp.Trunks{Blocks: 8}}, trace.Meta{Tier: anonymize.Public})
	text, hash, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Log: log, maker: m, Seed: 2, Output: &Output{Kind: "model", Meta: map[string]string{"tier": anonymize.Public, "card": text, "card_sha256": hash}}}
	t.Cleanup(func() { c.Close() })
	return c
}

// A log with one user more or less, imported and measured, changes by no more than the noise
// hides. What each bug lets out is caught.
func TestNeighboursOfTheWholePipeline(t *testing.T) {
	entries := traffic(9, 12, 160)
	lone := entries[0] // a user of one request, ten minutes before everybody else
	lone.User, lone.Session, lone.Time = trace.NewText("first@example"), trace.NewText("first"), lone.Time.Add(-10*time.Minute)
	lone.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(strings.Repeat("tree house ", 4000))}}
	entries = append([]trace.Entry{lone}, entries...)
	for _, unit := range []string{anonymize.UnitUser, anonymize.UnitSession, anonymize.UnitRequest} {
		f := neighbours(t.Context(), publicCase(t, unit, entries, maker{}))
		if f.Status != Pass || f.Figures["units_left_out"].(int) < 2 {
			t.Errorf("by %s: %s: %s %v", unit, f.Status, f.Why, f.Figures)
		}
	}
	for name, c := range map[string]struct {
		bug
		says string
	}{
		"time zero is the first request": {bug{rows: func(_ anonymize.Policy, _ []trace.Entry, rows []trace.Request) {
			for i := len(rows) - 1; i >= 0; i-- {
				rows[i].ArrivalNS -= rows[0].ArrivalNS
			}
		}}, "start by"},
		"lengths depend on the longest of all": {bug{rows: func(_ anonymize.Policy, _ []trace.Entry, rows []trace.Request) {
			longest := int32(0)
			for i := range rows {
				longest = max(longest, rows[i].InputTokens)
			}
			for i := range rows {
				rows[i].InputTokens = longest/2 + 1 + rows[i].InputTokens%2
			}
		}}, "more or less moves a statistic"},
		"one user of all sessions": {bug{rows: func(_ anonymize.Policy, _ []trace.Entry, rows []trace.Request) {
			for i := range rows {
				rows[i].User = trace.Ptr(int64(i)) // requests count as users
			}
		}}, "more or less moves a statistic"},
	} {
		f := neighbours(t.Context(), publicCase(t, anonymize.UnitUser, entries, planted(c.bug)))
		if f.Status != Fail || !strings.Contains(f.Why, c.says) {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	spoiled := planted(bug{})
	run := spoiled.run
	spoiled.run = func(ctx context.Context, p anonymize.Policy, src trace.EntryReader, dst trace.Writer[trace.Request]) (anonymize.Card, error) {
		c := &counted{src: src}
		card, err := run(ctx, p, c, dst)
		if c.n%2 == 0 { // the template of the card tells how many entries there were
			card.Tokenizer += "-even"
		}
		return card, err
	}
	if f := neighbours(t.Context(), publicCase(t, anonymize.UnitRequest, entries, spoiled)); f.Status != Fail || !strings.Contains(f.Why, "metadata reprise.tokenizer") {
		t.Errorf("the card depends on a request: %s: %s", f.Status, f.Why)
	}
	c := publicCase(t, anonymize.UnitUser, entries, maker{})
	src, err := c.Before(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Log = nil
	c.Internal = c.before
	if f := neighbours(t.Context(), c); f.Status != Pass || !strings.Contains(f.Why, "the import was not judged") || src.Meta.Tier != anonymize.Internal {
		t.Errorf("of the internal trace: %s: %s", f.Status, f.Why)
	}
}

// counted counts the entries that are read.
type counted struct {
	src trace.EntryReader
	n   int
}

func (c *counted) Read(batch []trace.Entry) (int, error) {
	n, err := c.src.Read(batch)
	c.n += n
	return n, err
}

// What is counted for sessions that are drawn moves by one unit at most, whatever the unit
// is; what depends on somebody else is found.
func TestNeighboursOfDrawnSessions(t *testing.T) {
	entries := traffic(12, 12, 160)
	drawn := func(c *Case, unit string, trunk int) *Case {
		s := dp.SessionStatement{Unit: unit, Budget: dp.Budget{Epsilon: 8, Delta: 1e-6}, MaxInput: 1 << 17, MaxOutput: 1 << 14}
		if src, err := c.Before(t.Context()); err == nil {
			s.CaptureNS = int64(src.Meta.Capture.Length())
		}
		if trunk > 0 {
			s.Trunks = &dp.Trunks{Blocks: trunk}
		}
		text, hash, err := anonymize.SessionsCard(s, trace.Meta{Tier: anonymize.Partner}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		c.Output = &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Partner, "card": text, "card_sha256": hash}}
		return c
	}
	for _, unit := range []string{anonymize.UnitUser, anonymize.UnitSession, anonymize.UnitRequest} {
		f := neighbours(t.Context(), drawn(publicCase(t, unit, entries, maker{}), unit, 8))
		if f.Status != Pass || f.Figures["units_left_out"].(int) < 2 || f.Figures["import_was_judged"] != true {
			t.Errorf("by %s: %s: %s %v", unit, f.Status, f.Why, f.Figures)
		}
	}
	nameless := publicCase(t, anonymize.UnitSession, entries, planted(bug{rows: func(_ anonymize.Policy, _ []trace.Entry, rows []trace.Request) {
		for i := range rows {
			rows[i].Session, rows[i].User = nil, nil
		}
	}}))
	open := nameless.Log.Open
	nameless.Log.Open = func() (*Opened, error) {
		o, err := open()
		of := o.Meta
		o.Meta = func(c anonymize.Card) (trace.Meta, error) {
			m, err := of(c)
			m.Sessions = "inferred"
			return m, err
		}
		return o, err
	}
	if f := neighbours(t.Context(), drawn(nameless, anonymize.UnitSession, 1)); f.Status != Pass || f.Figures["import_was_judged"] != false {
		t.Errorf("by prefix: %s: %s %v", f.Status, f.Why, f.Figures)
	}
	longest := publicCase(t, anonymize.UnitUser, entries, planted(bug{rows: func(_ anonymize.Policy, _ []trace.Entry, rows []trace.Request) {
		for i := range rows { // of a user alone, but for how many there are
			rows[i].InputTokens *= int32(len(rows))
		}
	}}))
	if f := neighbours(t.Context(), drawn(longest, anonymize.UnitUser, 8)); f.Status != Fail || !strings.Contains(f.Why, "more or less moves a statistic") {
		t.Errorf("lengths depend on the number of rows: %s: %s", f.Status, f.Why)
	}
}
