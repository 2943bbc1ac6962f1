package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/bench"
	"reprise/replay/host"
	"reprise/replay/internal/resulttest"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page/pagetest"
	"reprise/trace/textpage"
)

var began = time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)

// record writes a run of 120 requests whose times to first token are around ttft
// milliseconds.
func record(t *testing.T, path string, ttft float64, change func(*result.Run)) {
	t.Helper()
	run := result.Run{Started: began.Format(time.RFC3339Nano), Version: "v1", Load: result.Load{API: "completions", Model: "m", Timing: result.OpenLoop, Speed: 1},
		Source: result.Source{Workload: "sha256:0123456789abcdef", Seed: "1"}, Sending: result.Sending{Requests: 120}, Client: result.Client{ClientCPU: 0.1, Cores: 2},
		Clock:       result.Clock{Stalls: &result.Stalls{}},
		Environment: &result.Environment{Host: host.Machine{OS: "linux", Cores: 2}, Deployment: &result.Deployment{GPU: "H100", GPUs: 1, Engine: "vLLM 0.10.1", EngineFlags: "--max-num-seqs 8 --port 8001"}}}
	change(&run)
	var rows []result.Result
	for i := range int64(120) {
		first := int64(ttft) + i%20
		rows = append(rows, resulttest.Answer(i, 50*i, 0, first, first+10, first+20))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
}

// nightly writes n runs, a day apart. From run number step on they are slower by a
// quarter.
func nightly(t *testing.T, dir string, n, step int) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		ttft := 200 * math.Exp(0.02*rng.NormFloat64())
		if i >= step {
			ttft *= 1.25
		}
		record(t, filepath.Join(dir, fmt.Sprintf("night-%02d.parquet", i)), ttft, func(r *result.Run) {
			r.Started = began.AddDate(0, 0, i).Format(time.RFC3339Nano)
			r.Note = fmt.Sprintf("nightly, commit=%02x%038x", i, 0xabcdef)
			r.Seed, r.Version = fmt.Sprint(i), fmt.Sprintf("v%d", i)
			r.Environment.Host.Kernel, r.Environment.Deployment.Engine = fmt.Sprint(i), fmt.Sprintf("vLLM 0.%d", i)
			r.Environment.Deployment.EngineFlags = fmt.Sprintf("--max-num-seqs 8 --port %d", 8000+i)
		})
	}
}

