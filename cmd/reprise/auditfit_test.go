package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// overlaying is a file for go's -overlay, with other text in one of the program's files; no
// file changes nothing.
func overlaying(t testing.TB, file, from, to string) string {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	if file != "" {
		file, err := filepath.Abs(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), from); n != 1 {
			t.Fatalf("%s has %q %d times, and the bug is to be put in its place", file, from, n)
		}
		replaced[file] = filepath.Join(dir, "changed.go")
		if err := os.WriteFile(replaced[file], []byte(strings.ReplaceAll(string(b), from, to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// buildWith builds the program with an overlay.
func buildWith(t testing.TB, overlay string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "reprise")
	if b, err := exec.Command("go", "build", "-overlay", overlay, "-o", out, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// drawnRelease writes a model of sessions for a partner, and its trace.
func drawnRelease(t testing.TB) (model, house string) {
	t.Helper()
	dir := t.TempDir()
	house, model = filepath.Join(dir, "t.parquet"), filepath.Join(dir, "m.parquet")
	meta := trace.Meta{Tier: anonymize.Internal, Sessions: "source", Capture: trace.RelativeCapture(0, 3600e9)}
	err := trace.Create(house, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		d := trace.NewDigest()
		for i := range int64(20_000) {
			rows := []trace.Request{{ArrivalNS: i * 18e7, InputTokens: int32(1024 + 37*i%1024), OutputTokens: trace.Ptr(int32(128 + i%128)), User: trace.Ptr(i % 10_000), Session: trace.Ptr(i % 10_000), Status: trace.StatusOK}}
			d.Add(rows)
			if _, err := w.Write(rows); err != nil {
				return meta, err
			}
		}
		meta.Digest = d.Sum()
		return meta, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", dir)
	must(t, "synth", "fit", house, "--tier", "partner", "--epsilon", "8", "--max-input", "4096", "--max-output", "1024", "-o", model)
	return model, house
}

// The program itself makes the two models that the audit compares, of both tiers.
func TestFitInProcess(t *testing.T) {
	long(t)
	model, _ := drawnRelease(t)
	if out := must(t, "audit", model, "--only", "seeds"); !strings.Contains(out, "two processes drew other noise for one invented trace") {
		t.Error(out)
	}
	if _, err := fitInProcess(context.Background(), filepath.Join(t.TempDir(), "none.parquet"), anonymize.Public); err == nil || !strings.Contains(err.Error(), "none.parquet") {
		t.Errorf("of no trace: %v", err)
	}
}

// A program whose noise comes from a seed fails its own audit.
func TestSeededProgram(t *testing.T) {
	long(t)
	model, _ := drawnRelease(t)
	seeded := buildWith(t, overlaying(t, "anonymize/dp/noise.go", "func NewNoise() *Noise { return NewNoiseFrom(rand.Reader) }", seededNoise))
	cmd := exec.Command(seeded, "audit", model, "--only", "seeds")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != cli.Check || !strings.Contains(string(out), "two processes drew the same noise") {
		t.Errorf("%v\n%s", err, out)
	}
}
