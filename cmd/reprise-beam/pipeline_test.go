package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"google.golang.org/protobuf/proto"

	"reprise/anonymize"
	"reprise/cmd/reprise/beam/internal/stage"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/token"
)

const testKey = "0f1e2d3c4b5a69788796a5b4c3d2e1f000112233445566778899aabbccddeeff"

// demoLog writes the embedded log as so many files, one turn of a conversation often in another file than the
// next, and a key.
func demoLog(t testing.TB, files int) (log, key string) {
	t.Helper()
	r, err := datasets.Demo()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, key = filepath.Join(dir, "log"), filepath.Join(dir, "key")
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	for i := range files {
		part := lines[i*len(lines)/files : (i+1)*len(lines)/files]
		if err := os.WriteFile(filepath.Join(log, fmt.Sprintf("%02d.jsonl", i)), []byte(strings.Join(part, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(key, []byte(testKey+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	return log, key
}

// oneProcess imports a log as import does, and profiles the trace.
func oneProcess(t testing.TB, log string) (*trace.Trace, profile.Summary) {
	t.Helper()
	files, err := datasets.Expand(log)
	if err != nil {
		t.Fatal(err)
	}
	src, err := datasets.OpenFiles(files, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	policy := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 64}
	if policy.Tokenizer, err = token.OpenAny("o200k_base"); err != nil {
		t.Fatal(err)
	}
	if policy.Template, err = token.OpenTemplateAny("chatml"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "whole.parquet")
	err = trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		card, err := anonymize.Run(t.Context(), policy, src, dst)
		return trace.Meta{Tier: card.Tier, BlockSize: 64, Convention: trace.PartialTail}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { whole.Close() })
	p := profile.NewProfiler(whole.Meta, profile.ProfilerOptions{})
	rows, err := whole.Reader()
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]trace.Request, 256)
	for {
		n, err := rows.Read(batch)
		if _, err := p.Write(batch[:n]); err != nil {
			t.Fatal(err)
		}
		if err == io.EOF {
			return whole, p.Summary()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// must runs the command, on Prism in this process.
func must(t testing.TB, args ...string) string {
	t.Helper()
	*jobopts.Strict = true
	var out, problems bytes.Buffer
	if code := run(t.Context(), args, &out, &problems); code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, problems.String())
	}
	return out.String()
}

// An import on Prism, in any number of shards, gives the trace of one process, and the figures of its profile: equal,
// or within the error that is stated.
func TestImportOnPrism(t *testing.T) {
	log, key := demoLog(t, 7)
	whole, want := oneProcess(t, log)
	dir := t.TempDir()
	for _, shards := range []int{1, 3, 9} {
		out := filepath.Join(dir, fmt.Sprintf("t%d", shards)) // a folder of partitions
		if shards == 1 {
			out += ".parquet"
		}
		text := must(t, log, "--key-file", key, "-o", out, "--shards", fmt.Sprint(shards), "--block-size", "64", "--template", "chatml", "--json")
		got, err := trace.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		got.Close()
		if got.Meta.Digest != whole.Meta.Digest {
			t.Errorf("%d shards: digest %s, want %s", shards, got.Meta.Digest, whole.Meta.Digest)
		}
		var s stage.Summary
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		compare(t, &s, &want)
		if left, _ := filepath.Glob(filepath.Join(dir, "*.shards")); len(left) > 0 {
			t.Errorf("%s were left behind", left)
		}
	}
}

// compare holds figures of the cluster to those of reprise profile.
func compare(t testing.TB, s *stage.Summary, want *profile.Summary) {
	t.Helper()
	if s.Rows != want.Rows || s.Requests != want.Requests || s.InputTotal != want.InputTotal || !reflect.DeepEqual(s.OutputTotal, want.OutputTotal) || s.DurationS != want.DurationS ||
		s.References != want.Reuse.ReferencesBlocks || s.UniqueBlocks != want.Reuse.UniqueBlocks {
		t.Errorf("%+v\nwant %+v", s, want)
	}
	for name, of := range map[string][2]*profile.Stats{"input": {s.Input, want.Input}, "output": {s.Output, want.Output}, "gaps": {s.InterArrival, want.Arrivals.InterArrival}} {
		got, want := of[0], of[1]
		apart := func(a, b, share float64) bool { return math.Abs(a-b) > share*math.Abs(b)+1e-12 }
		if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || apart(got.Mean, want.Mean, 1e-9) || apart(*got.SD, *want.SD, 1e-9) ||
			apart(got.P50, want.P50, 0.01) || apart(got.P99, want.P99, 0.01) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	exact := map[int64]float64{}
	for _, p := range want.Reuse.LRUCurve {
		if p.CapacityBlocks != nil {
			exact[*p.CapacityBlocks] = p.HitRatio
		}
	}
	for _, p := range s.LRUCurve {
		if p.CapacityBlocks == nil {
			if math.Abs(p.HitRatio-*want.Reuse.HitRatios.ByBlock) > 1e-12 {
				t.Errorf("without limit: %g, want %g", p.HitRatio, *want.Reuse.HitRatios.ByBlock)
			}
		} else if ratio, ok := exact[*p.CapacityBlocks]; ok && math.Abs(p.HitRatio-ratio) > p.Error+1e-9 {
			t.Errorf("%d blocks: %g ± %g, want %g", *p.CapacityBlocks, p.HitRatio, p.Error, ratio)
		}
	}
}

// The description of a job, which engines print and keep, has neither the key nor a line of the log.
func TestJobHoldsNoSecret(t *testing.T) {
	log, key := demoLog(t, 2)
	beam.Init()
	p := beam.NewPipeline()
	build(p.Root(), stage.Job{Logs: []string{log}, KeyFile: key, Work: t.TempDir(), Out: "t.parquet", Shards: 2, OneIn: 1})
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	env, err := graphx.CreateEnvironment(t.Context(), "beam:env:process:v1", func(context.Context) string { return `{"command":"/opt/boot"}` })
	if err != nil {
		t.Fatal(err)
	}
	job, err := graphx.Marshal(edges, &graphx.Options{Environment: env})
	if err != nil {
		t.Fatal(err)
	}
	text, err := proto.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	// What runs on a worker is text within text.
	words := regexp.MustCompile(`[A-Za-z0-9+/]{16,}=*`)
	for layer := text; len(layer) > 0; {
		var within []byte
		for _, word := range words.FindAll(layer, -1) {
			inner, _ := base64.StdEncoding.DecodeString(string(word))
			within = append(within, inner...)
		}
		text, layer = append(text, within...), within
	}
	raw, err := hex.DecodeString(testKey)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(key)) {
		t.Error("the path of the key file is not where it was looked for")
	}
	for _, secret := range [][]byte{[]byte(testKey), raw, []byte("messages")} {
		if bytes.Contains(text, secret) {
			t.Errorf("the job has %q", secret)
		}
	}
}

// What cannot be meant is said before anything runs.
func TestMistakes(t *testing.T) {
	log, key := demoLog(t, 2)
	for want, args := range map[string][]string{
		"which log?":                     {},
		"name a folder for the trace":    {log, "--key-file", key},
		"all workers hash under one key": {log, "-o", "t.parquet"},
		"--one-in: want 1 to":            {log, "-o", "t.parquet", "--key-file", key, "--one-in", "0"},
		"--shards":                       {log, "-o", "t.parquet", "--key-file", key, "--shards", "-1"},
		"there is no file or folder":     {log + "x", "-o", "t.parquet", "--key-file", key},
		"--engine-log":                   {log, "-o", "t.parquet", "--key-file", key, "--engine-log", "loud"},
		"--runnre":                       {log, "--runnre", "flink"},
	} {
		t.Chdir(t.TempDir())
		var out, problems bytes.Buffer
		if code := run(t.Context(), args, &out, &problems); code == 0 || !strings.Contains(problems.String(), want) {
			t.Errorf("%q: exit code %d, %swant %q", args, code, problems.String(), want)
		}
	}
}
