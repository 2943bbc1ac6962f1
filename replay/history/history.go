// Package history reads the results of many runs, and finds when a metric changed.
//
//  1. [Read] finds the results files below a directory, whoever made them: replay,
//     simulate, sweep, bench or compare. It summarises each as a report does.
//  2. Runs that measured the same thing make a [Series]: the same workload and load, the
//     same engine, hardware, deployment and client machine. What may differ in it is what
//     moves with time: the version or the commit of the engine.
//  3. In each series, E-divisive with a permutation test finds the runs between which a
//     metric changed. Untrusted runs are listed, and not judged.
//  4. [History.Side] tells on which side of a known difference the newest run is, for
//     git bisect.
//
// [History.WriteText], [History.Page] and JSON only lay it out.
//
// # The test
//
// E-divisive (Matteson and James 2014) compares the distances between values before and
// after each place where a series may have changed; MongoDB and Hunter use it for the
// same purpose. Times and rates count by their logarithm, since a change moves them by a
// factor, shares as they are. Random permutations of the runs say how often chance
// alone gives a difference as large. The probability of a false alarm, 1 % unless
// [Options] say otherwise, is divided by the number of metrics and series that are
// judged, so that it holds for the whole history. A further change is looked for on both
// sides of one that was found.
//
// # Files
//
//   - history.go: Options, Runs and the History; reading results files below a directory
//   - fingerprint.go: what runs of a series have in common; commits and versions
//   - series.go: series, which metrics are judged, and their changes
//   - edivisive.go: the test for one change, and the least number of runs
//   - bisect.go: the side of a known difference
//   - text.go, page.go: a history as text and as a page
//
// Exported names may change in any release.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/replay/bench"
	"reprise/replay/peerfile"
	"reprise/replay/report"
	"reprise/trace/objectstore"
)

// schema names the layout of a [History] as JSON.
const schema = "history/1"

// Options say what is judged, and how.
type Options struct {
	Metrics []bench.Metric // the first is the main one; none is [DefaultMetrics]
	// Alpha is the probability that a history without any change has one found in it; 0
	// is 0.01.
	Alpha float64
	// MinChange is the smallest change that is reported, as a share of the level before,
	// and of a metric that is a share itself, of the larger level. 0 reports all.
	MinChange float64

	Report report.Options // how runs are summarised, and which are trusted
	// Progress, when set, is told how many of the files have been read.
	Progress func(done, files int)
}

// DefaultMetrics are judged unless others are named.
func DefaultMetrics() (out []bench.Metric) {
	for _, name := range []string{"p99_ttft", "p99_itl", "p99_e2e", "output_tokens_per_s"} {
		m, err := bench.ParseMetric(name)
		if err != nil {
			panic(err) // a name of ours
		}
		out = append(out, m)
	}
	return out
}

// A History is the runs below a directory, oldest first.
type History struct {
	Schema  string   `json:"schema"` // history/1
	Dir     string   `json:"directory"`
	Metrics []string `json:"metrics"`
	// Alpha is the probability of any false alarm. Each of Tests has it divided by their
	// number.
	Alpha     float64   `json:"alpha"`
	MinChange float64   `json:"min_change"` // as in [Options]
	Tests     int       `json:"tests"`
	Series    []*Series `json:"series"` // that of the newest run first
	Runs      []*Run    `json:"runs"`

	// Unread are results files that could not be read, with the reason. Copies are
	// files of a run that another file holds too.
	Unread []string `json:"unread,omitempty"`
	Copies int      `json:"copies,omitempty"`

	metrics []bench.Metric
}

// A Run is one results file.
type Run struct {
	File        string     `json:"file"` // below the directory
	Started     time.Time  `json:"started"`
	Commit      string     `json:"commit,omitempty"` // from the note
	Note        string     `json:"note,omitempty"`
	Workload    string     `json:"workload_digest"`
	Engine      string     `json:"engine,omitempty"` // with its version, as far as known
	Version     string     `json:"reprise_version"`
	Series      string     `json:"series"`
	Requests    int64      `json:"requests"`
	Trustworthy bool       `json:"trustworthy"`
	Reasons     []string   `json:"reasons,omitempty"` // why not
	Contract    string     `json:"contract,omitempty"`
	Figures     []*float64 `json:"figures"` // of the metrics, in their order; null where the run has none
	RequestsPer *float64   `json:"requests_per_s"`

	fingerprint []part
	key         string
}

