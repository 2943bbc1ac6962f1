package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// measureServer makes a run at a server, or takes one up that is complete. One that the client
// limited is made once more.
func (f *Frontier) measureServer(ctx context.Context, class *LengthClass, e *FrontierEngine, run *frontierRun,
	ended *endedRequests) (end frontierEnd, err error) {
	t := Trial{Name: fmt.Sprintf("concurrency-%d", run.inFlight), Load: Load{Concurrency: run.inFlight},
		Warmup: fmt.Sprint(run.inFlight)}
	t.Results = f.Dir.Results(fileName(e.Name), fileName(class.Name), t.Name)
	t.Workload = filepath.Dir(t.Results) + ".parquet"
	if err := os.MkdirAll(filepath.Dir(t.Workload), 0o755); err != nil {
		return end, err
	}
	s := Sweep{Target: e.Target, About: e.About, Report: f.Report, Seed: f.Seed, Dir: f.Dir}
	k := Keys{Workload: class.Name, Load: t.Load.String(), Server: e.Name}
	t.Seed = s.seed("frontier " + class.Name + " " + t.Name)
	if s.Digest, err = writeRows(t.Workload, run.rows); err != nil {
		return end, err
	}
	var summary report.Summary
	for range 2 {
		if summary, err = s.measureOnce(ctx, k, t, Beginning{}); err != nil {
			return end, err
		}
		limit := s.clientLimit(&summary)
		if end.untrusted = ""; limit == nil {
			break
		}
		end.untrusted = limit.Text
	}
	e.take(&summary.Run)
	if end.untrusted != "" {
		return end, nil
	}
	for _, r := range summary.Verdict.Reasons { // only those of the server are left
		return frontierEnd{refused: r.Text}, nil
	}
	if summary.Servers != nil {
		ended.joules = summary.Servers.JoulesPerToken
	}
	_, err = ended.read(t.Results)
	return end, err
}

// read takes the requests of a results file that were answered, and returns its run.
func (w *endedRequests) read(path string) (result.Run, error) {
	results, err := result.Open(path)
	if err != nil {
		return result.Run{}, err
	}
	defer results.Close()
	return results.Run, trace.Each(results.Reader(), func(_ int64, r *result.Result) error {
		if r.Error == "" {
			w.add(r)
		}
		return nil
	})
}

// take takes over what a run says of the server.
func (e *FrontierEngine) take(run *result.Run) {
	e.Model, e.Server, e.Started = run.Model, cmp.Or(run.ServerVersion, e.Server), cmp.Or(e.Started, run.Started)
	if n := run.Environment.GPUCount(); e.Assumed && n > 0 {
		e.GPUs, e.Assumed = n, false
	}
}

// writeRows writes the workload of a level, and returns the digest of its rows.
func writeRows(path string, rows []trace.Request) (string, error) {
	err := trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := dst.Write(rows)
		return trace.Meta{Schema: trace.Schema, SourceFormat: "frontier", TimeUnit: "ns", Tier: "public"}, err
	})
	if err != nil {
		return "", err
	}
	w, err := trace.Open(path)
	if err != nil {
		return "", err
	}
	return w.Meta.Digest, w.Close()
}

// fileName is a name as a folder has it.
func fileName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".-_", r) {
			return r
		}
		return '-'
	}, name), ".")
}
