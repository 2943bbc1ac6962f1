package datasets

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/longtest"
)

// pool makes the files of clients: for each its trace and its dataset.
func pool(clients map[int][2]string) []File {
	var files []File
	for id, c := range clients {
		for i, name := range []string{"trace.csv", "dataset.json"} {
			files = append(files, File{
				Name: fmt.Sprintf("pool/chunk-%d-%s", id, name),
				Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c[i])), nil },
			})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

const someLengths = `{"0": {"input_tokens": "{10: 0.5, 20: 0.25, 400: 0.25}", "output_tokens": "{1: 0.1, 7: 0.6, 900: 0.3}"}}`

func readPool(t testing.TB, files []File, o Options) ([]trace.Entry, Info) {
	t.Helper()
	all, info, err := readAs("servegen", files, o)
	if err != nil {
		t.Fatal(err)
	}
	return all, info
}

// windowsOf writes a trace of n windows with the same rate.
func windowsOf(n int, rate, pattern string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,%s,1.2,%s,99\n", 600*i, rate, pattern)
	}
	return b.String()
}

// Counts of windows are Poisson around rate × width, for every shape of the
// gaps, and also for clients of less than one request in a window.
func TestServeGenCounts(t *testing.T) {
	const windows = 1000
	for _, c := range []struct{ rate, pattern string }{
		{"0.1", "Gamma,1"}, {"0.1", "Gamma,0.1"}, {"0.05", "Weibull,0.3"}, {"0.1", "Weibull,4"}, {"0.1", ",0"}, {"0.0005", "Gamma,2"}, {"0.001", "Weibull,0.5"},
	} {
		all, info := readPool(t, pool(map[int][2]string{3: {windowsOf(windows, c.rate, c.pattern), someLengths}}), Options{Seed: 7, PoolSpan: windows * 600 * time.Second})
		counts := make([]float64, windows)
		last := time.Time{}
		for i := range all {
			if all[i].Time.Before(last) || all[i].User.Reveal() != "3" {
				t.Fatalf("%v: request %d is out of order", c, i)
			}
			last = all[i].Time
			counts[all[i].Time.Sub(Epoch)/(600*time.Second)]++
		}
		var rate float64
		fmt.Sscan(c.rate, &rate)
		mean, variance := 600*rate, 0.0
		for _, n := range counts {
			variance += (n - mean) * (n - mean) / windows
			if math.Abs(n-mean) > 6*math.Sqrt(mean)+3 {
				t.Errorf("%v: a window of %g requests, where %g were observed", c, n, mean)
			}
		}
		// The mean of the counts has a standard error of √(mean/windows), and their
		// index of dispersion one of √(2/windows) and a little more for small means.
		if got := float64(len(all)) / windows; math.Abs(got-mean) > 4*math.Sqrt(mean/windows) {
			t.Errorf("%v: %g requests in a window, want %g", c, got, mean)
		}
		if d := variance / mean; math.Abs(d-1) > 4*math.Sqrt((2+1/mean)/windows) {
			t.Errorf("%v: the counts have an index of dispersion of %g", c, d)
		}
		if len(info.Notes) != 1 || info.TimeUnit != "s" || !info.HasTimes || !info.HasUsers || info.HasText {
			t.Errorf("%+v", info)
		}
	}
}

// The gaps have the shape that is asked for: their CV is that of the law.
func TestServeGenShapes(t *testing.T) {
	longtest.Skip(t)
	for pattern, want := range map[string]float64{
		"Gamma,1": 1, "Gamma,4": 0.5, "Gamma,0.25": 2, "Weibull,1": 1, "Weibull,2": 0.5227, "Weibull,0.5": math.Sqrt(5), ",": 1,
	} {
		if pattern == "," {
			pattern = ",7"
		}
		all, _ := readPool(t, pool(map[int][2]string{1: {windowsOf(6, "20", pattern), someLengths}}), Options{Seed: 1})
		var sum, square float64
		for i := 1; i < len(all); i++ {
			gap := all[i].Time.Sub(all[i-1].Time).Seconds()
			sum, square = sum+gap, square+gap*gap
		}
		n := float64(len(all) - 1)
		if cv := math.Sqrt(square/n-sum*sum/n/n) / (sum / n); math.Abs(cv/want-1) > 0.04 {
			t.Errorf("%s: the gaps have a CV of %.3f, want %.3f", pattern, cv, want)
		}
	}
}