func read(t *testing.T, dir string, metrics ...string) *History {
	t.Helper()
	var o Options
	for _, name := range metrics {
		m, err := bench.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Metrics = append(o.Metrics, m)
	}
	h, err := Read(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func text(t *testing.T, h *History, details bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := h.WriteText(&b, textpage.Options{Width: 80, Details: details, Rest: "All runs and metrics: --details. Page with plots: --html FILE."}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A change is found between the right runs, though versions, seeds, kernels and ports
// differ from run to run. A run that is not trusted is listed and not judged.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	nightly(t, dir, 18, 12)
	record(t, filepath.Join(dir, "late.parquet"), 900, func(r *result.Run) {
		r.Started, r.Note = began.AddDate(0, 0, 20).Format(time.RFC3339Nano), "nightly"
		r.StalledNS = 5e9
	})
	h := read(t, dir)
	if len(h.Series) != 1 || h.Series[0].Trusted != 18 || len(h.Runs) != 19 || h.Tests != 4 {
		t.Fatalf("%d series, %+v, %d tests", len(h.Series), h.Series[0], h.Tests)
	}
	c := h.Series[0].Judged[0].lastChange()
	if c == nil || c.After.File != "night-11.parquet" || c.At.File != "night-12.parquet" || !c.Worse || c.Change < 0.2 || c.Change > 0.3 || c.P > 0.0025 {
		t.Fatalf("%+v", c)
	}
	if worse := h.Worse(); len(worse) != 3 || worse[0].Metric != "p99_ttft" || worse[1].Metric != "p99_e2e" || worse[2].Metric != "output_tokens_per_s" {
		t.Errorf("worse: %+v", worse)
	}
	got := text(t, h, false)
	for _, want := range []string{"p99 TTFT rose by 2", "(worse), between", "No change found in p99 ITL", "Series A: 19 runs (1 not trusted, and not judged), workload",
		"2026-11-21 02:00", "not trusted", " older runs."} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > textpage.AnswerLines {
		t.Errorf("%d lines:\n%s", n, got)
	}
	if d := text(t, h, true); !strings.Contains(d, "late.parquet is not trusted: client stall of") || !strings.Contains(d, "E-divisive") {
		t.Error(d)
	}
	var narrow bytes.Buffer // no row in two
	if err := h.WriteText(&narrow, textpage.Options{Width: textpage.MinWidth, Rest: "."}); err != nil || strings.Count(narrow.String(), "2026-11-21 02:00") != 1 || strings.Count(narrow.String(), "\n") > textpage.AnswerLines {
		t.Errorf("%v\n%s", err, narrow.String())
	}
	p := h.Page()
	pagetest.FirstScreen(t, "history", p, "p99 TTFT rose by 2", "p99 TTFT over runs", "not trusted", "Last change of each metric")
}

// Runs of another load, engine or machine make a series of their own, and few runs are
// listed and not judged.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	at := func(i int) string { return began.Add(time.Duration(i) * time.Hour).Format(time.RFC3339Nano) }
	for i, change := range []func(*result.Run){
		func(*result.Run) {},
		func(r *result.Run) { r.Rate = "poisson:5" },
		func(r *result.Run) { r.Workload = "sha256:ffff" },
		func(r *result.Run) { r.Environment.Deployment.Engine = "SGLang 0.5" },
		func(r *result.Run) { r.Environment.Deployment.EngineFlags = "--max-num-seqs 16" },
		func(r *result.Run) { r.Environment.Deployment.GPU = "B200" },
		func(r *result.Run) { r.Environment.Host.CPU = "another" },
		func(*result.Run) {},
	} {
		record(t, filepath.Join(dir, fmt.Sprintf("%d", i), "r.parquet"), 100, func(r *result.Run) { r.Started = at(i); change(r) })
	}
	// What is no run: a copy, a workload, a damaged file.
	record(t, filepath.Join(dir, "copy.parquet"), 100, func(r *result.Run) { r.Started = at(0) })
	if err := trace.WriteFile(filepath.Join(dir, "broken.parquet"), 0o644, func(w io.Writer) error {
		_, err := w.Write([]byte("PAR1 and no more"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	err := trace.Create(filepath.Join(dir, "w.parquet"), func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		return trace.Meta{BlockSize: 16}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h := read(t, dir, "p99 ttft")
	if len(h.Series) != 7 || h.Series[0].Runs != 2 || h.Copies != 1 || len(h.Unread) != 1 || h.Tests != 0 {
		t.Fatalf("%d series, %+v, %d copies, unread %q", len(h.Series), h.Series[0], h.Copies, h.Unread)
	}
	var differs []string
	for _, s := range h.Series[1:] {
		differs = append(differs, s.Differs...)
	}
	if want := []string{"client machine", "deployment", "engine flags", "engine", "workload", "schedule"}; !slices.Equal(differs, want) {
		t.Errorf("%q, want %q", differs, want)
	}
	got := text(t, h, false)
	for _, want := range []string{"Not judged: p99 TTFT (2 of 10 trusted runs).", "warning: broken.parquet: "} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > textpage.AnswerLines {
		t.Errorf("%d lines:\n%s", n, got)
	}
	if _, err := Read(t.TempDir(), Options{}); !errors.Is(err, errNone) {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestCommitOf(t *testing.T) {
	for note, want := range map[string]string{
		"commit=v1.2.3": "v1.2.3", "nightly commit: 3f2a91c": "3f2a91c", "v1.2-14-g24147aa": "24147aa", "build of 3f2a91c": "3f2a91c",
		"20261114": "", "": "", "batched prefill": "", "sha 0123456": "0123456",
	} {
		if got := commitOf(note); got != want {
			t.Errorf("%q: %q, want %q", note, got, want)
		}
	}
}

// The newest run is put on the side of the commit that it is like, and nowhere where the
// noise does not tell.
func TestSide(t *testing.T) {
	for name, c := range map[string]struct {
		good, bad, is []float64
		untrusted     bool
		want          string
	}{
		"good":      {good: []float64{200, 204, 198}, bad: []float64{250, 256, 248}, is: []float64{205}, want: "new is good: p99 ttft 224 in 1 run, against 219 of the good commit and 269 of the bad one"},
		"bad":       {good: []float64{200, 204, 198}, bad: []float64{250, 256, 248}, is: []float64{246}, want: "new is bad: p99 ttft 265 in 1 run, against 219 of the good commit and 269 of the bad one"},
		"middle":    {good: []float64{200, 204, 198}, bad: []float64{250, 256, 248}, is: []float64{223}, want: "new cannot be judged by p99 ttft: it is too near to the middle of good and bad after 1 run: measure it again"},
		"noise":     {good: []float64{200, 260, 198}, bad: []float64{250, 206, 248}, is: []float64{246}, want: "new cannot be judged by p99 ttft: the runs of the good and the bad commit cannot be told apart by their noise: measure both again"},
		"reversed":  {good: []float64{250, 256, 248}, bad: []float64{200, 204, 198}, is: []float64{246}, want: "new cannot be judged by p99 ttft: the runs of the bad commit are not worse than those of the good one"},
		"few":       {good: []float64{200, 204}, bad: []float64{250, 256, 248}, is: []float64{246}, want: "new cannot be judged by p99 ttft: v1 has 2 trusted runs with the settings of the newest run, and 3 are needed: measure it again, with --note commit=v1"},
		"untrusted": {good: []float64{200, 204, 198}, bad: []float64{250, 256, 248}, is: []float64{246}, untrusted: true, want: "new cannot be judged by p99 ttft: it is not trustworthy: client stall of 5,000 ms"},
	} {
		dir := t.TempDir()
		n := 0
		for i, set := range [][]float64{c.good, c.bad, c.is} {
			for _, ttft := range set {
				n++
				record(t, filepath.Join(dir, fmt.Sprintf("%d.parquet", n)), ttft, func(r *result.Run) {
					r.Started = began.Add(time.Duration(n) * time.Minute).Format(time.RFC3339Nano)
					r.Note = "commit=" + []string{"v1", "v2", "new"}[i]
					if c.untrusted && i == 2 {
						r.StalledNS = 5e9
					}
				})
			}
		}
		s := read(t, dir, "p99_ttft").Side("v1", "v2")
		if !strings.HasPrefix(s.String(), c.want) || s.Bad != (name == "bad") && s.Why == "" {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// The rates of a bisection in docs/operations.md: how often a run is put on the wrong
// side, and how often it has to be measured again.
func TestSideRates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	draw := func(n int, at float64) (out []float64) {
		for range n {
			out = append(out, at+0.03*rng.NormFloat64())
		}
		return out
	}
	wrong, again, steps := 0, 0, 20000
	for i := range steps {
		good, bad := draw(5, 0), draw(5, math.Log(1.1))
		for k := 1; ; k++ {
			var s Side
			s.decide([3][]float64{good, bad, draw(k, []float64{0, math.Log(1.1)}[i%2])}, false)
			if s.Why == "" {
				if s.Bad != (i%2 == 1) {
					wrong++
				}
				break
			}
			if again++; k == 5 {
				break
			}
		}
	}
	t.Logf("wrong %.2f %%, %.2f further runs a step", 100*float64(wrong)/float64(steps), float64(again)/float64(steps))
	if share := float64(wrong) / float64(steps); share > 0.02 {
		t.Errorf("%.4f are on the wrong side", share)
	}
}
