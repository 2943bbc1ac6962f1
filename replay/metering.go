package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

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
// behind it.
type meter struct {
	what    Metering
	path    string
	journal *metricsJournal
	ids     seriesIDs

	before  []scrape.Sample
	start   time.Time
	length  time.Duration // of the run
	stop    context.CancelFunc
	stopped chan error
}

// newMeter begins the journal of a run's metrics. It is nil when nothing is
// measured.
func newMeter(what Metering, path, started string) (*meter, error) {
	if what == (Metering{}) {
		return nil, nil
	}
	m := &meter{what: what, path: MetricsName(path)}
	var err error
	m.journal, err = createMetricsJournal(JournalName(m.path), started)
	return m, err
}

// drop takes the journal of a run that did not begin away.
func (m *meter) drop() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.journal.close(), os.Remove(JournalName(m.path)))
}

// prepare scrapes before the run, and makes begin be called when it starts.
func (m *meter) prepare(ctx context.Context, o *Options) {
	if m == nil {
		return
	}
	if m.what.Scraper != nil {
		m.before = m.what.Scraper.Once(ctx)
	}
	begun := o.Begun
	o.Begun = func(start time.Time) {
		m.begin(ctx, start)
		if begun != nil {
			begun(start)
		}
	}
}

// begin scrapes in the background from the start of the run on.
func (m *meter) begin(ctx context.Context, start time.Time) {
	m.start, m.journal.start = start, start
	m.stopped = make(chan error, 1)
	// An interrupt ends the sending; what the server does with the requests in
	// flight is still measured.
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		err := m.journal.write(m.before, &m.ids)
		if s := m.what.Scraper; err == nil && s != nil {
			err = s.Run(ctx, start, func(samples []scrape.Sample) error { return m.journal.write(samples, &m.ids) })
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
func (m *meter) end(ctx context.Context, run *Run) error {
	if m == nil {
		return nil
	}
	if m.stopped == nil {
		return m.drop() // the run did not start
	}
	err := errors.Join(m.last(ctx), m.journal.close())
	if err == nil {
		err = m.finish(run)
	}
	if err != nil {
		return fmt.Errorf("replay: the servers' metrics: %w", err)
	}
	return nil
}

// last ends the scraping and asks for what comes after a run.
func (m *meter) last(ctx context.Context) error {
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
	emit := func(samples []scrape.Sample) error { return m.journal.write(samples, &m.ids) }
	if s := m.what.Scraper; s != nil {
		if err := emit(s.Once(ctx)); err != nil {
			return err
		}
	}
	if p := m.what.Prometheus; p != nil {
		return p.Collect(ctx, m.start, time.Now(), emit)
	}
	return nil
}

// finish turns the journal into the metrics file.
func (m *meter) finish(run *Run) error {
	name := JournalName(m.path)
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	file := &MetricsFile{name: name, file: f, Unfinished: true}
	defer file.Close()
	if err := file.open(); err != nil {
		return err
	}
	from, to := run.Window.span(int64(m.length))
	if run.Server, err = SummariseMetrics(file.Reader(), from, to, run.Window == nil); err != nil {
		return err
	}
	run.Server.shorten()
	if s := m.what.Scraper; s != nil {
		stats := s.Stats()
		run.Server.Scraped, run.Server.EveryNS = &stats, int64(s.Every())
	}
	if p := m.what.Prometheus; p != nil {
		stats := p.Stats()
		run.Server.Prometheus = &stats
	}
	if err := writeMetrics(m.path, run.Started, file.Reader()); err != nil {
		return fmt.Errorf("they are still in %s: %w", name, err)
	}
	return os.Remove(name)
}

// span is the time of a window, in a run that was over at some instant.
func (w *Window) span(over int64) (from, to int64) {
	to = over
	if w == nil {
		return 0, to
	}
	if w.From != nil {
		from = min(w.From.DueNS, math.MaxInt64/2)
	}
	if w.To != nil {
		to = min(w.To.DueNS, to)
	}
	return from, to
}
