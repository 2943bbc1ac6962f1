package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A stored trial lies beside its results, so that a sweep which was stopped takes up
// those of the same trial and of no other.
type stored struct {
	Trial  Trial  `json:"trial"`
	Digest string `json:"workload_digest"`
	Target string `json:"target"`
}

// measure makes a trial, unless its results are complete, and writes its summary.
func (s *Sweep) measure(ctx context.Context, t Trial) (report.Summary, error) {
	dir := filepath.Dir(t.Results)
	want := stored{t, s.Digest, s.About}
	want.Trial.Workload, want.Trial.Results = "", "" // paths may change
	doc, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return report.Summary{}, err
	}
	doc = append(doc, '\n')
	done, err := complete(t.Results, filepath.Join(dir, "trial.json"), doc)
	if err != nil {
		return report.Summary{}, err
	}
	if done {
		summary, err := s.summarise(t)
		if err != nil || clientLimit(&summary) == "" {
			return summary, err
		}
		if err := setAside(dir, "untrusted"); err != nil {
			return summary, err
		}
	}
	if err := s.make(ctx, t, filepath.Join(dir, "trial.json"), doc); err != nil {
		return report.Summary{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	return s.summarise(t)
}

// summarise summarises the results of a trial, and keeps the summary beside them.
func (s *Sweep) summarise(t Trial) (report.Summary, error) {
	summary, err := Summarise(t.Results, s.Report)
	if err != nil {
		return summary, err
	}
	path := filepath.Join(filepath.Dir(t.Results), "summary.json")
	return summary, trace.WriteFile(path, 0o644, func(w io.Writer) error { return report.WriteJSON(w, summary) })
}

// setAside makes place for a level that is measured again. What was measured is kept
// under another name, which says why.
func setAside(dir, why string) error {
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s.%s-%d", dir, why, i)
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(dir, name); err != nil {
			return err
		}
		return os.MkdirAll(dir, 0o755)
	}
}

// make makes the trial, after what says which it is was written.
func (s *Sweep) make(ctx context.Context, t Trial, path string, doc []byte) error {
	err := trace.WriteFile(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(doc)
		return err
	})
	if err != nil {
		return err
	}
	return s.Target.Run(ctx, t)
}

// complete tells whether the results of a trial are there, whole. What is left of a
// run of it that did not finish is set aside; results of another trial are refused.
func complete(results, path string, want []byte) (bool, error) {
	f, err := result.Open(results)
	stopped := errors.Is(err, fs.ErrNotExist)
	if stopped {
		f, err = result.Open(result.JournalName(results))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stopped = stopped || f.Run.EndedEarly != ""
	if err := f.Close(); err != nil {
		return false, err
	}
	got, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	dir := filepath.Dir(results)
	if string(got) != string(want) {
		return false, fmt.Errorf("%s holds results of another trial: name another directory", dir)
	}
	if stopped {
		return false, setAside(dir, "stopped")
	}
	return true, nil
}

// flowIn is the flow of a results file.
func flowIn(path string) (Flow, error) {
	results, err := result.Open(path)
	if err != nil {
		return Flow{}, err
	}
	defer results.Close()
	return flowOf(&results.Run, results.Reader)
}
