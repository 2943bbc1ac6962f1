package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"reprise/replay/scrape"
)

// A MetricsJournal keeps samples as they come, so that a run that is killed loses
// at most the scrape under way. It is JSON lines, private to its owner: a line
// for the run, one for each series when it is first seen, and one for each
// instant with the values of several series. Arrow IPC, as results have it, would
// gain nothing: samples are few, and of lines that are cut off the last one is
// dropped without a decoder that must be guarded.
type MetricsJournal struct {
	file  *os.File
	buf   *bufio.Writer
	lines *json.Encoder
	start time.Time
	ids   map[*scrape.Series]int // series are numbered densely, in the order in which they come
}

// A metricsLine is a line of the journal: one of the four is set.
type metricsLine struct {
	Schema  string `json:"schema,omitempty"`
	Started string `json:"started,omitempty"`

	Part   *metricsPart `json:"part,omitempty"`
	Series *seriesLine  `json:"series,omitempty"`

	AtNS   int64     `json:"at_ns,omitempty"`
	IDs    []int     `json:"ids,omitempty"`
	Values []float64 `json:"values,omitempty"`
}

// A metricsPart says when a run began.
type metricsPart struct {
	AtNS int64     `json:"at_ns"` // on the run's clock
	Wall time.Time `json:"wall"`
}

type seriesLine struct {
	ID     int    `json:"id"`
	Target string `json:"target"`
	Metric string `json:"metric"`
	Kind   string `json:"kind"`
	Labels string `json:"labels"`
}

// CreateMetricsJournal begins the journal of metrics at path, of a run that started at
// that time, in RFC 3339. It refuses to replace a file.
func CreateMetricsJournal(path, started string) (*MetricsJournal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: it holds the metrics of an unfinished run: move or delete it", err)
	}
	if err != nil {
		return nil, err
	}
	j := &MetricsJournal{file: f, buf: bufio.NewWriterSize(f, 64<<10), ids: map[*scrape.Series]int{}}
	j.lines = json.NewEncoder(j.buf)
	err = errors.Join(j.lines.Encode(metricsLine{Schema: MetricsSchema, Started: started}), j.buf.Flush())
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return j, nil
}

// Begin says at which instant of the wall clock the run's clock begins.
func (j *MetricsJournal) Begin(start time.Time) error {
	j.start = start
	return errors.Join(j.lines.Encode(metricsLine{Part: &metricsPart{Wall: start.UTC().Round(0)}}), j.buf.Flush())
}

// Write writes samples, which may come from several sources. They are safe from the
// death of the process when it returns.
func (j *MetricsJournal) Write(samples []scrape.Sample) error {
	for len(samples) > 0 {
		n := 1
		for n < len(samples) && samples[n].At.Equal(samples[0].At) {
			n++
		}
		line := metricsLine{AtNS: int64(samples[0].At.Sub(j.start))}
		for _, s := range samples[:n] {
			id, known := j.ids[s.Series]
			if !known {
				id = len(j.ids)
				j.ids[s.Series] = id
				err := j.lines.Encode(metricsLine{Series: &seriesLine{id, s.Series.Target, s.Series.Metric,
					s.Series.Kind, s.Series.Labels}})
				if err != nil {
					return err
				}
			}
			line.IDs, line.Values = append(line.IDs, id), append(line.Values, s.Value)
		}
		if err := j.lines.Encode(line); err != nil {
			return err
		}
		samples = samples[n:]
	}
	return j.buf.Flush()
}

// Close closes the file.
func (j *MetricsJournal) Close() error { return errors.Join(j.buf.Flush(), j.file.Close()) }

// maxMetricsLine bounds a line that is read: a scrape of 100,000 series fits.
const maxMetricsLine = 4 << 20

var errMetricsJournal = errors.New("the journal of metrics is damaged")

// A metricsReader reads a journal. A last line without its end is not there.
type metricsReader struct {
	lines  *bufio.Scanner
	number int
	series []seriesLine
	ready  []Metric
	err    error
}

func newMetricsReader(r io.Reader) *metricsReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxMetricsLine)
	s.Split(wholeLines)
	return &metricsReader{lines: s}
}

// wholeLines splits into lines and drops what follows the last line feed.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// head reads the first line and returns when the run started.
func (r *metricsReader) head() (started string, err error) {
	line, err := r.next()
	if err == io.EOF {
		return "", errors.New("the journal of metrics ends before its first line")
	}
	if err != nil {
		return "", err
	}
	if line.Schema != MetricsSchema {
		return "", fmt.Errorf("it is not a journal of %s", MetricsSchema)
	}
	return line.Started, nil
}

func (r *metricsReader) next() (line metricsLine, err error) {
	if !r.lines.Scan() {
		if r.lines.Err() != nil {
			return line, errMetricsJournal
		}
		return line, io.EOF
	}
	r.number++
	if json.Unmarshal(r.lines.Bytes(), &line) != nil {
		return line, fmt.Errorf("%w in line %d", errMetricsJournal, r.number)
	}
	return line, nil
}

// Read implements trace.Reader.
func (r *metricsReader) Read(rows []Metric) (int, error) {
	for len(r.ready) == 0 && r.err == nil {
		r.err = r.fill()
	}
	n := copy(rows, r.ready)
	r.ready = r.ready[n:]
	if len(r.ready) > 0 {
		return n, nil
	}
	return n, r.err
}

// fill reads a line.
func (r *metricsReader) fill() error {
	line, err := r.next()
	if err != nil {
		return err
	}
	return r.take(&line)
}

// take takes what a line says.
func (r *metricsReader) take(line *metricsLine) error {
	bad := fmt.Errorf("%w in line %d", errMetricsJournal, r.number)
	if line.Part != nil {
		return nil
	}
	if s := line.Series; s != nil {
		if s.ID != len(r.series) {
			return bad
		}
		r.series = append(r.series, *s)
		return nil
	}
	if len(line.IDs) != len(line.Values) || line.AtNS < -math.MaxInt64/2 || line.AtNS > math.MaxInt64/2 {
		return bad
	}
	r.ready = r.ready[:0]
	for i, id := range line.IDs {
		if id < 0 || id >= len(r.series) {
			return bad
		}
		s := &r.series[id]
		r.ready = append(r.ready, Metric{AtNS: line.AtNS, Target: s.Target, Name: s.Metric, Kind: s.Kind,
			Labels: s.Labels, Value: line.Values[i]})
	}
	return nil
}