// Newest is the run that began last; nil without one.
func (h *History) Newest() *Run {
	if len(h.Runs) == 0 {
		return nil
	}
	return h.Runs[len(h.Runs)-1]
}

// errNone is wrapped by the error of a directory without results.
var errNone = errors.New("no results of a replay or simulation in it")

// Read reads the results files below a directory, and finds the changes in them.
func Read(dir string, o Options) (*History, error) {
	if len(o.Metrics) == 0 {
		o.Metrics = DefaultMetrics()
	}
	h := &History{Schema: schema, Dir: dir, Alpha: cmp.Or(o.Alpha, 0.01), MinChange: o.MinChange, metrics: o.Metrics}
	for _, m := range o.Metrics {
		h.Metrics = append(h.Metrics, m.String())
	}
	var files []string
	err := objectstore.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (filepath.Ext(path) == ".parquet" || peerfile.Recognised(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, path := range files {
		if o.Progress != nil {
			o.Progress(i, len(files))
		}
		r, err := readRun(path, o)
		name := path
		if rel, rerr := filepath.Rel(dir, path); rerr == nil && rel != "." {
			name = filepath.ToSlash(rel)
		}
		switch {
		case errors.Is(err, errOther):
		case err != nil:
			h.Unread = append(h.Unread, name+": "+strings.TrimPrefix(err.Error(), path+": "))
		case seen[r.key]:
			h.Copies++
		default:
			seen[r.key], r.File = true, name
			h.Runs = append(h.Runs, r)
		}
	}
	if len(h.Runs) == 0 && len(h.Unread) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, errNone)
	}
	slices.SortStableFunc(h.Runs, func(a, b *Run) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.File, b.File)) })
	h.judge()
	return h, nil
}

// errOther says that a file holds no results, such as a workload.
var errOther = errors.New("other Parquet")

// otherParquet is errOther for a sound file of something else, and nil for results and
// what is damaged.
func otherParquet(path string) error {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil
	}
	if _, ok := p.Lookup("reprise.run"); ok {
		return nil
	}
	return errOther
}

func readRun(path string, o Options) (*Run, error) {
	f, err := peerfile.Open(path)
	if err != nil {
		return nil, cmp.Or(otherParquet(path), err)
	}
	defer f.Close()
	s, err := report.Summarise(f.Run, f.Reader(), o.Report)
	if err != nil {
		return nil, err
	}
	run := &f.Run
	r := &Run{Commit: commitOf(run.Note), Note: run.Note, Workload: run.Workload, Engine: engineOf(run), Version: run.Version, Requests: s.Requests.Rows,
		Trustworthy: s.Verdict.Trustworthy, RequestsPer: s.Throughput.RequestsPerS, fingerprint: fingerprint(run)}
	for _, reason := range s.Verdict.Reasons {
		r.Reasons = append(r.Reasons, reason.Text)
	}
	if c := s.Contract; c != nil {
		r.Contract = c.String()
	}
	for _, m := range o.Metrics {
		var figure *float64
		if v, ok := m.Of(&s); ok && !v.Largest {
			figure = &v.V
		}
		r.Figures = append(r.Figures, figure)
	}
	// A simulation has no instant at which it began: the file has one.
	if r.Started, err = time.Parse(time.RFC3339, run.Started); err != nil {
		info, err := objectstore.Stat(path)
		if err != nil {
			return nil, err
		}
		r.Started = info.ModTime()
	}
	r.key = fmt.Sprint(run.Started, run.Workload, run.TraceID, run.Requests, run.Note)
	if run.Started == "" {
		r.key = path
	}
	r.Started = r.Started.UTC()
	return r, nil
}
