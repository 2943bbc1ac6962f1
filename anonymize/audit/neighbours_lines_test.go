package audit

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
)

// gatewayLog is a log of 40 users, of whom the last but one shows by his counts that cached tokens
// stand beside the input.
func gatewayLog() string {
	var b strings.Builder
	for i := range 400 {
		user, input, cached := i%40, 900+i, 640
		if user == 38 {
			input, cached = 20, 640
		}
		fmt.Fprintf(&b, `{"ts":"2026-01-02T03:%02d:%02dZ","user":"u%d","model":"m","in":%d,"cached":%d,"out":%d}`+"\n", i/60, i%60, user, input, cached, 20+i%7)
	}
	return b.String()
}

// changeable is a log whose bytes can be changed before it is read. plant is put behind its reader.
func changeable(t *testing.T, text string, maps []string, plant func(trace.EntryReader) trace.EntryReader) *Case {
	t.Helper()
	m, err := datasets.ParseMapping(maps)
	if err != nil {
		t.Fatal(err)
	}
	capture, err := datasets.ParseCapture("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	files := []datasets.File{{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}}
	o := datasets.Options{Map: m, Capture: capture}
	c := publicCase(t, anonymize.UnitUser, traffic(9, 3, 20), maker{})
	log := c.Log
	log.Policy.Capture = capture
	log.Changed = func(files []datasets.File) (*Opened, error) {
		src, err := datasets.OpenFiles(files, o)
		if err != nil {
			return nil, err
		}
		entries := trace.EntryReader(src)
		if plant != nil {
			entries = plant(entries)
		}
		return &Opened{Entries: entries, Close: src.Close, Meta: func(card anonymize.Card) (trace.Meta, error) {
			m, err := metaOf(card)
			m.Sessions, m.BlockSize, m.Capture = "", 0, capture
			return m, err
		}}, nil
	}
	log.Open = func() (*Opened, error) { return log.Changed(files) }
	log.Lines = func(unit string) (*datasets.Lines, error) {
		return datasets.NewLines(files, o, "jsonl", unit)
	}
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		t.Fatal(err)
	}
	card.Sessions.CaptureNS = int64(capture.Length())
	if c.Output.Meta["card"], c.Output.Meta["card_sha256"], err = card.JSON(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A majority is the rule that import once had: where the cached tokens stand is decided for all
// entries by what some of them show.
type majority struct {
	from trace.EntryReader
	all  []trace.Entry
	read bool
}

func (m *majority) Read(batch []trace.Entry) (int, error) {
	if !m.read {
		m.read = true
		beside := false
		buffer := make([]trace.Entry, 64)
		for {
			n, err := m.from.Read(buffer)
			for i := range n {
				m.all = append(m.all, buffer[i])
				beside = beside || shows(&buffer[i])
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return 0, err
			}
		}
		for i := range m.all {
			if e := &m.all[i]; beside && !shows(e) {
				e.InputTokens = trace.Ptr(*e.InputTokens + *e.Cached)
			}
		}
	}
	n := copy(batch, m.all)
	if m.all = m.all[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// shows reports whether cached tokens were added to the input.
func shows(e *trace.Entry) bool { return 10**e.Cached > 9**e.InputTokens }

// What a reader decides for all records by those of one user shows when these are taken out of the
// bytes of the log, and not when they are taken out of what it read.
func TestNeighboursOfTheReader(t *testing.T) {
	maps := []string{"time=ts", "user=user", "model=model", "input_tokens=in", "cached_tokens=cached", "output_tokens=out"}
	f := neighbours(t.Context(), changeable(t, gatewayLog(), maps, nil))
	if f.Status != Pass || f.Figures["log_was_changed"] != neighbourUnits || !strings.Contains(f.Why, "from the bytes of the log on") {
		t.Errorf("without a leak: %s: %s %v", f.Status, f.Why, f.Figures)
	}
	plant := func(from trace.EntryReader) trace.EntryReader { return &majority{from: from} }
	c := changeable(t, gatewayLog(), maps, plant)
	if f = neighbours(t.Context(), c); f.Status != Fail || !strings.Contains(f.Why, "more or less moves a statistic") {
		t.Errorf("a rule that one user decides for all is not seen: %s: %s %v", f.Status, f.Why, f.Figures)
	}
	c = changeable(t, gatewayLog(), maps, plant)
	c.Log.Lines = nil
	if f = neighbours(t.Context(), c); f.Status == Fail {
		t.Errorf("it is seen without the bytes: then the test shows nothing: %s", f.Why)
	}
	// A rule that no user of the log decides, and that altered records of one do.
	never := strings.ReplaceAll(gatewayLog(), `"in":20,`, `"in":900,`)
	if f = neighbours(t.Context(), changeable(t, never, maps, plant)); f.Status != Fail || !strings.Contains(f.Why, "altered") {
		t.Errorf("altered records of one user change all others unseen: %s: %s", f.Status, f.Why)
	}
}
