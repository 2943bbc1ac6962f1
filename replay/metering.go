package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"reprise/replay/result"
	"reprise/replay/scrape"
)

// Metering says what is measured at the servers during a run, see
// [Runner.Record]. Nothing that fails there fails the run: it is counted.
type Metering struct {
	Scraper    *scrape.Scraper    // nil scrapes nothing
	Prometheus *scrape.Prometheus // asked after the run; nil asks nobody
}

// A meter is a Metering under way.
//
// Once before the run everything is scraped, so that counters have a beginning
// before the first request; then every interval on the run's clock; and once more
// an interval after the last answer, since engines publish what they did a little
// later. A part of a run that was interrupted is measured like a run of its own,
// in the same journal.
type meter struct {
	what    Metering
	results string // path of the run's results
	path    string // of their metrics
	journal *result.MetricsJournal
	gap     *result.Interruption // the last; nil in a run that was not interrupted
	parts   []result.MetricsPart // those before it

	before  []scrape.Sample
	start   time.Time
	length  time.Duration // of the run
	stop    context.CancelFunc
	stopped chan error
}

// newMeter begins the journal of a run's metrics, or goes on with it. It is nil when
// nothing is measured.
func newMeter(what Metering, path string, run *result.Run) (*meter, error) {
	if what == (Metering{}) {
		return nil, nil
	}
	m := &meter{what: what, results: path, path: result.MetricsName(path)}
	name := result.JournalName(m.path)
	var err error
	n := len(run.Resumed)
	if n == 0 {
		m.journal, err = result.CreateMetricsJournal(name, run.Started)
		return m, err
	}
	m.gap = &run.Resumed[n-1]
	if m.journal, m.parts, err = result.ResumeMetricsJournal(name, run.Started, m.gap.AtNS); err != nil {
		return nil, err
	}
	return m, nil
}

// metered holds what is to be measured in a run that goes on against what was.
func (m *Metering) metered(path string) error {
	_, err := os.Stat(result.JournalName(result.MetricsName(path)))
	words := map[bool]string{true: "measured", false: "none"}
	if was, asks := err == nil, *m != (Metering{}); was != asks {
		return &Disagreement{"metering_of_servers", words[was], words[asks]}
	}
	return nil
}

// drop takes the journal of a run that did not begin away. That of one that was
// interrupted stays.
func (m *meter) drop() error {
	if m == nil {
		return nil
	}
	err := m.journal.Close()
	if m.gap == nil {
		err = errors.Join(err, os.Remove(result.JournalName(m.path)))
	}
	return err
}

// prepare scrapes before the run. It returns what is to be called when the run starts,
// in place of begun.
func (m *meter) prepare(ctx context.Context, begun func(start time.Time)) func(start time.Time) {
	if m == nil {
		return begun
	}
	if m.what.Scraper != nil {
		m.before = m.what.Scraper.Once(ctx)
	}
	return func(start time.Time) {
		m.begin(ctx, start)
		if begun != nil {
			begun(start)
		}
	}
}

// begin scrapes in the background from the start of the run on.
func (m *meter) begin(ctx context.Context, start time.Time) {
	m.start = start
	at := time.Duration(0)
	if m.gap != nil {
		at = time.Duration(m.gap.AtNS)
		for i := range m.before { // the clock stood still while they were taken
			m.before[i].At = start.Add(at)
		}
	}
	m.stopped = make(chan error, 1)
	// An interrupt ends the sending; what the server does with the requests in
	// flight is still measured.
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		err := m.journal.Part(start, at)
		if err == nil {
			err = m.journal.Write(m.before)
		}
		if s := m.what.Scraper; err == nil && s != nil {
			err = s.Run(ctx, start, func(samples []scrape.Sample) error { return m.journal.Write(samples) })
		}
		m.stopped <- err
	}()
}

// over says that the last request has ended: gauges count no further.
func (m *meter) over() {
	if m != nil {
		m.length = time.Since(m.start)
	}
}

// end measures a last time, writes the metrics file and notes in run what it
// says.
func (m *meter) end(ctx context.Context, run *result.Run) error {
	if m == nil {
		return nil
	}
	var err error
	switch {
	case m.stopped != nil:
		err = m.measureLast(ctx)
	case m.gap == nil:
		return m.drop() // the run did not start
	default:
		m.length = time.Duration(m.gap.AtNS)
	}
	if err = errors.Join(err, m.journal.Close()); err == nil {
		err = m.finish(run)
	}
	if err != nil {
		return fmt.Errorf("replay: the servers' metrics: %w", err)
	}
	return nil
}

// measureLast ends the scraping and asks for what comes after a run.
func (m *meter) measureLast(ctx context.Context) error {
	if s := m.what.Scraper; s != nil {
		wait := time.NewTimer(s.Every())
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	m.stop()
	if err := <-m.stopped; err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // each answer has a time limit of its own
	emit := func(samples []scrape.Sample) error { return m.journal.Write(samples) }
	if s := m.what.Scraper; s != nil {
		if err := emit(s.Once(ctx)); err != nil {
			return err
		}
	}
	p, now := m.what.Prometheus, time.Now()
	if p == nil {
		return nil
	}
	// A Prometheus server is asked for each part of the run: on the run's clock no time
	// passed between them.
	if m.gap == nil {
		return p.Collect(ctx, m.start, now, emit)
	}
	for i, part := range m.parts {
		end := m.gap.AtNS
		if i+1 < len(m.parts) {
			end = m.parts[i+1].AtNS
		}
		if end <= part.AtNS {
			continue // it was killed before its first result
		}
		start := part.Wall.Add(-time.Duration(part.AtNS))
		m.journal.Count(start)
		if err := p.Collect(ctx, part.Wall, start.Add(time.Duration(end-1)), emit); err != nil {
			return err
		}
	}
	m.journal.Count(m.start)
	return p.Collect(ctx, m.start.Add(time.Duration(m.gap.AtNS)), now, emit)
}

// finish turns the journal into the metrics file.
func (m *meter) finish(run *result.Run) error {
	name := result.JournalName(m.path)
	file, err := result.OpenMetrics(result.JournalName(m.results))
	if err != nil {
		return err
	}
	defer file.Close()
	from, to := run.Window.Span(int64(m.length))
	if run.Server, err = result.SummariseMetrics(file.Reader(), from, to, run.Window == nil, run.Resumed); err != nil {
		return err
	}
	run.Server.Shorten()
	if s := m.what.Scraper; s != nil {
		stats := s.Stats()
		run.Server.Scraped, run.Server.EveryNS = &stats, int64(s.Every())
	}
	if p := m.what.Prometheus; p != nil {
		stats := p.Stats()
		run.Server.Prometheus = &stats
	}
	if err := result.WriteMetrics(m.path, run.Started, file.Reader()); err != nil {
		return fmt.Errorf("they are still in %s: %w", name, err)
	}
	return os.Remove(name)
}
