package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"reprise/replay/result"
	"reprise/replay/scrape"
	"reprise/trace/crash"
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
// later.
type meter struct {
	what    Metering
	results string // path of the run's results
	path    string // of their metrics
	journal *result.MetricsJournal

	before  []scrape.Sample
	start   time.Time
	length  time.Duration // of the run
	stop    context.CancelFunc
	stopped chan error
}

// newMeter begins the journal of a run's metrics. It is nil when nothing is measured.
func newMeter(what Metering, path string, run *result.Run) (*meter, error) {
	if what == (Metering{}) {
		return nil, nil
	}
	m := &meter{what: what, results: path, path: result.MetricsName(path)}
	name := result.JournalName(m.path)
	var err error
	m.journal, err = result.CreateMetricsJournal(name, run.Started)
	return m, err
}

// drop takes the journal of a run that did not begin away.
func (m *meter) drop() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.journal.Close(), os.Remove(result.JournalName(m.path)))
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
	m.stopped = make(chan error, 1)
	// An interrupt ends the sending; what the server does with the requests in
	// flight is still measured.
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer crash.Caught()
		err := m.journal.Begin(start)
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
	if m.stopped == nil {
		return m.drop() // the run did not start
	}
	err := m.measureLast(ctx)
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
	return p.Collect(ctx, m.start, now, emit)
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
	if run.Server, err = result.SummariseMetrics(file.Reader(), from, to, run.Window == nil); err != nil {
		return err
	}
	run.Server.Shorten()
	if s := m.what.Scraper; s != nil {
		stats := s.Stats()
		run.Server.Scraped, run.Server.EveryNS = &stats, int64(s.Every())
	}
	if p := m.what.Prometheus; p != nil {
		run.Server.Prometheus = new(p.Stats())
	}
	if err := result.WriteMetrics(m.path, run, file.Reader()); err != nil {
		return fmt.Errorf("they are still in %s: %w", name, err)
	}
	return os.Remove(name)
}