// Lengths are those of the distributions, and of one request independent.
func TestServeGenLengths(t *testing.T) {
	all, _ := readPool(t, pool(map[int][2]string{0: {"0,200,1,Gamma,1,1\n", someLengths}}), Options{Seed: 11})
	if len(all) < 100_000 {
		t.Fatalf("%d requests", len(all))
	}
	in, out := make([]float64, len(all)), make([]float64, len(all))
	seen := map[string]float64{}
	for i := range all {
		in[i], out[i] = float64(*all[i].InputTokens), float64(*all[i].OutputTokens)
		seen[fmt.Sprint("in ", in[i])]++
		seen[fmt.Sprint("out ", out[i])]++
	}
	for name, p := range map[string]float64{"in 10": 0.5, "in 20": 0.25, "in 400": 0.25, "out 1": 0.1, "out 7": 0.6, "out 900": 0.3} {
		if got := seen[name] / float64(len(all)); math.Abs(got-p) > 5*math.Sqrt(p*(1-p)/float64(len(all))) {
			t.Errorf("%s: %.4f of the requests, want %g", name, got, p)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
	if rho := spearman(in, out); math.Abs(rho) > 0.03 {
		t.Errorf("lengths of input and output correlate by %.4f", rho)
	}
}

// spearman is the correlation of ranks, ties at their mean.
func spearman(a, b []float64) float64 {
	ra, rb := ranks(a), ranks(b)
	var ma, mb, ab, aa, bb float64
	for i := range ra {
		ma, mb = ma+ra[i]/float64(len(ra)), mb+rb[i]/float64(len(rb))
	}
	for i := range ra {
		ab, aa, bb = ab+(ra[i]-ma)*(rb[i]-mb), aa+(ra[i]-ma)*(ra[i]-ma), bb+(rb[i]-mb)*(rb[i]-mb)
	}
	return ab / math.Sqrt(aa*bb)
}

func ranks(x []float64) []float64 {
	count := map[float64]int{}
	for _, v := range x {
		count[v]++
	}
	var values []float64
	for v := range count {
		values = append(values, v)
	}
	slices.Sort(values)
	rank, below := map[float64]float64{}, 0
	for _, v := range values {
		rank[v] = float64(below) + float64(count[v]+1)/2
		below += count[v]
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = rank[v]
	}
	return out
}

// The same seed gives the same rows, another one others; a part has the rows
// that the whole has in it, and a client those that it has alone.
func TestServeGenReproduces(t *testing.T) {
	clients := map[int][2]string{
		2: {windowsOf(12, "0.2", "Weibull,0.5"), someLengths},
		9: {windowsOf(12, "0.3", "Gamma,0.5"), someLengths},
	}
	rows := func(clients map[int][2]string, o Options, keep func(*trace.Entry) bool) string {
		all, _ := readPool(t, pool(clients), o)
		var b strings.Builder
		for i := range all {
			if keep(&all[i]) {
				b.WriteString(summary(&all[i]) + "\n")
			}
		}
		return b.String()
	}
	everyone := func(*trace.Entry) bool { return true }
	whole := Options{Seed: 5, PoolSpan: 2 * time.Hour}
	a := rows(clients, whole, everyone)
	if b := rows(clients, whole, everyone); a != b || a == "" {
		t.Error("the same seed gave other rows")
	}
	other := whole
	other.Seed = 6
	if rows(clients, other, everyone) == a {
		t.Error("another seed gave the same rows")
	}
	from, to := 47*time.Minute, 76*time.Minute
	inside := rows(clients, whole, func(e *trace.Entry) bool { d := e.Time.Sub(Epoch); return d >= from && d < to })
	if part := rows(clients, Options{Seed: 5, PoolStart: from, PoolSpan: to - from}, everyone); part != inside || part == "" {
		t.Error("a part has other rows than the whole has there")
	}
	of9 := rows(clients, whole, func(e *trace.Entry) bool { return e.User.Reveal() == "9" })
	if alone := rows(map[int][2]string{9: clients[9]}, whole, everyone); alone != of9 {
		t.Error("a client alone has other rows")
	}
}

// First rows of a seed: a change of these changes every trace made from one.
func TestServeGenGolden(t *testing.T) {
	all, _ := readPool(t, pool(map[int][2]string{2: {windowsOf(1, "0.2", "Weibull,0.5"), someLengths}}), Options{Seed: 42})
	var b []string
	for i := range all[:4] {
		b = append(b, summary(&all[i]))
	}
	const want = `194.88ms user=2 in=10 out=900|215.402ms user=2 in=10 out=7|13.567114s user=2 in=10 out=7|13.595757s user=2 in=10 out=7`
	if got := strings.Join(b, "|"); got != want {
		t.Errorf("%q", got)
	}
}

func TestServeGenFields(t *testing.T) {
	reason := `{"0": {"input_tokens": "{}", "output_tokens": "{}", "reason_ratio": "{}"},
	"600": {"input_tokens": "{5: 1.0}", "output_tokens": "{1000: 1.0}", "reason_ratio": "{0.0: 0.0, 0.001996007984031936: 0.0, 0.75: 1}"},
	"1200": {"input_tokens": "{}", "output_tokens": "{}", "reason_ratio": "{}"},
	"1800": {"input_tokens": "{6: 1.0}", "output_tokens": "{10: 1.0,}", "reason_ratio": "{1.0: 1e-05}"}}`
	all, _ := readPool(t, pool(map[int][2]string{4: {windowsOf(4, "0.05", "Gamma,1"), reason}}), Options{})
	seen := map[string]int{}
	for i := range all {
		e := &all[i]
		seen[fmt.Sprintf("%d: in=%d out=%d reasoning=%d", e.Time.Sub(Epoch)/(600*time.Second), *e.InputTokens, *e.OutputTokens, *e.Reasoning)]++
	}
	// The first has nothing before it and takes what comes; the third falls back.
	for _, want := range []string{"0: in=5 out=1000 reasoning=750", "1: in=5 out=1000 reasoning=750", "2: in=5 out=1000 reasoning=750", "3: in=6 out=10 reasoning=10"} {
		if seen[want] == 0 || len(seen) != 4 {
			t.Errorf("%v", seen)
		}
	}
	idle := `"text_tokens": "{0: 1.0}", "image_tokens": "{0: 1.0}", "audio_tokens": "{0: 1.0}", "video_tokens": "{0: 1.0}", "image_count": "{0: 1.0}", "audio_count": "{0: 1.0}", "video_count": "{0: 1.0}", "output_tokens": "{0: 1.0}"`
	media := `{"0": {"text_tokens": "{50: 1.0}", "image_tokens": "{4: 0.5, 6: 0.5}", "audio_tokens": "{100: 1.0}", "video_tokens": "{0: 1.0}",
		"image_count": "{2: 1.0}", "audio_count": "{1: 1.0}", "video_count": "{0: 1.0}", "output_tokens": "{11: 1.0}", "unknown": "?"}, "600": {` + idle + `}}`
	all, info := readPool(t, pool(map[int][2]string{4: {windowsOf(4, "0.05", "Gamma,1"), media}}), Options{})
	sums := map[int32]int{}
	for i := range all {
		e := &all[i]
		sums[*e.ImageTokens]++
		if *e.InputTokens != 150+*e.ImageTokens || *e.Images != 2 || *e.OutputTokens != 11 || e.Reasoning != nil {
			t.Fatal(summary(e))
		}
	}
	if len(sums) != 3 || sums[10] < sums[8] || len(info.Notes) != 2 || !strings.HasPrefix(info.Notes[0], "requests with audio or video") {
		t.Errorf("%v, %q", sums, info.Notes)
	}
}

func TestServeGenFiles(t *testing.T) {
	some := pool(map[int][2]string{1: {"0,0,0,,0,0\n600,0.5,1,Gamma,1,1\n", someLengths}})
	if !serveGenFormat().detectFiles(some) || serveGenFormat().detectFiles(some[:1]) || serveGenFormat().detectFiles(textFiles("a", "b")) {
		t.Error("detection")
	}
	more := append(slices.Clone(some), File{Name: "pool/.DS_Store"}, File{Name: "pool/chunk-7-trace.csv"})
	all, info := readPool(t, more, Options{})
	if len(all) < 200 || len(info.Notes) != 2 || info.Notes[0] != "clients without one of their two files, left out: 1" ||
		info.Notes[1] != "requests were drawn for the part from 0s to 20m0s of a pool of 1 clients and 20m0s" {
		t.Errorf("%d entries, %q", len(all), info.Notes)
	}
	for name, o := range map[string]Options{"negative": {PoolStart: -1}, "behind": {PoolStart: 20 * time.Minute}, "fraction": {PoolSpan: time.Millisecond}, "huge": {PoolSpan: 1 << 62}} {
		if _, _, err := readAs("servegen", some, o); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(strings.NewReader("x"), Options{Format: "servegen"}); !errors.Is(err, fault.ErrUsage) {
		t.Error(err)
	}
	if _, err := Open(strings.NewReader(oneRow), Options{PoolSpan: time.Hour}); !errors.Is(err, fault.ErrUsage) {
		t.Error(err)
	}
	for want, c := range map[string][2]string{
		"pool/chunk-1-trace.csv:2:1: want six fields":                  {"0,1,1,Gamma,1,1\n600,1\n", someLengths},
		"pool/chunk-1-trace.csv:1:1: want the start":                   {"zero,1,1,Gamma,1,1\n", someLengths},
		"pool/chunk-1-trace.csv:1:3: want a rate":                      {"0,NaN,1,Gamma,1,1\n", someLengths},
		"pool/chunk-1-trace.csv:1:7: want a pattern":                   {"0,1,1,Zipf,1,1\n", someLengths},
		"pool/chunk-1-trace.csv:1:13: want a shape":                    {"0,1,1,Gamma,0,1\n", someLengths},
		"pool/chunk-1-trace.csv:2:1: the windows are not in order":     {"600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1", someLengths},
		"pool/chunk-1-trace.csv:1:1: a window has more than ten":       {"0,9999,1,Gamma,1,1\n6000,1,1,Gamma,1,1", someLengths},
		"pool/chunk-1-trace.csv:1:5: a quote is out of place":          {"0,\"1\"x,1,Gamma,1,1\n", someLengths},
		"pool/chunk-1-dataset.json:2:1: unexpected end of file":        {"0,1,1,Gamma,1,1\n", "{\n"},
		"pool/chunk-1-dataset.json:1:1: unexpected end of file":        {"0,1,1,Gamma,1,1\n", ""},
		"pool/chunk-1-dataset.json:2:2: it is not valid JSON":          {"0,1,1,Gamma,1,1\n", "{\n x}"},
		"pool/chunk-1-dataset.json:1:1: want an object of times":       {"0,1,1,Gamma,1,1\n", "[]"},
		"pool/chunk-1-dataset.json:1:1: a time is not":                 {"0,1,1,Gamma,1,1\n", `{"x":{}}`},
		"pool/chunk-1-dataset.json:1:23: input_tokens: want a dict":    {"0,1,1,Gamma,1,1\n", `{"0":{"input_tokens": "{1.5: 1}"}}`},
		"pool/chunk-1-dataset.json:2:17: output_tokens: want a dict":   {"0,1,1,Gamma,1,1\n", "{\"0\":{\n\"output_tokens\":\"[1]\"}}"},
		"pool/chunk-1-dataset.json:1:23: reason_ratio: want a dict of": {"0,1,1,Gamma,1,1\n", `{"0":{"reason_ratio": "{1.5: 1}"}}`},
	} {
		_, _, err := readAs("servegen", pool(map[int][2]string{1: c}), Options{})
		var at *trace.SourceError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// publishedPool opens clients of a pool that the project does not ship.
func publishedPool(t testing.TB, name string) []File {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join("../../shared/data/servegen", name))
	if len(paths) == 0 {
		t.Skip("the public pool of ServeGen is not here")
	}
	var files []File
	for _, p := range paths {
		files = append(files, File{Name: p, Open: func() (io.ReadCloser, error) { return os.Open(p) }})
	}
	return files
}

// What is drawn from the published R1 client has the published digits.
func TestServeGenPublishedDraws(t *testing.T) {
	s := &Source{file: "pool"}
	var err error
	if s.dec, err = openServeGen(publishedPool(t, "deepseek-r1/chunk-35-*"), Options{Seed: 1, PoolSpan: 24 * time.Hour}, s); err != nil {
		t.Fatal(err)
	}
	in, out, n := map[int32]float64{}, map[int32]float64{}, 0.0
	var first, second []float64
	batch := make([]trace.Entry, 256)
	for err == nil {
		var m int
		m, err = s.Read(batch)
		for _, e := range batch[:m] {
			in[*e.InputTokens]++
			out[*e.OutputTokens]++
			n++
			if len(first) < 100_000 {
				first, second = append(first, float64(*e.InputTokens)), append(second, float64(*e.OutputTokens))
			}
			if *e.Reasoning > *e.OutputTokens {
				t.Fatal(summary(&e))
			}
		}
	}
	if math.Abs(n-395_572) > 5*math.Sqrt(395_572) {
		t.Errorf("%.0f requests", n)
	}
	near(t, "input", describe(in), [4]float64{112, 37, 180, 1493}, 0.03)
	near(t, "output", describe(out), [4]float64{2604, 1586, 5811, 12446}, 0.03)
	t.Logf("%.0f requests, in %.5g out %.5g, Spearman %.4f", n, describe(in), describe(out), spearman(first, second))
	if rho := spearman(first, second); math.Abs(rho) > 0.03 {
		t.Errorf("Spearman %.4f", rho)
	}
}

// describe returns the mean and the quantiles 0.5, 0.9 and 0.99.
func describe(weights map[int32]float64) (d [4]float64) {
	var values []int32
	total := 0.0
	for v, w := range weights {
		values = append(values, v)
		total += w
		d[0] += float64(v) * w
	}
	d[0] /= total
	slices.Sort(values)
	cumulative, next := 0.0, 1
	for _, v := range values {
		cumulative += weights[v]
		for next < 4 && cumulative >= total*[4]float64{0, 0.5, 0.9, 0.99}[next] {
			d[next] = float64(v)
			next++
		}
	}
	return d
}

func near(t *testing.T, what string, got, want [4]float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > tolerance*want[i]+0.5 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

// A draw is the value into whose share of the uniform it falls.
func TestPMF(t *testing.T) {
	p, why := parsePMF("{30: 0.25, 10: 0.5, 20: 0, 40: 1e-30, 50: 0.25}", false)
	if why != "" || fmt.Sprint(p.values, p.tops) != fmt.Sprint([]int32{10, 30, 50}, []uint32{1<<31 - 1, 3<<30 - 1, math.MaxUint32}) {
		t.Error(p, why)
	}
	r := arrival.Stream(1, "pmf")
	for range 1000 {
		if v := p.draw(r); v != 10 && v != 30 && v != 50 {
			t.Fatal(v)
		}
	}
	for _, text := range []string{"", "{", "{1}", "{1:}", "{-1: 1}", "{1: -1}", "{1: NaN}", "{1: inf}", "{2147483648: 1}", "{x: 1}", "{1: 1, , 2: x}", "[1]"} {
		if p, why := parsePMF(text, false); why == "" && text != "{}" {
			t.Errorf("%q became %v", text, p)
		}
	}
	for _, text := range []string{"{}", " { } ", "{3: 0.0}"} {
		if p, why := parsePMF(text, false); why != "" || !p.none() || p.draw(r) != 0 {
			t.Errorf("%q: %v %s", text, p, why)
		}
	}
}

func FuzzServeGen(f *testing.F) {
	f.Add("0,0.5,1.0,Gamma,1,1\n600,0,0,,0,0\n1200,0.1,2,Weibull,0.3,5\n", someLengths)
	f.Add("0,MARK,1,Gamma,1,1\n", `{"MARK": {"input_tokens": "MARK"}}`)
	f.Add("0,0.5,1,\"MARK\",1,1", `{"0": {"input_tokens": "{MARK: 1}", "output_tokens": "{1: MARK}", "image_tokens": "{5: 1}", "image_count": "{9000: 1}"}}`)
	f.Fuzz(func(t *testing.T, windows, lengths string) {
		files := pool(map[int][2]string{1: {strings.ReplaceAll(windows, "MARK", marker), strings.ReplaceAll(lengths, "MARK", marker)}})
		all, info, err := readAs("servegen", files, Options{PoolSpan: 2 * time.Second})
		if err != nil && !errors.Is(err, fault.ErrUsage) && asSourceError(err) == nil {
			t.Fatal(err)
		}
		if err != nil && strings.Contains(err.Error(), marker) {
			t.Fatal("an error repeats the input")
		}
		for i := range all {
			checkEntry(t, &all[i], int64(i), &info)
			if d := all[i].Time.Sub(Epoch); d < 0 || d >= 2*time.Second {
				t.Fatalf("a request at %v", d)
			}
		}
	})
}

func BenchmarkServeGen(b *testing.B) {
	files := pool(map[int][2]string{1: {windowsOf(6, "20", "Gamma,0.5"), someLengths}, 2: {windowsOf(6, "20", "Weibull,0.7"), someLengths}})
	n := 0
	for b.Loop() {
		all, _ := readPool(b, files, Options{})
		n += len(all)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "requests/s")
}
