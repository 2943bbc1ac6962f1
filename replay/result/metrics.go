package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// MetricsSchema names the layout of a metrics file.
const MetricsSchema = "metrics/1"

// startedKey is where a metrics file keeps the [Run].Started of its run, by which
// it is distinguished from the file of another run with the same name.
const startedKey = "reprise.run_started"

// A Metric is one value of a server's series, a row of the metrics file. Its
// strings are names of metrics, and labels by an allow-list, see package scrape.
type Metric struct {
	trace.Row `parquet:"-"`

	AtNS   int64   `parquet:"at_ns,delta"` // from the start of the run, on its clock; the first are before it
	Target string  `parquet:"target,dict"`
	Name   string  `parquet:"metric,dict"`
	Kind   string  `parquet:"kind,dict"`   // counter or gauge
	Labels string  `parquet:"labels,dict"` // k=v, sorted, with commas between them
	Value  float64 `parquet:"value"`
}

// MetricsName is the name of the metrics file of the results, or of the journal,
// at path.
func MetricsName(path string) string {
	path = strings.TrimSuffix(path, JournalName(""))
	return strings.TrimSuffix(path, ".parquet") + ".metrics.parquet"
}

// A MetricsFile holds what was measured at the servers during a run: a Parquet
// file beside the results, or the journal of a run that did not finish.
type MetricsFile struct {
	Started    string // of the run
	Unfinished bool   // this is a journal; its last second may be missing

	name string
	file objectstore.File
	size int64
}

// OpenMetrics opens the metrics of the results, or of the journal, at path. There
// need not be any, which is [fs.ErrNotExist]. Rows of one series are in order of
// time.
func OpenMetrics(path string) (*MetricsFile, error) {
	name := MetricsName(path)
	f, err := objectstore.Open(name)
	if strings.HasSuffix(path, JournalName("")) || errors.Is(err, fs.ErrNotExist) {
		// A journal's metrics are in a journal, whatever an earlier run left.
		if err == nil {
			f.Close()
		}
		name = JournalName(name)
		f, err = objectstore.Open(name)
	}
	if err != nil {
		return nil, err
	}
	m := &MetricsFile{name: name, file: f, Unfinished: name != MetricsName(path)}
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return m, nil
}

func (m *MetricsFile) open() error {
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	m.size = info.Size()
	if m.Unfinished {
		r := newMetricsReader(io.NewSectionReader(m.file, 0, m.size))
		m.Started, err = r.head()
		return err
	}
	r, err := trace.NewRowsReader[Metric](m.file, m.size)
	if err != nil {
		return err
	}
	if schema, _ := r.Metadata("reprise.schema"); schema != MetricsSchema {
		return fmt.Errorf("its schema is not %s", MetricsSchema)
	}
	m.Started, _ = r.Metadata(startedKey)
	return nil
}

// Reader reads the rows from the beginning; it may be called any number of times.
func (m *MetricsFile) Reader() trace.Reader[Metric] {
	if m.Unfinished {
		r := newMetricsReader(io.NewSectionReader(m.file, 0, m.size))
		_, err := r.head()
		r.err = err
		return r
	}
	r, err := trace.NewRowsReader[Metric](m.file, m.size)
	if err != nil {
		return failedReader{err}
	}
	return r
}

type failedReader struct{ err error }

func (f failedReader) Read([]Metric) (int, error) { return 0, f.err }

// Close closes the file; its readers end with it.
func (m *MetricsFile) Close() error { return m.file.Close() }

// WriteMetrics writes a metrics file of a run, which appears whole or not at all.
func WriteMetrics(path string, run *Run, rows trace.Reader[Metric]) error {
	return trace.WriteFile(path, trace.TierMode(run.Tier), func(w io.Writer) error {
		out := trace.NewRowsWriter[Metric](w, nil)
		out.SetMetadata("reprise.schema", MetricsSchema)
		out.SetMetadata(startedKey, run.Started)
		if _, err := trace.Copy(out, rows); err != nil {
			return err
		}
		return out.Close()
	})
}
